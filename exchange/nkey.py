"""Keys as NATS writes them: Ed25519 in base32, with a prefix that shows as a letter and a checksum."""

from __future__ import annotations

import base64
import binascii

USER = 20 << 3
"""The prefix that shows as U."""

_SEED = 18 << 3  # the prefix that shows as S
_SEED_BYTES = 36  # two of prefix, 32 of key, two of checksum
_PUBLIC_BYTES = 35  # one of prefix


def encode_nkey(prefix: bytes, key: bytes) -> str:
    data = prefix + key
    data += binascii.crc_hqx(data, 0).to_bytes(2, "little")
    return base64.b32encode(data).decode("ascii").rstrip("=")


def encode_seed(seed: bytes) -> str:
    """The seed of a user, `SU…`."""
    return encode_nkey(bytes([_SEED | USER >> 5, USER << 3 & 0xFF]), seed)


def decode_seed(text: str) -> bytes:
    """The 32 bytes in the seed of a user; ValueError, which shows nothing of it."""
    data = _decode(text)
    if len(data) != _SEED_BYTES or not text.startswith("SU"):
        raise ValueError("not the seed of a user")
    return data[2:-2]


def decode_public(text: str) -> bytes:
    """The 32 bytes of a user's public key, `U…`; ValueError when it is none."""
    data = _decode(text)
    if len(data) != _PUBLIC_BYTES or data[0] != USER:
        raise ValueError("not the public key of a user")
    return data[1:-2]


def _decode(text: str) -> bytes:
    try:
        data = base64.b32decode(text + "=" * (-len(text) % 8))
    except binascii.Error:
        raise ValueError("not base32") from None
    if data[-2:] != binascii.crc_hqx(data[:-2], 0).to_bytes(2, "little"):
        raise ValueError("wrong checksum")
    return data
