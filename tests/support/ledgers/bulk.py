"""A ledger of any size within seconds: the sales of one day, copied by SQLite itself.

For searching and paging only: the copies' place in the chain and in the totals is not theirs, so `verify` would complain. A whole one is
made by `bench.shop.ledger`, in seconds for every hundred thousand."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.ledgers.year import DAY, sell, write_year

from daemon.core.machine.state import FiscalCounters
from daemon.store.tables.book import books

PER_DAY = 500
COPY = """
INSERT INTO certification (book_id, seq, state, number, type, total_ttc, begun_at, ended_at, base_tc, base_fvc, base_frc, tc, fvc, frc,
    line_ms, duration_ms, code, machine_time, ifu, request_id, hash, tally, payload)
SELECT book_id, seq + :by, state, 'S-' || (fvc + :by), type, total_ttc, begun_at + :later, ended_at + :later, base_tc + :by, base_fvc + :by,
    base_frc, tc + :by, fvc + :by, frc, line_ms, duration_ms, printf('%024X', fvc + :by), machine_time, ifu, request_id, hash, tally, payload
FROM certification WHERE seq <= :day
"""

HEAD = """
UPDATE book SET tc = :n, fvc = :n, last_seq = :n, last_number = 'S-' || :n, head = (SELECT hash FROM certification WHERE seq = :n)
"""


def write_bulk(path: Path, nim: str, days: int, *, end: int) -> FiscalCounters:
    """`days` times PER_DAY sales, S-1 and on, and one more that ends the chain, in one open period up to `end` (ms); the machine's counters
    afterwards."""
    with ThreadPoolExecutor(1) as thread:  # also from a test that has a loop of its own
        thread.submit(lambda: asyncio.run(write_year(path, nim, PER_DAY, days=1, end=end - (days - 1) * DAY))).result()
    count = days * PER_DAY
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for day in range(1, days):
            connection.execute(COPY, {"by": day * PER_DAY, "later": day * DAY, "day": PER_DAY})
        connection.execute(HEAD, {"n": count})
        connection.execute("UPDATE total SET seq = :n, fvc_end = :n", {"n": count})
        book = books.open_book(connection, nim, "live")
        counters = sell(connection, book, FiscalCounters(count, count, 0), at=end)
        connection.execute("COMMIT")
    return counters
