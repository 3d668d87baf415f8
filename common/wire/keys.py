"""Keys that sign and keys that verify: a shared `whsec_…`, our own `whsk_…`, its public half `whpk_…`, a NATS user's `U…`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Protocol

from common.wire.nkey import decode_public

SHARED = "whsec_"
PRIVATE = "whsk_"
PUBLIC = "whpk_"
KEY_BYTES = 32
SIGNATURE_BYTES = 64
SECRET_BYTES = range(24, 65)
"""What Standard Webhooks asks of a shared secret: fewer can be guessed, more is a mistake."""
ID_DIGITS = 16


class BadKey(ValueError):
    """Says what is wrong with a key, and shows nothing of it."""


class SigningKey(Protocol):
    @property
    def id(self) -> str:
        """Names the key without showing it: 16 hex digits, the same on both sides."""
        ...

    def sign(self, content: bytes) -> str:
        """As it stands in the header: version, comma, base64."""
        ...


class VerifyingKey(Protocol):
    @property
    def id(self) -> str: ...

    def holds(self, signature: str, content: bytes) -> bool:
        """Whether that one signature, as it stands in the header, is of this key and this content."""
        ...


class SharedKey:
    """Signs and verifies; `v1`."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.id = hmac.digest(secret, b"mcfd key id", hashlib.sha256).hex()[:ID_DIGITS]

    def sign(self, content: bytes) -> str:
        return "v1," + encode(hmac.digest(self._secret, content, hashlib.sha256))

    def holds(self, signature: str, content: bytes) -> bool:
        return hmac.compare_digest(signature.encode(), self.sign(content).encode())


class PrivateKey:
    """Signs; `v1a`."""

    def __init__(self, seed: bytes) -> None:
        # Where only shared secrets sign, a box is spared the 6 MB of it.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415  # see above

        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        public = self._key.public_key().public_bytes_raw()
        self.public = PUBLIC + encode(public)
        """For headquarters."""
        self.id = _public_id(public)

    def sign(self, content: bytes) -> str:
        return "v1a," + encode(self._key.sign(content))


class PublicKey:
    """Verifies; `v1a`. Headquarters holds tens of thousands of them: no more than these bytes each. libsodium, which its extra `hq` brings,
    takes half the time of OpenSSL, and lets the other threads run meanwhile."""

    __slots__ = ("_public", "id")

    def __init__(self, public: bytes) -> None:
        self._public = public
        self.id = _public_id(public)

    def holds(self, signature: str, content: bytes) -> bool:
        # A box only signs, and does not have it.
        from nacl.bindings import crypto_sign_open  # noqa: PLC0415  # see above
        from nacl.exceptions import BadSignatureError  # noqa: PLC0415  # see above

        version, _, value = signature.partition(",")
        if version != "v1a":
            return False
        try:
            found = decode(value)
            if len(found) != SIGNATURE_BYTES:
                return False
            crypto_sign_open(found + content, self._public)
        except (BadSignatureError, BadKey):
            return False
        return True


def signing_key(line: str) -> SharedKey | PrivateKey:
    """From one line of a key file."""
    if line.startswith(SHARED):
        return _shared(line)
    if line.startswith(PRIVATE):
        # 32 bytes of seed; other tools append the 32 of the public key
        seed = decode(line.removeprefix(PRIVATE))
        if len(seed) not in (KEY_BYTES, 2 * KEY_BYTES):
            raise BadKey("damaged")
        return PrivateKey(seed[:KEY_BYTES])
    raise BadKey(f"neither {SHARED}… nor {PRIVATE}…")


def verifying_key(line: str) -> SharedKey | PublicKey:
    """What headquarters holds of a box: the shared secret, or the public half of its key, as keygen or as NATS writes it."""
    if line.startswith(SHARED):
        return _shared(line)
    if line.startswith(PUBLIC):
        public = decode(line.removeprefix(PUBLIC))
        if len(public) != KEY_BYTES:
            raise BadKey("damaged")
        return PublicKey(public)
    try:
        return PublicKey(decode_public(line))
    except ValueError:
        raise BadKey(f"neither {SHARED}… nor {PUBLIC}… nor a user's key of NATS (U…)") from None


def private_line(seed: bytes) -> str:
    """A private key as it stands in its file: seed and public key, as other tools of Standard Webhooks write it."""
    return PRIVATE + encode(seed + decode(PrivateKey(seed).public.removeprefix(PUBLIC)))


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BadKey("damaged") from None


def _shared(line: str) -> SharedKey:
    secret = decode(line.removeprefix(SHARED))
    if not secret:
        raise BadKey("damaged")
    if len(secret) not in SECRET_BYTES:
        raise BadKey(
            f"a shared secret has {SECRET_BYTES.start} to {SECRET_BYTES.stop - 1} bytes, this one {len(secret)}"
        )
    return SharedKey(secret)


def _public_id(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[:ID_DIGITS]
