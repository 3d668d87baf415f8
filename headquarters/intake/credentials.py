"""A NATS credentials file: `.creds` as `nsc` writes it, or the seed of an nkey alone."""

from __future__ import annotations

import re
from pathlib import Path

from common.wire.keys import PUBLIC, PrivateKey, decode
from common.wire.nkey import USER, decode_seed, encode_nkey

_BLOCK = re.compile(r"-{3,}BEGIN ([A-Z ]+)-{3,}\s+(\S+)\s+-{3,}END [A-Z ]+-{3,}")


class BadCredentials(Exception):
    """Says which file and what is wrong, and shows nothing of it."""


class Credentials:
    """`public` is the user's public nkey, `U…`; `jwt` is empty for a plain nkey."""

    def __init__(self, jwt: str, seed: bytes) -> None:
        self.jwt = jwt
        self._key = PrivateKey(seed)
        self.public = encode_nkey(bytes([USER]), decode(self._key.public.removeprefix(PUBLIC)))

    def sign(self, nonce: str) -> bytes:
        return self._key.sign(nonce.encode()).partition(",")[2].encode()


def read_credentials(path: Path) -> Credentials:
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadCredentials(f"nats.credentials_file {path}: {error}") from None
    blocks = dict(_BLOCK.findall(text))
    try:
        return Credentials(blocks.get("NATS USER JWT", ""), decode_seed(blocks.get("USER NKEY SEED", text)))
    except ValueError:
        raise BadCredentials(f"nats.credentials_file {path}: no NATS credentials in it") from None
