"""Requests that are signed (RFC 9421, Ed25519) instead of showing their key: an intermediary cannot change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver
from http_message_signatures.algorithms import ED25519

from common.language import Text
from daemon.core.errors import RequestExpired
from daemon.core.keys import ApiKey
from daemon.store.tables.keys import ApiKeyRing

COVERED: Final = (
    "content-digest",
    "content-type",
    "idempotency-key",
    "mcfd-not-after",
    "mcfd-strict",
    "mcfd-test",
    "prefer",
)
"""Headers that decide what a request does: each that is there has to be covered."""
NOT_SIGNED: Final = Text("the signature does not hold for this request, or is of no key of this box")


class SignedRequest(NamedTuple):
    """`headers` by their names in small letters, those given twice with a comma between; `url` with its query."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class _Keys(HTTPSignatureKeyResolver):
    """Remembers the key: the library gives only its id."""

    def __init__(self, keyring: ApiKeyRing) -> None:
        self._keyring = keyring
        self.found: ApiKey | None = None

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey | None:
        self.found = self._keyring.find_signer(key_id)
        return Ed25519PublicKey.from_public_bytes(self.found.public) if self.found else None


class _Verifier(HTTPMessageVerifier):
    def validate_created_and_expires(self, sig_input: Any, max_age: Any = None) -> None:
        """`signer` looks at `expires`, by the relay's time; `created` is by a clock that need not be the box's."""


def signer(keyring: ApiKeyRing, request: SignedRequest, now: int) -> ApiKey | None:
    """The key that signed exactly this request, `Mcfd-Not-After` and body included; None when none did, whatever is wrong with it.
    RequestExpired where the signature `expires` before `now` (ms)."""
    keys = _Keys(keyring)
    required = ["@method", "@path", "mcfd-not-after"]
    required += [name for name in COVERED if name in request.headers and name not in required]
    if "?" in request.url:
        required.append("@query")
    try:
        (found,) = _Verifier(signature_algorithm=ED25519, key_resolver=keys).verify(
            request, max_age=None, require_components=required, body=request.body
        )
        is_expired = int(found.parameters.get("expires", now)) * 1000 < now
    except Exception:  # noqa: BLE001  # whatever a stranger wrote, and however the library fails at it: it is not signed
        return None
    if is_expired:
        raise RequestExpired
    return keys.found
