"""The time of one book (decision 21): which clock is believed, and what an operator has to decide."""

import asyncio
from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import NamedTuple

import msgspec
import structlog

from common.language import Text
from daemon.core.clock import SLACK, ClockReading, Clocks, Source, decide_time, machine_millis, question
from daemon.core.ledger.book import Book, BookState

log = structlog.get_logger(__name__)

DRIFT_ALERT = 120.0
"""Seconds between the box's clock and the machine's beyond which the operator is warned."""


class Anchor(NamedTuple):
    """A clock read at a moment of the loop's clock, which cannot be set; `millis` since 1970, `at` in seconds."""

    millis: int
    at: float

    def now(self) -> int:
        return self.millis + int((asyncio.get_running_loop().time() - self.at) * 1000)


class BoxClock(msgspec.Struct, frozen=True):
    """`millis` since 1970, UTC; `synchronised` says whether a service (timesyncd, chrony) vouches for it at this moment."""

    millis: Callable[[], int]
    synchronised: Callable[[], bool]


class BookClock:
    """`zone` is that of the machine's digits. `last_at` is the youngest time that the book holds, as last read."""

    def __init__(self, box: BoxClock, book: Book, zone: tzinfo = UTC) -> None:
        self.drift: float | None = None
        """Box minus machine in seconds, at the last look."""
        self.last_at = 0
        self.accepted = 0
        """Up to here an operator has confirmed a clock (ms)."""
        self._box = box
        self._log = log.bind(nim=book.nim, mode=book.mode)
        self._zone = zone
        self._machine: Anchor | None = None
        self._believed: Anchor | None = None
        """The box's clock when it was last believed."""
        self._logged_source = Source.BOX
        self._logged_behind = False
        self._repairs = 0

    def apply_book(self, state: BookState) -> None:
        """What the ledger knows, which an operator may have set back (`mcfd time repair`)."""
        self.last_at = max(self.last_at, state.last_at) if state.time_repairs == self._repairs else state.last_at
        self._repairs = state.time_repairs
        self.accepted = state.accepted_to

    def apply_time(self, at: int) -> None:
        """Something was written in the book at that time (ms)."""
        self.last_at = max(self.last_at, at)

    def change_book(self, book: Book) -> None:
        self.last_at, self._repairs = 0, -1
        self._log = log.bind(nim=book.nim, mode=book.mode)

    def apply_machine(self, digits: str) -> None:
        """The machine's clock as just read; one that cannot be read has no say."""
        millis = machine_millis(digits, self._zone)
        if millis is None:
            return
        drift = (self._box.millis() - millis) / 1000
        if abs(drift) > DRIFT_ALERT and abs(self.drift or 0.0) <= DRIFT_ALERT:
            self._log.warning("clock.drift", seconds=round(drift))
        self.drift = drift
        self._machine = Anchor(millis, asyncio.get_running_loop().time())

    def now(self) -> int:
        """The time for the ledger: not before `last_at`. Only what is written moves that: a clock that is fast until a
        service sets it leaves nothing behind where it was only looked at."""
        clocks, reading = self._judge()
        self._note(clocks, reading)
        return reading.at

    def question(self) -> Text:
        """What an operator has to say before anything can be certified; empty while a clock is believed."""
        return question(*self._judge())

    def _judge(self) -> tuple[Clocks, ClockReading]:
        box = self._box.millis()
        synchronised, believed = self._box.synchronised(), self._believed
        clocks = Clocks(
            book=self.last_at,
            box=box,
            synchronised=synchronised,
            machine=self._machine.now() if self._machine else None,
            stepped=not synchronised and believed is not None and abs(box - believed.now()) > SLACK,
            accepted=self.accepted,
        )
        return clocks, decide_time(clocks)

    def _note(self, clocks: Clocks, reading: ClockReading) -> None:
        if reading.source is Source.BOX:
            self._believed = Anchor(clocks.box, asyncio.get_running_loop().time())
        if reading.source is not self._logged_source:
            self._log.warning("clock.source", source=reading.source.value, box=clocks.box, machine=clocks.machine)
            self._logged_source = reading.source
        if reading.behind and not self._logged_behind:
            self._log.warning("clock.book_ahead", seconds=reading.behind // 1000, advice="mcfd time repair")
        self._logged_behind = bool(reading.behind)
