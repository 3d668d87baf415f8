"""Standard Webhooks signatures: `v1` HMAC-SHA256 with a shared `whsec_…`, `v1a` Ed25519 with our own `whsk_…`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from daemon.upstream.options import BadOptions, read_file

SHARED = "whsec_"
PRIVATE = "whsk_"
PUBLIC = "whpk_"
SEED_BYTES = 32


class Key(Protocol):
    def sign(self, content: bytes) -> str:
        """As it stands in the header: version, comma, base64."""
        ...


class SharedKey:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def sign(self, content: bytes) -> str:
        return "v1," + _base64(hmac.digest(self._secret, content, hashlib.sha256))


class PrivateKey:
    def __init__(self, seed: bytes) -> None:
        # Where only shared secrets sign, a box is spared the 6 MB of it.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415  # see above

        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    def sign(self, content: bytes) -> str:
        return "v1a," + _base64(self._key.sign(content))

    @property
    def public(self) -> str:
        """For headquarters: `whpk_<base64>`."""
        return PUBLIC + _base64(self._key.public_key().public_bytes_raw())


def sign(keys: Iterable[Key], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers of one attempt; `timestamp` in seconds since 1970."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(key.sign(content) for key in keys),
    }


def read_keys(paths: Sequence[Path]) -> list[SharedKey | PrivateKey]:
    """One key a line; two lines while a key is being replaced: both sign."""
    keys = []
    for path in paths:
        lines = read_file(path, "upstream key").split()
        if not lines:
            raise BadOptions(f"upstream key {path}: empty")
        keys += [parse_key(line, str(path)) for line in lines]
    return keys


def parse_key(line: str, where: str) -> SharedKey | PrivateKey:
    """`where` is what an error names; the key itself is never shown."""
    try:
        if line.startswith(SHARED):
            return SharedKey(_decode(line.removeprefix(SHARED)))
        if line.startswith(PRIVATE):
            # 32 bytes of seed; other tools append the 32 of the public key
            return PrivateKey(_decode(line.removeprefix(PRIVATE))[:SEED_BYTES])
    except ValueError:
        raise BadOptions(f"upstream key {where}: damaged") from None
    raise BadOptions(f"upstream key {where}: neither {SHARED}… nor {PRIVATE}…")


def generate(path: Path) -> str:
    """Make a key pair, write the private key to `path` (0600, never over an existing file), give back the public one."""
    seed = os.urandom(SEED_BYTES)
    key = PrivateKey(seed)
    public = key.public.removeprefix(PUBLIC)
    line = PRIVATE + _base64(seed + base64.b64decode(public)) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
    return key.public


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(text: str) -> bytes:
    try:
        secret = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error
    if not secret:
        raise ValueError("empty")
    return secret
