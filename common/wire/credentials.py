"""A NATS credentials file: `.creds` as `nsc` writes it, or the seed of an nkey alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult

from common.files import read_secret
from common.wire.keys import PUBLIC, PrivateKey, decode
from common.wire.nkey import USER, decode_seed, encode_nkey

_BLOCK = re.compile(r"-{3,}BEGIN ([A-Z ]+)-{3,}\s+(\S+)\s+-{3,}END [A-Z ]+-{3,}")


class BadCredentials(Exception):
    """Says which key of the configuration, which file, and what is wrong; shows nothing of the file."""


class Credentials:
    """`public` is the user's public nkey, `U…`; `jwt` is empty where the server knows the public key itself."""

    def __init__(self, jwt: str, seed: bytes) -> None:
        self.jwt = jwt
        self.seed = seed
        """Opens what was sealed for this key (`common.wire.seal`)."""
        self.signing_key = PrivateKey(seed)
        """The same key, for what is sent: headquarters knows its public half already."""
        self.public = encode_nkey(bytes([USER]), decode(self.signing_key.public.removeprefix(PUBLIC)))

    def sign(self, nonce: str) -> bytes:
        return self.signing_key.sign(nonce.encode()).partition(",")[2].encode()


def read_credentials(path: Path, option: str) -> Credentials:
    """`option`: the key of the configuration that names the file, for BadCredentials."""
    try:
        text = read_secret(path).decode("ascii")
    except OSError as error:
        raise BadCredentials(f"{option} {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadCredentials(f"{option} {path}: not text") from None
    try:
        return credentials_of(text)
    except ValueError:
        raise BadCredentials(f"{option} {path}: no NATS credentials in it") from None


def credentials_of(text: str) -> Credentials:
    """From what stands in such a file; ValueError."""
    blocks = dict(_BLOCK.findall(text))
    return Credentials(blocks.get("NATS USER JWT", ""), decode_seed(blocks.get("USER NKEY SEED", text)))


def credentials_text(jwt: str, seed: str) -> str:
    """The file of a user with that seed, `SU…`."""
    blocks = (("NATS USER JWT", jwt), ("USER NKEY SEED", seed))
    return "\n".join(f"-----BEGIN {name}-----\n{text}\n------END {name}------\n" for name, text in blocks)


def introduction(
    url: SplitResult, signer: Credentials | None, info: Mapping[str, Any], name: str
) -> dict[str, str | bool | int]:
    """The fields of CONNECT: who the client is, by user and password or token of the address, or by its key."""
    fields: dict[str, str | bool | int] = {
        "verbose": False,
        "pedantic": False,
        "echo": False,
        "headers": True,
        "no_responders": True,
        "lang": "python",
        "version": "1",
        "protocol": 1,
        "name": name,
    }
    if url.password is not None:
        fields |= {"user": url.username or "", "pass": url.password}
    elif url.username:
        fields["auth_token"] = url.username
    if signer is not None:
        fields["sig"] = signer.sign(str(info.get("nonce", ""))).decode()
        fields |= {"jwt": signer.jwt} if signer.jwt else {"nkey": signer.public}
    return fields
