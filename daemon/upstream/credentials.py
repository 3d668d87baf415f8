"""A NATS credentials file (`.creds`): the user's JWT, if any, and the nkey seed that proves it.

nats-py reads these files only with the `nkeys` package; an nkey is a plain Ed25519 key in base32, and `cryptography`
is here already.
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from daemon.upstream.options import BadOptions, read_file

_BLOCK = re.compile(r"-{3,}BEGIN ([A-Z ]+)-{3,}\s+(\S+)\s+-{3,}END [A-Z ]+-{3,}")
_SEED = 18 << 3  # the prefix that shows as S
_USER = 20 << 3  # the prefix that shows as U
_SEED_BYTES = 36  # two of prefix, 32 of key, two of checksum


class Credentials:
    """`jwt` is empty where the server knows the public key itself."""

    def __init__(self, jwt: str, seed: bytes) -> None:
        self.jwt = jwt
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    def sign(self, nonce: str) -> bytes:
        return base64.b64encode(self._key.sign(nonce.encode()))

    @property
    def public(self) -> str:
        """The user's public nkey, `U…`."""
        return encode_nkey(bytes([_USER]), self._key.public_key().public_bytes_raw())


def read_credentials(path: Path) -> Credentials:
    text = read_file(path, "upstream.credentials_file")
    blocks = dict(_BLOCK.findall(text))
    seed = blocks.get("USER NKEY SEED", text)
    try:
        return Credentials(blocks.get("NATS USER JWT", ""), _decode_seed(seed))
    except ValueError:  # whatever is wrong with a secret, it is not shown
        raise BadOptions(f"upstream.credentials_file {path}: no NATS credentials in it") from None


def encode_nkey(prefix: bytes, key: bytes) -> str:
    data = prefix + key
    data += binascii.crc_hqx(data, 0).to_bytes(2, "little")
    return base64.b32encode(data).decode("ascii").rstrip("=")


def _decode_seed(text: str) -> bytes:
    data = base64.b32decode(text + "=" * (-len(text) % 8))
    checksum = binascii.crc_hqx(data[:-2], 0).to_bytes(2, "little")
    if len(data) != _SEED_BYTES or data[-2:] != checksum or not text.startswith("SU"):
        raise ValueError("not the seed of a user")
    return data[2:-2]


def encode_seed(seed: bytes) -> str:
    """The seed of a user, `SU…`."""
    return encode_nkey(bytes([_SEED | _USER >> 5, _USER << 3 & 0xFF]), seed)
