"""A ledger with a year of sales in it, written by the store's own functions for rows: attempts, certifications, closures."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from support.ledger import IFU, RATES, ZONE, invoice, opened

from daemon.core.certification import Attempt, Certified, Counters, MachineState
from daemon.core.closure import Book
from daemon.core.reports import PAYMENT_LABELS
from daemon.store import attempts, books, closures

DAY = 86_400_000
SHOPPING = 8 * 3_600_000


async def write_year(path: Path, nim: str, count: int, *, days: int = 365, end: int) -> Counters:
    """`count` sales over so many days, each closed by a Z, the last at `end` (ms); the machine's counters afterwards."""
    async with opened(path) as store:
        book = await store.open_book(nim, "live")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        per_day, rest = divmod(count, days)
        counters = Counters(0, 0, 0)
        for day in range(days):
            connection.execute("BEGIN")
            opening = end - (days - day) * DAY
            sales = per_day + (day < rest)
            for sale in range(sales):
                counters = _sell(connection, book, counters, at=opening + sale * SHOPPING // sales)
            _close(connection, book, counters, at=opening + SHOPPING)
            connection.execute("COMMIT")
        state = MachineState(nim, IFU, "20251206100000", counters, RATES, None)
        books.reconcile(connection, book, state, 0, end)
    return counters


def _sell(connection: sqlite3.Connection, book: Book, known: Counters, *, at: int) -> Counters:
    number = known.fvc + 1
    amounts = tuple((group, 500 * (1 + number * place % 40)) for place, group in enumerate("ABBC"[: 1 + number % 4], 1))
    sale = invoice(f"S-{number}", amounts=amounts, method="EMVC"[number % 4])
    attempt_id = attempts.begin(connection, book, Attempt(sale, known, at, f"request-{number}"))
    counters = Counters(known.tc + 1, number, known.frc)
    code = f"{number:024X}"
    outcome = attempts.Outcome(Certified(code, "20251206100000", IFU, counters), sale, sale.total_ttc, at + 60, 50, 60)
    attempts.certify(connection, book, attempt_id, outcome)
    return counters


def _close(connection: sqlite3.Connection, book: Book, counters: Counters, *, at: int) -> None:
    closures.close_period(connection, book, counters=counters, unexplained=0, at=at, zone=ZONE, labels=PAYMENT_LABELS)
