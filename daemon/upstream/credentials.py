"""A NATS credentials file (`.creds`): the user's JWT, if any, and the nkey seed that proves it.

nats-py reads these files only with the `nkeys` package; an nkey is a plain Ed25519 key in base32 (`common.wire.nkey`), and
`cryptography` is here already.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from common.wire.keys import PrivateKey
from common.wire.nkey import USER, decode_seed, encode_nkey
from daemon.upstream.options import BadOptions, read_file

_BLOCK = re.compile(r"-{3,}BEGIN ([A-Z ]+)-{3,}\s+(\S+)\s+-{3,}END [A-Z ]+-{3,}")


class Credentials:
    """`jwt` is empty where the server knows the public key itself."""

    def __init__(self, jwt: str, seed: bytes) -> None:
        self.jwt = jwt
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = encode_nkey(bytes([USER]), self._key.public_key().public_bytes_raw())
        """The user's public nkey, `U…`."""
        self.signing_key = PrivateKey(seed)
        """The same key, for what is sent: headquarters knows its public half already."""

    def sign(self, nonce: str) -> bytes:
        return base64.b64encode(self._key.sign(nonce.encode()))


def read_credentials(path: Path) -> Credentials:
    text = read_file(path, "upstream.credentials_file")
    blocks = dict(_BLOCK.findall(text))
    seed = blocks.get("USER NKEY SEED", text)
    try:
        return Credentials(blocks.get("NATS USER JWT", ""), decode_seed(seed))
    except ValueError:  # whatever is wrong with a secret, it is not shown
        raise BadOptions(f"upstream.credentials_file {path}: no NATS credentials in it") from None
