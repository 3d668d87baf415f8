"""Where a book begins: a live one with its first record, that of a sandbox after what was let go of (`maintenance.sandbox`)."""

from __future__ import annotations

import sqlite3

import msgspec

from daemon.core.ledger.book import Tally
from daemon.core.ledger.chain import GENESIS
from daemon.core.ledger.entries import NO_CASH, CashTotal
from daemon.store.sqlite.queries import load
from daemon.store.tables.book.codec import read_tally, tally_bytes

_SQL = load(__name__)


class BookStart(msgspec.Struct):
    """What a recomputation has found just before the first thing that is kept; times in ms. `bytes` are those of the records,
    closures and entries up to `counted_seq`, `counted_z` and `counted_id` that are kept."""

    seq: int = 0
    z_number: int = 0
    entry_id: int = 0
    at: int = 0
    hash: bytes = GENESIS
    running: Tally = msgspec.field(default_factory=dict)
    closed: Tally = msgspec.field(default_factory=dict)
    closed_seq: int = 0
    period_start: int = 0
    fvc_start: int = 0
    cash: CashTotal = NO_CASH
    counted_seq: int = 0
    counted_z: int = 0
    counted_id: int = 0
    bytes: int = 0

    @property
    def is_whole(self) -> bool:
        """Nothing was let go of."""
        return (self.seq, self.z_number, self.entry_id) == (0, 0, 0)


def read_start(connection: sqlite3.Connection, book_id: int) -> BookStart:
    row = connection.execute(_SQL["read"], (book_id,)).fetchone()
    if row is None:
        return BookStart()
    place, (running, closed), period, cash, counted = row[:5], row[5:7], row[7:10], row[10:12], row[12:]
    values = (*place, read_tally(running), read_tally(closed), *period, CashTotal(*cash), *counted)
    return BookStart(*values)


def write_start(connection: sqlite3.Connection, book_id: int, start: BookStart) -> None:
    place = (start.seq, start.z_number, start.entry_id, start.at, start.hash)
    sums = (tally_bytes(start.running), tally_bytes(start.closed))
    period = (start.closed_seq, start.period_start, start.fvc_start, start.cash.deposits, start.cash.withdrawals)
    counted = (start.counted_seq, start.counted_z, start.counted_id, start.bytes)
    connection.execute(_SQL["write"], (*place, *sums, *period, *counted, book_id))
