"""A client that signs its requests (RFC 9421) with the library that the box verifies by: `signed` gives the headers to send."""

import base64
import hashlib
from datetime import datetime
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageSigner, HTTPSignatureKeyResolver
from http_message_signatures.algorithms import ED25519

from common.wire.keys import PRIVATE, PrivateKey, decode


class _Key(HTTPSignatureKeyResolver):
    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    def resolve_private_key(self, key_id: str) -> Ed25519PrivateKey:
        assert key_id
        return self._key


class _Request:
    def __init__(self, method: str, url: str, headers: dict[str, str]) -> None:
        self.method, self.url, self.headers = method, url, headers


def signed(
    key: str,
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes = b"",
    *,
    leave_out: tuple[str, ...] = (),
    **times: datetime,
) -> dict[str, str]:
    """`headers` with `Mcfd-Not-After` among them, and the signature of all that has to be covered; `times`: `created` and `expires`."""
    seed = decode(key.removeprefix(PRIVATE))[:32]
    headers = {name.lower(): value for name, value in headers.items()}
    if body:
        headers["content-digest"] = f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"
    covered = ["@method", "@path", *(["@query"] if urlsplit(url).query else []), *headers]
    request = _Request(method, url, headers)
    HTTPMessageSigner(signature_algorithm=ED25519, key_resolver=_Key(seed)).sign(
        request,
        key_id=PrivateKey(seed).id,
        covered_component_ids=[name for name in covered if name not in leave_out],
        label="mcf",
        use_existing_digest=bool(body),
        **times,
    )
    return {name.lower(): value for name, value in request.headers.items()}
