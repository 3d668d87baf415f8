"""How a box joins a headquarters: a code for one use, the public half of the key that the box has made, and what the box needs from then on.

`POST /join`, signed by that key as every message (`common.wire.signing`), at any time of the box's clock: a box that is new may not know the
date. The same request may be made again: headquarters knows the box by its key."""

from __future__ import annotations

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
MOST_BYTES: Final = 4096
MOST_ANSWER_BYTES: Final = 64 * 1024
MOST_MACHINES: Final = 64
PIN_DIGITS: Final = 64
CODE_LENGTH: Final = 12
_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base32: no letter that is read as another one. 12 of them are 60 bits."""
_ALIKE: Final = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None, " ": None})
_CODE: Final = re.compile(rf"[{_ALPHABET}]{{{CODE_LENGTH}}}")
_PIN: Final = re.compile(rf"[0-9a-f]{{{PIN_DIGITS}}}")

LongText = Annotated[str, msgspec.Meta(max_length=32_768)]
JoinRefusal = Literal["CODE_UNKNOWN", "CODE_USED", "CODE_EXPIRED", "OTHER_MACHINES", "KEY_REVOKED"]
"""Codes of the errors of `POST /join` beside those of every request."""


class JoinRequest(Shape, frozen=True):
    type: Literal["bf.mcfd.join.v1"]
    code: Text
    key: Text
    """`whpk_…`; its private half has signed this."""
    nims: Annotated[tuple[Nim, ...], msgspec.Meta(min_length=1, max_length=MOST_MACHINES)]
    """The machines of the box, as its configuration names them."""
    version: Text = ""


class JoinAnswer(Shape, frozen=True):
    kind: Literal["https", "nats"]
    url: LongText
    """Where closures go: servers of NATS with commas between, or a path beside that of the request."""
    jwt: LongText = ""
    """nats: what the servers let the key in with; empty where they know the key itself."""
    ca: LongText = ""
    """PEM of the authority of these servers; empty where the system trusts them already."""
    label: Text = ""
    """What headquarters calls the shop."""


class JoinLink(msgspec.Struct, frozen=True):
    """A code, and the headquarters that gave it: `https://hq.example/join/K7QF-92XM-4HTR#<pin>`."""

    code: str
    url: str = ""
    """Empty: a code alone."""
    pin: str = ""
    """SHA-256 of the certificate (DER) that headquarters shows, where no public authority vouches for it; 64 hex digits."""

    def __str__(self) -> str:
        groups = "-".join(self.code[first : first + 4] for first in range(0, CODE_LENGTH, 4))
        if not self.url:
            return groups
        return f"{self.url.rstrip('/')}/{PATH}/{groups}" + (f"#{self.pin}" if self.pin else "")


def new_code() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(CODE_LENGTH))


def read_code(text: str) -> str:
    """The code as it is compared; ValueError when it is none."""
    code = text.strip().upper().translate(_ALIKE)
    if _CODE.fullmatch(code) is None:
        raise ValueError("not a code of a headquarters")
    return code


def read_link(text: str) -> JoinLink:
    """A code alone, or the address that headquarters shows. ValueError when it is neither."""
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
    """BadEvent, naming the field, when it is none."""
    return decoded(content, JoinRequest)


def read_answer(content: bytes) -> JoinAnswer:
    """BadEvent when it is none."""
    return decoded(content, JoinAnswer)
