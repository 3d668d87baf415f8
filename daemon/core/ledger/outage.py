"""The register of outages: from when to when a machine could not certify, why, what was sold meanwhile and who was notified (arrêté 2025-0049,
articles 6 and 7)."""

from collections.abc import Iterable
from typing import Final

import msgspec

from daemon.core.clock import HOUR
from daemon.core.ledger.entries import OutageBegun, OutageEnded, OutageNotified, OutageReason, Placed, Recipient

LIMIT: Final = 300.0
"""Seconds after which an outage is in the register, also where no till was refused."""

SLACK: Final = HOUR
"""By so much (ms) the clock of the person who notes a notification may be off the book's."""


class Notice(msgspec.Struct, frozen=True):
    """A notification of an outage; `at` in ms, as a person entered it."""

    who: Recipient
    reference: str
    at: int


class Outage(msgspec.Struct, frozen=True):
    """One outage of one machine, made of its entries in the chain. Times in ms of the book; `until` is 0 while it lasts."""

    number: int
    nim: str
    reason: OutageReason
    since: int
    until: int
    refused: bool
    """A till was refused, or its sale taken on to be certified later."""
    incident: str = ""
    """Of the line's recorder, empty without one."""
    notices: tuple[Notice, ...] = ()
    sales: int = 0
    """Sales made meanwhile that are certified later; `sales_total` in whole XOF."""
    sales_total: int = 0

    @property
    def is_open(self) -> bool:
        return not self.until

    def duration(self, now: int) -> int:
        """In ms; of one that lasts, until `now`."""
        return (self.until or max(now, self.since)) - self.since


def read_outage(entries: Iterable[Placed]) -> Outage:
    """From all the entries of one outage, in their order; ValueError where they do not begin with its beginning. Times are those of the entries, so
    that a repair of the book's time holds for outages too."""
    first, *later = entries
    begun = first.entry
    if not isinstance(begun, OutageBegun):
        raise ValueError(f"entry {first.id} is not the beginning of an outage")  # noqa: TRY004  of a damaged ledger
    since, until, notices = _beginning(first, begun.lasted), 0, []
    for placed in later:
        match placed.entry:
            case OutageEnded() as ended:
                until = max(since, placed.at - ended.ago)
            case OutageNotified() as notified:
                notices.append(Notice(notified.who, notified.reference, _noticed_at(placed, notified.notified_at)))
            case _:
                raise ValueError(f"entry {placed.id} is not of an outage")
    return Outage(begun.number, begun.nim, begun.reason, since, until, begun.refused, begun.incident, tuple(notices))


def _beginning(placed: Placed, lasted: int) -> int:
    """When it began (ms). A repair moves it with its entry, unless the clock was still right then: `lasted` has in it by
    how much the clock was ahead, which a repair knows to the hour."""
    ahead = placed.chained_at - placed.at if placed.chained_at else 0
    was_right = ahead and lasted > max(HOUR, ahead - HOUR)
    return min(placed.chained_at - lasted, placed.at) if was_right else placed.at - lasted


def _noticed_at(placed: Placed, at: int) -> int:
    """A time that is ahead of its repaired entry is of the clock that was ahead, and moves with it."""
    return at - (placed.chained_at - placed.at) if placed.chained_at and at > placed.at + SLACK else at
