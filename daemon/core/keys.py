"""API keys (decision 22): `ak_live_` or `ak_test_`, 32 random base62 characters, 6 characters of checksum.

The checksum is the CRC-32 of everything before it, written in base62 with leading zeros: 62^6 holds every value
of 32 bits. It tells a mistyped key from a wrong one; it is no protection.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import zlib
from string import ascii_letters, digits
from typing import Final, NamedTuple, cast

import msgspec

from daemon.core.ledger.attempt import Mode
from daemon.core.people import USUAL, Role

_ALPHABET = digits + ascii_letters
_RANDOM_CHARACTERS = 32
_CHECKSUM_CHARACTERS = 6
_SHAPE = re.compile(r"ak_(live|test)_[0-9A-Za-z]{38}")


class KeyTerms(NamedTuple):
    """What a new key may do, until when (ms, 0 for never), and whether its requests may hold fields that nobody knows."""

    role: Role = USUAL
    expires_at: int = 0
    strict: bool = False


USUAL_TERMS: Final = KeyTerms()


class ApiKey(msgspec.Struct, frozen=True):
    """What is known of a key; never the key itself. Times in ms."""

    id: int
    nim: str
    mode: Mode
    label: str
    created_at: int
    revoked_at: int
    """0 while the key works"""
    role: Role = USUAL
    expires_at: int = 0
    """0 when it has no end"""
    used_at: int = 0
    """to the minute"""
    strict: bool = False
    """Whether its requests may hold no field that nobody knows (decision 27)."""

    def works_at(self, now: int) -> bool:
        """Whether it has not come to its end, in ms."""
        return not 0 < self.expires_at <= now


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


def may_be_one(text: str) -> bool:
    """By its shape alone: to look it up costs no more than its checksum does."""
    return _SHAPE.fullmatch(text) is not None


def inspect(text: str) -> Mode | None:
    """The mode of a well-formed key; None for what cannot be one of ours."""
    match = _SHAPE.fullmatch(text)
    if match is None or checksum(text[:-_CHECKSUM_CHARACTERS]) != text[-_CHECKSUM_CHARACTERS:]:
        return None
    return cast("Mode", match[1])


def hash_key(text: str) -> bytes:
    """SHA-256 of the whole key, the only thing stored: 190 random bits need no salt and no slow hash."""
    return hashlib.sha256(text.encode()).digest()
