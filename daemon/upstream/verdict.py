"""What becomes of one try: the one table of what is delivered, what is parked and what is tried again, for every way out.

Parked is only what is wrong in the event itself, and would be as wrong at the next try. What is wrong at the other side (a key, an
address, a full disk, a page of a hotel's network) is set right there, and then everything comes by itself, with nobody
typing anything at ten thousand boxes."""

from __future__ import annotations

from typing import Final

from common.language.reasons import ANSWERED, ANSWERED_WITHOUT_RECEIPT
from daemon.core.delivery import Again, Delivered, Delivery, DeliveryRefused

TAKEN: Final = frozenset({*range(200, 300), 409})
"""409: it has that event already."""
PARKED: Final = frozenset({400, 413, 422})
"""It is no event, it is too large, or it says what cannot be: headquarters cannot read it now and will not later."""


def verdict(status: int, text: str, retry_after: float | None, *, has_receipt: bool = True) -> Delivery:
    """Of an answer over HTTP. `text` is its beginning, for people; `has_receipt` is whether it proves that it read the event,
    where that is asked for."""
    if status in TAKEN:
        told = ANSWERED_WITHOUT_RECEIPT(answer=f"{status} {text}".rstrip())
        return Delivered() if has_receipt else Again(told, retry_after)
    error = ANSWERED(answer=f"{status} {text}".rstrip())
    return DeliveryRefused(error) if status in PARKED else Again(error, retry_after)
