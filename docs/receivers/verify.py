"""Verifies the signature of a closure with any Ed25519 library (docs/upstream.md)."""

import base64

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def holds(public, headers, body):
    """Whether one of the signatures is valid for the key `public` (whpk_…) and these bytes."""
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public.removeprefix("whpk_")))
    content = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + body
    for signature in headers.get("webhook-signature", "").split():
        version, _, value = signature.partition(",")
        try:
            if version == "v1a":
                key.verify(base64.b64decode(value), content)
                return True
        except (InvalidSignature, ValueError):
            pass
    return False
