"""API keys (decision 22): `ak_live_` or `ak_test_`, 32 random base62 characters, 6 characters of checksum.

The checksum is the CRC-32 of everything before it, written in base62 with leading zeros: 62^6 holds every value
of 32 bits. It tells a mistyped key from a wrong one; it is no protection.
"""

import hashlib
import re
import secrets
import zlib
from string import ascii_letters, digits
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

import msgspec

from common.language import Text
from common.wire.keys import PUBLIC, PrivateKey, decode, private_line
from daemon.core.errors import InvalidRequest
from daemon.core.ledger.attempt import Mode
from daemon.core.people import USUAL, Role

LONGEST_LABEL: Final = 60
_ALPHABET = digits + ascii_letters
_RANDOM_CHARACTERS = 32
_CHECKSUM_CHARACTERS = 6
_KEY_ID = re.compile(r"[0-9a-f]{16}")
_SHAPE = re.compile(r"ak_(live|test)_[0-9A-Za-z]{38}")


Lane: TypeAlias = Literal["lan", "relay"]
"""Where requests with a key come from: the shop's network or the relay (decision 46); no key is valid for both."""
LANES: Final[tuple[Lane, ...]] = get_args(Lane)
RELAY_ROLES: Final[tuple[Role, ...]] = ("seller", "reader", "manager")
"""What a key for the relay may be: a technician is at the box."""
MAX_RATE: Final = 6000
"""Requests a minute."""


class KeyTerms(NamedTuple):
    """Terms of a new key: role, end (ms, 0 for never), whether unknown fields are refused, and its lane. `signed`: the
    key is a private one that signs each request; the ledger has the public half. `rate`: requests a minute, 0 for no
    limit."""

    role: Role = USUAL
    expires_at: int = 0
    strict: bool = False
    lane: Lane = "lan"
    signed: bool = False
    rate: int = 0


USUAL_TERMS: Final = KeyTerms()


def check_terms(terms: KeyTerms) -> None:
    """InvalidRequest: a key for the relay has one of `RELAY_ROLES`; only such a key signs or has a rate."""
    if terms.lane == "relay" and terms.role not in RELAY_ROLES:
        choices = ", ".join(RELAY_ROLES)
        raise InvalidRequest.at("role", Text("a key for the relay is one of {choices}", choices=choices))
    if terms.signed and terms.lane != "relay":
        raise InvalidRequest.at("signed", Text("a key that signs is for the relay"))
    if terms.rate and terms.lane != "relay":
        raise InvalidRequest.at("rate", Text("a key with a rate is for the relay"))
    if not 0 <= terms.rate <= MAX_RATE:
        fault = Text("has to be a whole number from {least} to {most}", least=0, most=MAX_RATE)
        raise InvalidRequest.at("rate", fault)


class ApiKey(msgspec.Struct, frozen=True):
    """What is known of a key; never the key itself. Times in ms."""

    id: int
    nim: str
    mode: Mode
    label: str
    created_at: int
    revoked_at: int
    """0 while the key works"""
    role: Role
    expires_at: int
    """0 when it has no end"""
    used_at: int
    """to the minute"""
    strict: bool
    """Whether its requests may hold no unknown field (decision 27)."""
    lane: Lane
    public: bytes
    """The public half (Ed25519) of a key that signs; empty for one that is sent itself."""
    rate: int
    """Requests a minute through the relay, 0 for any number."""

    def works_at(self, now: int) -> bool:
        """Whether it has not come to its end, in ms."""
        return not 0 < self.expires_at <= now


class NewKey(NamedTuple):
    """A new key: its text, which is seen once, and what the ledger keeps of it."""

    text: str
    hash: bytes
    public: bytes = b""


def make_key(mode: Mode, *, signed: bool) -> NewKey:
    if signed:
        seed = secrets.token_bytes(32)
        public = decode(PrivateKey(seed).public.removeprefix(PUBLIC))
        return NewKey(private_line(seed), hashlib.sha256(public).digest(), public)
    text = generate(mode)
    return NewKey(text, hash_key(text))


def generate(mode: Mode) -> str:
    body = f"ak_{mode}_" + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_CHARACTERS))
    return body + checksum(body)


def checksum(text: str) -> str:
    value = zlib.crc32(text.encode())
    characters = []
    for _ in range(_CHECKSUM_CHARACTERS):
        value, digit = divmod(value, len(_ALPHABET))
        characters.append(_ALPHABET[digit])
    return "".join(reversed(characters))


def has_key_shape(text: str) -> bool:
    """By its shape alone: to look it up costs no more than its checksum does."""
    return _SHAPE.fullmatch(text) is not None


def inspect(text: str) -> Mode | None:
    """The mode of a well-formed key; None for what cannot be one of ours."""
    match = _SHAPE.fullmatch(text)
    if match is None or checksum(text[:-_CHECKSUM_CHARACTERS]) != text[-_CHECKSUM_CHARACTERS:]:
        return None
    return cast("Mode", match[1])


def is_key_id(text: str) -> bool:
    """Whether it can be the id by which a signature names its key: 16 hex digits of the SHA-256 of the public half."""
    return _KEY_ID.fullmatch(text) is not None


def hash_key(text: str) -> bytes:
    """SHA-256 of the whole key, the only thing stored: 190 random bits need no salt and no slow hash."""
    return hashlib.sha256(text.encode()).digest()
