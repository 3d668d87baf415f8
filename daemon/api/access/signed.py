"""Signed requests (RFC 9421, Ed25519), which no intermediary can change; they do not contain the key."""

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
"""Headers that change what a request does: each one present has to be covered by the signature."""
NOT_SIGNED: Final = Text("the signature does not hold for this request, or is of no key of this box")


class SignedRequest(NamedTuple):
    """`headers`: by lower-case name, repeated ones joined by a comma; `url`: with its query."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class _Keys(HTTPSignatureKeyResolver):
    """Stores the key that was found, since the library returns only its id."""

    def __init__(self, keyring: ApiKeyRing) -> None:
        self._keyring = keyring
        self.found: ApiKey | None = None

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey | None:
        self.found = self._keyring.find_signer(key_id)
        return Ed25519PublicKey.from_public_bytes(self.found.public) if self.found else None


class _Verifier(HTTPMessageVerifier):
    def validate_created_and_expires(self, sig_input: Any, max_age: Any = None) -> None:
        """Checks nothing: `signer` checks `expires` by the relay's time, and `created` may be of another clock."""


def signer(keyring: ApiKeyRing, request: SignedRequest, now: int) -> ApiKey | None:
    """The key that signed this request, with `Mcfd-Not-After` and body; None for any invalid signature. RequestExpired
    if the signature `expires` before `now` (ms)."""
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
