"""Rows 8 to 10: reports inside the process, on ledgers made in bulk, against adding up the rows."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any, TypeVar

from bench.figures import Row, median, milliseconds
from bench.shop.ledger import DAY, NIM, Maker, summed
from daemon.core.invoice.intake import Defaults
from daemon.core.ledger.book import Book
from daemon.core.machine.state import FiscalCounters
from daemon.core.report import fiscal_reports
from daemon.store.sqlite.connection import open_file
from daemon.store.sqlite.high_water import Marks, mark_path
from daemon.store.store import Store
from daemon.usecases.reports import report
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import MachineWorker

T = TypeVar("T")

START = 1_735_689_600_000
"""2025-01-01 in ms."""
WARM_UP = 3


@dataclass(frozen=True)
class Compared:
    """Seconds of both ways to the same answer."""

    ours: float
    summing: float

    @property
    def ratio(self) -> float:
        return self.summing / self.ours

    @property
    def note(self) -> str:
        return f"{milliseconds(self.summing)} / {milliseconds(self.ours)}"


@dataclass(frozen=True)
class Opened:
    """A ledger at work inside this process. `rows` is a connection of the baseline's own, with a cache to its liking."""

    worker: MachineWorker
    store: Store
    rows: sqlite3.Connection
    now: int

    @property
    def book(self) -> Book:
        return self.worker.book


@asynccontextmanager
async def opened(path: Path, now: int) -> AsyncIterator[Opened]:
    store = await Store.open(path, timezone=UTC)
    rows = open_file(path, "rw")
    try:
        rows.execute("PRAGMA query_only = ON")
        rows.execute("PRAGMA cache_size = -400000")
        book = await store.ledger.open_book(NIM, "live")
        worker = MachineWorker(
            book=book,
            ledger=store.ledger,
            journal=store.journal,
            events=store.events,
            clock=BoxClock(lambda: now),
            defaults=Defaults("1", "Caisse 1", "1", NIM),
        )
        worker.take_state(await store.ledger.state(book))
        yield Opened(worker, store, rows, now)
    finally:
        rows.close()
        await store.close()


async def timed(count: int, work: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    """Median seconds, and the last answer."""
    for _ in range(WARM_UP):
        await work()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        answer = await work()
        times.append(time.perf_counter() - began)
    return median(times), answer


def timed_sum(count: int, work: Callable[[], T]) -> tuple[float, T]:
    """The same for what only computes, and takes so long that one round warms it up."""
    times = []
    for _ in range(count + (count > 1)):
        began = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - began)
    return median(times[-count:]), answer


async def compare_x(at: Opened, first: int, last: int) -> Compared:
    """X of an open period that holds the seqs `first` to `last`."""
    ours, answer = await timed(200, lambda: report.x_report(at.worker))
    aggregate = await at.store.ledger.aggregated(at.book)

    def baseline() -> fiscal_reports.XReport:
        tally = summed(at.rows, at.book, first, last)
        whole = type(aggregate)(**{**_fields(aggregate), "running": tally, "closed": {}})
        return fiscal_reports.x_report(at.book, whole, at.worker.now())

    summing, expected = timed_sum(5, baseline)
    assert answer == expected, "two ways to X, two answers"
    return Compared(ours, summing)


async def compare_a(at: Opened, start: int, end: int, rounds: int) -> Compared:
    """A over `start <= t < end` (ms). The baseline is told which seqs that is, and lists the closures in the same way."""
    ours, answer = await timed(20, lambda: report.a_report(at.worker, start, end))
    first, last = _seqs(at, start, end)
    closures = await at.store.ledger.closures(at.book, start=start, end=end, limit=None)
    summing, expected = timed_sum(
        rounds, lambda: fiscal_reports.a_report(at.book, summed(at.rows, at.book, first, last), closures, start, end)
    )
    assert answer == expected, "two ways to A, two answers"
    return Compared(ours, summing)


def _seqs(at: Opened, start: int, end: int) -> tuple[int, int]:
    query = "SELECT min(seq), max(seq) FROM certification WHERE ended_at >= ? AND ended_at < ?"
    first, last = at.rows.execute(query, (start, end)).fetchone()
    return first, last


def _fields(aggregate: Any) -> dict[str, Any]:
    return {name: getattr(aggregate, name) for name in aggregate.__struct_fields__}


async def ranges(path: Path, days: int, now: int, *, rounds: int = 3) -> tuple[Compared, Compared]:
    """A over the last 31 days, from one odd moment to another, and over everything."""
    async with opened(path, now) as at:
        end = now - DAY
        month = await compare_a(at, end - 31 * DAY + 37_043_017, end - 29_711_003, rounds)
        whole = await compare_a(at, end - days * DAY, end, rounds)
    return month, whole


