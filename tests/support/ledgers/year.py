"""A ledger with a year of sales in it, written by the store's own functions for rows: attempts, certifications, closures."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from support.ledgers.ledger import IFU, RATES, ZONE, invoice, opened

from daemon.core.events import CLOSURE
from daemon.core.invoice.invoice import PAYMENT_LABELS
from daemon.core.ledger.attempt import Attempt, Outcome
from daemon.core.ledger.book import Book
from daemon.core.machine.state import Certified, FiscalCounters, MachineState
from daemon.store.sqlite.high_water import HighWater, book_name
from daemon.store.tables.book import attempts, books, closures
from daemon.store.tables.book.books import open_book
from daemon.store.tables.events import DEFAULT_DESTINATIONS, EventWriter

DAY = 86_400_000
SHOPPING = 8 * 3_600_000


async def write_year(path: Path, nim: str, count: int, *, days: int = 365, end: int) -> FiscalCounters:
    """`count` sales over so many days, each closed by a Z, the last at `end` (ms); the machine's counters afterwards."""
    async with opened(path) as store:
        book = await store.ledger.write(open_book, nim, "live")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        per_day, rest = divmod(count, days)
        counters = FiscalCounters(0, 0, 0)
        for day in range(days):
            connection.execute("BEGIN")
            opening = end - (days - day) * DAY
            sales = per_day + (day < rest)
            for sale in range(sales):
                counters = sell(connection, book, counters, at=opening + sale * SHOPPING // sales)
            _close(connection, book, counters, at=opening + SHOPPING)
            connection.execute("COMMIT")
        state = MachineState(nim, IFU, "20251206100000", counters, RATES, None)
        books.reconcile(connection, book, state, 0, end)
    HighWater(path).give(book_name(nim, "live", IFU), days)
    return counters


def sell_until(path: Path, nim: str, counters: FiscalCounters, times: Iterable[int]) -> FiscalCounters:
    """One more sale at each of these times (ms), in the open period."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        book = books.open_book(connection, nim, "live")
        for at in times:
            counters = sell(connection, book, counters, at=at)
        connection.execute("COMMIT")
    return counters


def sell(connection: sqlite3.Connection, book: Book, before: FiscalCounters, *, at: int) -> FiscalCounters:
    """One more, in its place in the chain; the counters after it."""
    number = before.fvc + 1
    amounts = tuple((group, 500 * (1 + number * place % 40)) for place, group in enumerate("ABBC"[: 1 + number % 4], 1))
    sale = invoice(f"S-{number}", amounts=amounts, method="EMVC"[number % 4])
    attempt_id = attempts.begin(connection, book, Attempt(sale, before, at, f"request-{number}"))
    counters = FiscalCounters(before.tc + 1, number, before.frc)
    code = f"{number:024X}"
    outcome = Outcome(Certified(code, "20251206100000", IFU, counters), sale, sale.total_ttc, at + 60, 50, 60)
    attempts.certify(connection, book, attempt_id, outcome)
    return counters


def _close(connection: sqlite3.Connection, book: Book, counters: FiscalCounters, *, at: int) -> None:
    closure = closures.close_period(
        connection, book, counters=counters, unexplained=0, at=at, zone=ZONE, labels=PAYMENT_LABELS
    )
    EventWriter(DEFAULT_DESTINATIONS).write(connection, book, CLOSURE, closure.created_at, ref=closure.z_number)
