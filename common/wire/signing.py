"""Standard Webhooks signatures, the same over HTTPS and NATS: three headers beside the body. While a key is replaced,
several keys sign; the receiver tries every signature with every key. The optional receipt: headquarters returns the
hash of the bytes it took, so that no login page passes for a delivery."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from common.wire.errors import BadEvent, decoded
from common.wire.keys import SigningKey, VerifyingKey

ID = "webhook-id"
TIMESTAMP = "webhook-timestamp"
SIGNATURE = "webhook-signature"
WINDOW_SECONDS = 300
"""Largest difference between a signature's time and the receiver's clock, as Standard Webhooks recommends."""
MAX_SIGNATURES = 16
MAX_DIGITS = 12

K = TypeVar("K", bound=VerifyingKey)


class NotSigned(ValueError):
    """No signature is valid for any known key."""


class WrongTime(NotSigned):
    """A valid signature with a time outside the window. `off` is the difference in seconds, negative for the past."""

    def __init__(self, off: int) -> None:
        super().__init__(f"signed {abs(off)} s {'before' if off < 0 else 'after'} now")
        self.off = off


def sign(keys: Iterable[SigningKey], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers of one try; `timestamp` in seconds since 1970."""
    content = _content(message_id, str(timestamp), body)
    return {ID: message_id, TIMESTAMP: str(timestamp), SIGNATURE: " ".join(key.sign(content) for key in keys)}


def verify(
    keys: Sequence[K], headers: Mapping[str, str], body: bytes, *, now: float, window: float | None = WINDOW_SECONDS
) -> K:
    """The key of a valid signature. Raises NotSigned if none is valid, WrongTime if only its time is wrong. `headers`
    by names in lower case; `window` None accepts any time, for a receiver that remembers each id."""
    try:
        message_id, timestamp, signature_header = headers[ID], headers[TIMESTAMP], headers[SIGNATURE]
    except KeyError as missing:
        raise NotSigned(f"no header {missing.args[0]}") from None
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= MAX_DIGITS):
        raise NotSigned(f"{TIMESTAMP} is not a time")
    content = _content(message_id, timestamp, body)
    signatures = signature_header.split()[:MAX_SIGNATURES]
    key = next((key for key in keys for signature in signatures if key.verifies(signature, content)), None)
    if key is None:
        raise NotSigned("no signature of a known key holds")
    off = int(timestamp) - int(now)
    if window is not None and abs(off) > window:
        raise WrongTime(off)
    return key


def _content(message_id: str, timestamp: str, body: bytes) -> bytes:
    return f"{message_id}.{timestamp}.".encode() + body


class DeliveryReceipt(msgspec.Struct, frozen=True):
    """JSON body of a 2xx or 409 answer: the `webhook-id`, and the SHA-256 of the received body in hex."""

    id: str
    sha256: str


def receipt_of(message_id: str, body: bytes) -> DeliveryReceipt:
    return DeliveryReceipt(message_id, hashlib.sha256(body).hexdigest())


def is_receipt(answer: bytes, message_id: str, body: bytes) -> bool:
    try:
        return decoded(answer, DeliveryReceipt) == receipt_of(message_id, body)
    except BadEvent:
        return False
