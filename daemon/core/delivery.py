"""A closure for headquarters, an event for a webhook, and the result of one delivery."""

from typing import Literal, Protocol

import msgspec

from common.language import Text
from common.wire.presence import PresenceAnswer
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.entries import Gap
from daemon.core.machine.state import FiscalCounters


class Proof(msgspec.Struct, frozen=True):
    """What lets the receiver of the closures see that none is missing, altered, or from a ledger that was put back."""

    ledger_id: str
    epoch: int
    """Of when the closure was made."""
    first_seq: int
    last_seq: int
    previous_report_id: str | None
    """None for the first closure of its book."""
    previous_head: bytes
    opening: tuple[int, int, int] | None
    """tc, fvc, frc at the closure before; None when there is none."""
    gaps: tuple[Gap, ...] = ()
    """Numbers since the closure before that this ledger never had."""


class BookSummary(msgspec.Struct, frozen=True):
    """The head of a book: its last closure and entry with their hashes (empty before the first), the machine's known
    counters, and the time of the last certification (ms, 0 for never)."""

    ledger_id: str
    epoch: int
    z_number: int
    z_head: bytes
    seq: int
    head: bytes
    counters: FiscalCounters | None
    certified_at: int
    needs_last_z: bool
    """The last Z number is unknown here."""


class Outgoing(msgspec.Struct, frozen=True):
    """One row of the outbox. `body` is the Z report as JSON, exactly as the till got it, or by `kind` the closure of a
    month or year, whose number stands in place of a Z's. `chain`: hash of the closure in its book. `created_at` and
    `last_sent` (an earlier delivery, 0 for never; set when an operator replays it) in ms since 1970."""

    id: int
    nim: str
    mode: Mode
    z_number: int
    report_id: str
    created_at: int
    body: bytes
    chain: bytes
    last_sent: int
    proof: Proof | None = None
    kind: Literal["Z", "month", "year"] = "Z"
    lineage: tuple[str, int] | None = None
    """The ledger's id and epoch, of a month or year alone."""

    @property
    def names(self) -> dict[str, str | int]:
        """For the log."""
        return {"nim": self.nim, "mode": self.mode, "z_number": self.z_number, "report_id": self.report_id}


class WaitingEvent(msgspec.Struct, frozen=True):
    """An event for a webhook. `ref_id`: its attempt or z_number, else the event's id; `at` and `last_sent` in ms."""

    id: int
    book_id: int
    type: str
    ref_id: int
    at: int
    tries: int
    last_sent: int


class Posting(msgspec.Struct, frozen=True):
    """One event for one webhook."""

    id: int
    nim: str
    mode: Mode
    type: str
    report_id: str
    """what the receiver knows it by"""
    body: bytes
    """empty when it cannot be made"""
    created_at: int
    """ms, as `last_sent`"""
    last_sent: int
    missing: str = ""
    """why there is no body"""

    @property
    def names(self) -> dict[str, str | int]:
        return {"nim": self.nim, "mode": self.mode, "type": self.type, "webhook_id": self.report_id}


class Backlog(msgspec.Struct, frozen=True):
    """What the outbox holds of one book, for people. Times in milliseconds since 1970 UTC, 0 for none."""

    nim: str
    mode: Mode
    waiting: int
    parked: int
    oldest_at: int
    """`created_at` of the oldest waiting closure"""
    last_error: str
    last_error_at: int
    last_sent_at: int


class Delivered(msgspec.Struct, frozen=True):
    """Headquarters has it, now or since an earlier try."""


class RetryLater(msgspec.Struct, frozen=True):
    """To be tried again, for ever: refused for now, unreachable, or unknown. `retry_after` in seconds."""

    error: Text
    retry_after: float | None = None


class DeliveryRefused(msgspec.Struct, frozen=True):
    """Headquarters will not take this one: it is parked, for an operator to see; those behind it go on."""

    error: Text


Delivery = Delivered | RetryLater | DeliveryRefused


class UpstreamReceiver(Protocol):
    """Headquarters or a webhook. A delivery ends in bounded time and raises no error for a fault of the receiver.
    `subject`: kind of the event, as `closure`; `report_id`: by which the receiver detects repeats; `since`: time of the
    event; `last_sent`: of an earlier delivery, 0 for never (ms)."""

    @property
    def key_id(self) -> str:
        """Of the key that signs first."""
        ...

    async def deliver(
        self, event: bytes, *, report_id: str, subject: str, nim: str, since: int, last_sent: int
    ) -> Delivery: ...
    async def announce(self, presence: bytes, *, nim: str) -> PresenceAnswer | None:
        """What headquarters requests; None without an answer."""
        ...

    async def trial(self, event: bytes, *, event_id: str, nim: str) -> Delivery:
        """Sends a test message (`common.wire.closure`); the receiver checks it and stores nothing."""
        ...

    async def aclose(self) -> None: ...
