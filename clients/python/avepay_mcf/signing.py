"""Signed requests for the relay, without the key (RFC 9421, Ed25519): `mcfd keys create --via relay --signed`."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime

import httpx

PRIVATE = "whsk_"
COVERED = ("content-digest", "content-type", "idempotency-key", "mcfd-not-after", "mcfd-strict", "mcfd-test", "prefer")
"""Headers that determine the effect of a request; those present are covered."""
SEED_BYTES = 32


class RequestSignature(httpx.Auth):
    """Signs each attempt, valid for `seconds`: the box refuses a late one (410), and it is repeated."""

    requires_request_body = True

    def __init__(self, key: str, seconds: float, now: Callable[[], float] = time.time) -> None:
        # Of the extra `signed`: a client that sends a key needs none of it.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415  # see above

        seed = base64.b64decode(key.removeprefix(PRIVATE) + "==")[:SEED_BYTES]
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self._key_id = hashlib.sha256(self._key.public_key().public_bytes_raw()).hexdigest()[:16]
        self._seconds = seconds
        self._now = now

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        now = self._now()
        until = datetime.fromtimestamp(now + self._seconds, UTC)
        request.headers["Mcfd-Not-After"] = until.strftime("%Y-%m-%dT%H:%M:%SZ")
        if request.content:
            request.headers["Content-Digest"] = f"sha-256=:{_encoded(hashlib.sha256(request.content).digest())}:"
        path, has_query, query = request.url.raw_path.decode("ascii").partition("?")
        covered = {"@method": request.method, "@path": path}
        if has_query:
            covered["@query"] = f"?{query}"
        covered |= {name: request.headers[name] for name in COVERED if name in request.headers}
        names = " ".join(f'"{name}"' for name in covered)
        parameters = f'({names});created={int(now)};keyid="{self._key_id}";alg="ed25519"'
        base = "\n".join(
            [*(f'"{name}": {value}' for name, value in covered.items()), f'"@signature-params": {parameters}']
        )
        request.headers["Signature-Input"] = f"mcf={parameters}"
        request.headers["Signature"] = f"mcf=:{_encoded(self._key.sign(base.encode('ascii')))}:"
        yield request


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
