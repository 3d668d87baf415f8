"""X, Z and A inside the process, on ledgers made in bulk, against adding up the rows; the daemon, its page and a command on a ledger of a
million sales."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TypeVar

import httpx
from support.browser import PASSWORD, create_user

from bench.figures import Row, median, milliseconds
from bench.shop.ledger import DAY, NIM, PER_DAY, make, summed
from bench.shop.shops import PACED, Bench, folder, running, seconds_to_ready
from daemon.core.invoice.intake import Defaults
from daemon.core.ledger.book import Book
from daemon.core.machine.state import FiscalCounters
from daemon.core.report import fiscal_reports
from daemon.store.sqlite.connection import open_file
from daemon.store.store import Store
from daemon.usecases.reports import report
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import MachineWorker

T = TypeVar("T")

FEW, MANY = 10, 100_000
CLOSINGS = 7


@dataclass(frozen=True)
class OpenedLedger:
    """A ledger at work inside this process. `rows` is a connection of the baseline's own, with a large cache."""

    worker: MachineWorker
    store: Store
    rows: sqlite3.Connection
    now: int

    @property
    def book(self) -> Book:
        return self.worker.book


@asynccontextmanager
async def opened(path: Path, now: int) -> AsyncIterator[OpenedLedger]:
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
            defaults=Defaults("1", "Caisse 1", "1"),
        )
        worker.take_state(await store.ledger.state(book))
        yield OpenedLedger(worker, store, rows, now)
    finally:
        rows.close()
        await store.close()


def reports() -> Iterator[Row]:
    days = MANY // PER_DAY
    start = start_of(days)
    now = start + (days + 1) * DAY
    with folder() as path:
        make(path / "open.sqlite3", MANY, start=start, closing=False)
        yield _compared("x", *asyncio.run(x_of_period(path / "open.sqlite3", MANY, now)))
        make(path / "few.sqlite3", FEW, start=start, closing=False)
        many, few = (asyncio.run(_closing(path, name, now)) for name in ("open.sqlite3", "few.sqlite3"))
        yield Row("z", many / few, f"{milliseconds(many)} / {milliseconds(few)}")
        make(path / "closed.sqlite3", MANY, start=start)
        yield _compared("a", *asyncio.run(range_of_all(path / "closed.sqlite3", days, now)))


def _compared(row: str, ours: float, summing: float) -> Row:
    return Row(row, summing / ours, f"{milliseconds(summing)} / {milliseconds(ours)}")


async def x_of_period(path: Path, size: int, now: int) -> tuple[float, float]:
    """Seconds of X of an open period, and of summing its rows to the same answer."""
    async with opened(path, now) as at:
        ours, answer = await _timed(200, lambda: report.x_report(at.worker))
        aggregate = await at.store.ledger.aggregated(at.book)
        began = time.perf_counter()
        tally = summed(at.rows, at.book, 1, size)
        summing = time.perf_counter() - began
        fields = {name: getattr(aggregate, name) for name in aggregate.__struct_fields__}
        whole = type(aggregate)(**{**fields, "running": tally, "closed": {}})
        summed_up = fiscal_reports.x_report(at.book, whole, at.worker.now(), isfs=answer.isfs, waiting=answer.waiting)
        assert answer == summed_up, "two ways to X, two answers"
    return ours, summing


async def range_of_all(path: Path, days: int, now: int) -> tuple[float, float]:
    """Seconds of A over everything, and of summing the rows. The baseline lists the closures in the same way."""
    async with opened(path, now) as at:
        end = now - DAY
        start = end - days * DAY
        ours, answer = await _timed(20, lambda: report.a_report(at.worker, start, end))
        closures = await at.store.ledger.closures(at.book, start=start, end=end, limit=None)
        query = "SELECT min(seq), max(seq) FROM certification WHERE ended_at >= ? AND ended_at < ?"
        first, last = at.rows.execute(query, (start, end)).fetchone()
        began = time.perf_counter()
        tally = summed(at.rows, at.book, first, last)
        summing = time.perf_counter() - began
        assert answer == fiscal_reports.a_report(at.book, tally, closures, start, end, isfs=answer.isfs), (
            "two ways to A, two answers"
        )
    return ours, summing


