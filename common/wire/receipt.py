"""The optional receipt: headquarters says which bytes it has taken, so that no login page passes for a delivery."""

from __future__ import annotations

import hashlib

import msgspec

from common.wire.errors import BadEvent, decoded


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
