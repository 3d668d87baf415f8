"""Keys as NATS writes them: Ed25519 in base32, with a prefix that shows as a letter and a checksum."""

from __future__ import annotations

import base64
import binascii

USER, ACCOUNT, OPERATOR = 20 << 3, 0, 14 << 3
"""The prefixes that show as U, A and O."""

_SEED = 18 << 3  # the prefix that shows as S
_SEED_BYTES = 36  # two of prefix, 32 of key, two of checksum
_PUBLIC_BYTES = 35  # one of prefix


def encode_nkey(prefix: bytes, key: bytes) -> str:
    data = prefix + key
    data += binascii.crc_hqx(data, 0).to_bytes(2, "little")
    return base64.b32encode(data).decode("ascii").rstrip("=")


def encode_seed(seed: bytes, kind: int = USER) -> str:
    """The seed of a user, `SU…`, or of what `kind` says."""
    return encode_nkey(_seed_prefix(kind), seed)


def decode_seed(text: str, kind: int = USER) -> bytes:
    """The 32 bytes in the seed of a user, or of what `kind` says; ValueError, which shows nothing of it."""
    data = _decode(text)
    if len(data) != _SEED_BYTES or data[:2] != _seed_prefix(kind):
        raise ValueError("not such a seed")
    return data[2:-2]


def _seed_prefix(kind: int) -> bytes:
    return bytes([_SEED | kind >> 5, kind << 3 & 0xFF])


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