async def _timed(count: int, work: Callable[[], Awaitable[T]]) -> tuple[float, T]:
    """Median seconds, and the last answer."""
    times = []
    for _ in range(count + 3):
        began = time.perf_counter()
        answer = await work()
        times.append(time.perf_counter() - began)
    return median(times[3:]), answer


async def _closing(path: Path, name: str, now: int) -> float:
    """Median seconds of a Z in the store, its commit included, each on a copy of the ledger."""
    times = []
    for turn in range(CLOSINGS):
        copy = path / f"z-{turn}-{name}"
        shutil.copy(path / name, copy)
        async with opened(copy, now) as at:
            began = time.perf_counter()
            closure = await at.store.ledger.close_period(
                at.book, counters=FiscalCounters(10**6, 10**6, 0), unexplained=0, at=now
            )
            times.append(time.perf_counter() - began)
            assert closure.z_number == 1
        copy.unlink()
    return median(times)


def start_of(days: int) -> int:
    """The midnight (ms, UTC) from which a ledger of so many days ends yesterday: a daemon that finds its ledger a year behind the
    box's clock asks an operator first (decision 21)."""
    return (time.time_ns() // 1_000_000 // DAY - days) * DAY


SIZE = 1_000_000
STARTS = 5
VIEWS = 15
SEARCHES = ("/ui/journal?q=0050005", "/ui/journal?amount=123456")
ASSET = re.compile(r'(?:src|href)="(/ui/static/[^"]+)"')


def large_ledger() -> Iterator[Row]:
    with folder() as path:
        ledger = path / "large.sqlite3"
        make(ledger, SIZE, start=start_of(SIZE // PER_DAY))
        with running(1, *PACED, ledger=ledger, known=[SIZE]) as bench:
            starts = [seconds_to_ready(bench.shop) for _ in range(STARTS)]
            yield Row("start", median(starts), f"median of {STARTS}", {"seconds": starts})
            yield from _page(bench)
            yield Row("memory-large", bench.resident(), "after X, A, history and the page")
            yield _command(bench)


def _page(bench: Bench) -> Iterator[Row]:
    create_user(bench.shop, "bench", "technician")
    base = f"http://127.0.0.1:{bench.shop.port}"
    with httpx.Client(base_url=base, timeout=60, trust_env=False) as client:
        client.post("/ui/login", data={"name": "bench", "password": PASSWORD}, headers={"Origin": base})
        first = client.get("/ui/").raise_for_status()
        files = sorted(set(ASSET.findall(first.text)))
        answers = [first, *(client.get(file).raise_for_status() for file in files)]
        size = sum(answer.num_bytes_downloaded for answer in answers)
        today = [_seconds(client, "/ui/") for _ in range(VIEWS)]
        searches = [_seconds(client, path) for path in SEARCHES for _ in range(3)]
    for path in ("reports/x", "reports/a", "reports/a?from=2020-01-01", "reports?from=2020-01-01"):
        bench.shop.get(path, nim=bench.machines[0].nim).raise_for_status()
    yield Row("today", 1000 * median(today), f"median of {VIEWS}", {"seconds": today})
    yield Row("first-load", size / 1000, f"Today with {len(files)} files, as it comes over the wire")
    yield Row("search", 1000 * max(searches), "slowest: by part of a number, by amount", {"seconds": searches})


def _seconds(client: httpx.Client, path: str) -> float:
    began = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - began


def _command(bench: Bench) -> Row:
    command = [str(Path(sys.executable).with_name("mcfd")), "keys", "list"]
    times = []
    for _ in range(5):
        began = time.perf_counter()
        environ = {**os.environ, "MCFD_CONFIG": str(bench.shop.config_file)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ) as process:
            assert process.stdout is not None
            assert process.stdout.read(1)
            times.append(time.perf_counter() - began)
            process.stdout.read()
    return Row("command", median(times), f"median of {len(times)}", {"seconds": times})
