"""Joining: a box sends a one-time code and the public half of its new key; headquarters answers with what it needs.

`POST /join`, signed with that key as every message (`common.wire.signing`), accepted at any time of the box's clock: a
new box may not know the date. The request may be repeated: headquarters recognises the box by its key."""

import hashlib
import re
import secrets
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec

from common.wire.closure import Nim, Shape, Text
from common.wire.errors import decoded

TYPE: Final = "bf.mcfd.join.v1"
PATH: Final = "join"
MAX_BYTES: Final = 4096
MAX_ANSWER_BYTES: Final = 64 * 1024
MAX_MACHINES: Final = 64
PIN_DIGITS: Final = 64
CODE_LENGTH: Final = 12
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base32, without letters that look alike. 12 of them are 60 bits."""
_ALIKE: Final = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None, " ": None})
_CODE: Final = re.compile(rf"[{_ALPHABET}]{{{CODE_LENGTH}}}")
_PIN: Final = re.compile(rf"[0-9a-f]{{{PIN_DIGITS}}}")

LongText = Annotated[str, msgspec.Meta(max_length=32_768)]
JoinRefusal = Literal["CODE_UNKNOWN", "CODE_USED", "CODE_EXPIRED", "OTHER_MACHINES", "KEY_REVOKED"]
"""Error codes of `POST /join`, besides those of every request."""


class JoinRequest(Shape, frozen=True):
    type: Literal["bf.mcfd.join.v1"]
    code: Text
    key: Text
    """`whpk_…`; its private half has signed this."""
    nims: Annotated[tuple[Nim, ...], msgspec.Meta(min_length=1, max_length=MAX_MACHINES)]
    """The machines of the box, named as in its configuration."""
    version: Text = ""


class JoinAnswer(Shape, frozen=True):
    kind: Literal["https", "nats"]
    url: LongText
    """Address for closures: NATS servers separated by commas, or a path beside the request's."""
    jwt: LongText = ""
    """nats: the key's permission for the servers; empty if they know the key itself."""
    ca: LongText = ""
    """PEM of these servers' authority; empty if the system trusts them already."""
    label: Text = ""
    """Headquarters' name for the shop."""


class JoinLink(msgspec.Struct, frozen=True):
    """A code and its headquarters: `https://hq.example/join/K7QF-92XM-4HTR#<pin>`."""

    code: str
    url: str = ""
    """Empty for a code alone."""
    pin: str = ""
    """SHA-256 of headquarters' certificate (DER) if no public authority issued it; 64 hex digits."""

    def __str__(self) -> str:
        groups = "-".join(self.code[first : first + 4] for first in range(0, CODE_LENGTH, 4))
        if not self.url:
            return groups
        return f"{self.url.rstrip('/')}/{PATH}/{groups}" + (f"#{self.pin}" if self.pin else "")


def new_code() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(CODE_LENGTH))


def read_code(text: str) -> str:
    """The code in normal form. Raises ValueError if it is none."""
    code = text.strip().upper().translate(_ALIKE)
    if _CODE.fullmatch(code) is None:
        raise ValueError("not a code of a headquarters")
    return code


def read_link(text: str) -> JoinLink:
    """From a code alone, or the address that headquarters shows. Raises ValueError for anything else."""
    text = text.strip()
    if "://" not in text:
        return JoinLink(read_code(text))
    parts = urlsplit(text)
    before, found, code = parts.path.rpartition(f"/{PATH}/")
    if parts.scheme not in ("https", "http") or not parts.hostname or not found or parts.username or parts.query:
        raise ValueError("not the address of a code")
    if parts.fragment and _PIN.fullmatch(parts.fragment) is None:
        raise ValueError("not the fingerprint of a certificate")
    return JoinLink(read_code(code), f"{parts.scheme}://{parts.netloc}{before}", parts.fragment)


def hash_of(code: str) -> str:
    """The stored form of a code."""
    return hashlib.sha256(code.encode()).hexdigest()


def read_request(content: bytes) -> JoinRequest:
    """Raises BadEvent, naming the field, for anything else."""
    return decoded(content, JoinRequest)


def read_answer(content: bytes) -> JoinAnswer:
    """Raises BadEvent for anything else."""
    return decoded(content, JoinAnswer)