def range_rows(month: Compared, whole: Compared, size: int) -> list[Row]:
    on = f"ledger of {size:,}"
    return [
        Row("9a", month.ratio, f"{month.note}, {on}", {"ours_ms": month.ours * 1e3, "summing_ms": month.summing * 1e3}),
        Row("9b", whole.ratio, f"{whole.note}, {on}", {"ours_ms": whole.ours * 1e3, "summing_ms": whole.summing * 1e3}),
    ]


def start_of(days: int) -> int:
    """The midnight (ms, UTC) from which a ledger of so many days ends yesterday: a daemon that finds its ledger a year behind the
    clock of a box without network time asks somebody first (docs/reliability.md)."""
    return (time.time_ns() // 1_000_000 // DAY - days) * DAY


Curve = list[tuple[int, Compared]]


def growing_period(path: Path, sizes: tuple[int, ...] = (10, 100, 1000, 10_000, 100_000)) -> tuple[Row, Row, Curve]:
    """Rows 8 and 10: X and Z while the open period grows."""
    now = START + 400 * DAY
    curve: Curve = []
    closings: dict[int, float] = {}
    maker = Maker(path, start=START)
    for size in sizes:
        maker.add(size - maker.count, closing=False)
        maker.pause()
        curve.append((size, asyncio.run(_open_period(path, size, now))))
        if size in (sizes[0], sizes[-1]):
            closings[size] = asyncio.run(_closing(path, now))
        maker.resume()
    maker.pause()
    largest = curve[-1][1]
    few, many = closings[sizes[0]], closings[sizes[-1]]
    return (
        Row("8", largest.ratio, largest.note, {"ours_us": largest.ours * 1e6, "summing_ms": largest.summing * 1e3}),
        Row(
            "10",
            many / few,
            f"{milliseconds(many)} / {milliseconds(few)}",
            {"many_ms": many * 1e3, "few_ms": few * 1e3},
        ),
        curve,
    )


async def _open_period(path: Path, size: int, now: int) -> Compared:
    async with opened(path, now) as at:
        return await compare_x(at, 1, size)


async def _closing(path: Path, now: int, count: int = 30) -> float:
    """Seconds of a Z in the store, its commit included. Each is taken back before the next, which is not timed."""
    async with opened(path, now) as at:
        known = FiscalCounters(10**6, 10**6, 0)
        remembered = at.store.ledger._open.high_water  # noqa: SLF001  a Z that is taken back is otherwise remembered, rightly
        assert remembered is not None
        times = []
        for turn in range(count + WARM_UP):
            kept = Kept.of(path)
            began = time.perf_counter()
            closure = await at.store.ledger.close_period(at.book, counters=known, unexplained=0, at=now)
            took = time.perf_counter() - began
            assert closure.z_number == 1
            kept.put_back(path)
            remembered.marks = Marks()
            mark_path(path).unlink()
            if turn >= WARM_UP:
                times.append(took)
        return median(times)


@dataclass(frozen=True)
class Kept:
    """What a Z changes in a ledger without any."""

    book: tuple[Any, ...]
    total: tuple[Any, ...]

    @classmethod
    def of(cls, path: Path) -> Kept:
        connection = open_file(path, "rw")
        try:
            return cls(*(connection.execute(f"SELECT * FROM {name}").fetchone() for name in ("book", "total")))  # noqa: S608
        finally:
            connection.close()

    def put_back(self, path: Path) -> None:
        connection = open_file(path, "rw")
        try:
            connection.execute("BEGIN IMMEDIATE")
            for name in ("closure", "event", "outbox"):
                connection.execute(f"DELETE FROM {name}")  # noqa: S608  our own names
            for name, row in (("total", self.total), ("book", self.book)):
                marks = ", ".join("?" * len(row))
                connection.execute(f"REPLACE INTO {name} VALUES ({marks})", row)  # noqa: S608  our own names
            connection.execute("COMMIT")
        finally:
            connection.close()


def growing_ledger(path: Path, sizes: tuple[int, ...], size_at_last: int) -> tuple[list[Row], Curve, Maker]:
    """Row 9: A over 31 days and over everything, while a ledger with a Z a day grows; then it may go on to `size_at_last`."""
    curve: Curve = []
    start = start_of(size_at_last // 1000)
    maker = Maker(path, start=start)
    for size in sizes:
        maker.add(size - maker.count)
        maker.pause()
        days = size // 1000
        month, whole = asyncio.run(ranges(path, days, start + (days + 1) * DAY))
        curve.append((size, whole))
        maker.resume()
    maker.pause()
    return range_rows(month, whole, sizes[-1]), curve, maker
