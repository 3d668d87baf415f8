"""Standard Webhooks signatures, the same over HTTPS and over NATS: three headers beside the body.

While a key is replaced several sign, and who verifies tries every signature with every key.

The optional receipt: headquarters says which bytes it has taken, so that no login page passes for a delivery."""

from __future__ import annotations

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
"""How far the time of a signature may be from the receiver's clock, as Standard Webhooks recommends."""
MOST_SIGNATURES = 16
MOST_DIGITS = 12

K = TypeVar("K", bound=VerifyingKey)


class NotSigned(ValueError):
    """No signature of a known key holds for what came."""


class WrongTime(NotSigned):
    """Well signed, and at another time than the receiver's. `off` is by how many seconds, below zero for the past."""

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
    """The key that one of the signatures is of. NotSigned when there is none; WrongTime when it holds and its time does not.

    `headers` by their names in small letters; `window` None takes any time, for a receiver that knows each id it has taken."""
    try:
        message_id, timestamp, signature_header = headers[ID], headers[TIMESTAMP], headers[SIGNATURE]
    except KeyError as missing:
        raise NotSigned(f"no header {missing.args[0]}") from None
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= MOST_DIGITS):
        raise NotSigned(f"{TIMESTAMP} is not a time")
    content = _content(message_id, timestamp, body)
    signatures = signature_header.split()[:MOST_SIGNATURES]
    key = next((key for key in keys for signature in signatures if key.holds(signature, content)), None)
    if key is None:
        raise NotSigned("no signature of a known key holds")
    off = int(timestamp) - int(now)
    if window is not None and abs(off) > window:
        raise WrongTime(off)
    return key


def _content(message_id: str, timestamp: str, body: bytes) -> bytes:
    return f"{message_id}.{timestamp}.".encode() + body


class DeliveryReceipt(msgspec.Struct, frozen=True):
    """The JSON body of an answer 2xx or 409: the `webhook-id`, and SHA-256 in hex of the body as it came."""

    id: str
    sha256: str


def receipt_of(message_id: str, body: bytes) -> DeliveryReceipt:
    return DeliveryReceipt(message_id, hashlib.sha256(body).hexdigest())


def is_receipt(answer: bytes, message_id: str, body: bytes) -> bool:
    try:
        return decoded(answer, DeliveryReceipt) == receipt_of(message_id, body)
    except BadEvent:
        return False
