"""A sale that is certified later: sold while its till could not wait or its machine was out of order (arrêté 2025-0049, article 6 g)."""

from typing import Literal

import msgspec

from common.language import Text
from common.wire.closure import WaitingSales
from daemon.core.clock import HOUR
from daemon.core.errors import InvalidRequest, McfdError
from daemon.core.invoice.invoice import Invoice

DeferredState = Literal["waiting", "begun", "doubtful", "certified", "refused", "withdrawn"]
OPEN_STATES: tuple[DeferredState, ...] = ("waiting", "begun", "doubtful")

TERM = 48 * HOUR
"""Within which the law wants it certified, counted from the sale (ms)."""
AMBER, RED = 24 * HOUR, 40 * HOUR
"""Ages (ms) from which people are warned."""
REQUESTED = "requested"
"""The reason of a sale whose till did not want to wait; else the code of an outage."""


class DeferredSale(msgspec.Struct, frozen=True):
    """One row; `invoice` only while it has not ended. Times in ms."""

    id: int
    key: str
    fingerprint: bytes
    request_id: str
    number: str
    type: str
    total_ttc: int
    sold_at: int
    address: str
    state: DeferredState = "waiting"
    attempt_id: int = 0
    ended_at: int = 0
    why: str = ""
    outage: int = 0
    """Number of the outage that lasted, 0 for none."""
    invoice: Invoice | None = None

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    @property
    def due_at(self) -> int:
        return self.sold_at + TERM


class DeferredBacklog(msgspec.Struct, frozen=True):
    """Sales of a book that are not certified yet. `oldest_at` is 0 without one; `doubtful`: how many a person has to decide on."""

    count: int
    total: int
    oldest_at: int
    doubtful: int

    @property
    def waiting(self) -> WaitingSales:
        return WaitingSales(self.count, self.total)

    @property
    def due_at(self) -> int:
        return self.oldest_at + TERM

    def urgency(self, now: int) -> Literal["", "amber", "red"]:
        age = now - self.oldest_at if self.oldest_at else 0
        return "red" if age >= RED else "amber" if age >= AMBER else ""


class KeyRequired(InvalidRequest):
    """A till that does not wait has to be able to ask what became of its request (400, decision 36)."""


class NumberWaits(McfdError):
    """The number is that of a sale that waits for its certification."""

    def __init__(self, number: str) -> None:
        super().__init__(Text("invoice number {number!r} waits for its certification", number=number))


class NotWaiting(McfdError):
    """It cannot be taken back: it has ended, or only the machine can tell what became of it."""
