"""Which ledger this is, and how often it was put back: by both, headquarters tells a ledger that goes on from one that began again. How a book
stands at this moment, for the box's presence.

An epoch begins with each restore. Its number goes up, and is the time of the restore (in seconds) wherever the clock allows, so that
two restores of one backup are two epochs and not one with two contents."""

from __future__ import annotations

import sqlite3
import uuid

import msgspec

from daemon.core.delivery import BookStanding
from daemon.core.errors import LedgerUnusable
from daemon.core.ledger.book import Book
from daemon.store.sqlite.disk_failure import DAMAGED
from daemon.store.sqlite.queries import load
from daemon.store.tables.book.codec import counters_of
from daemon.store.tables.meta import read_meta, write_meta

LEDGER_ID = "ledger_id"
EPOCHS = "epochs"

_SQL = load(__name__)


class ClosureEpoch(msgspec.Struct, frozen=True, array_like=True):
    """Of every closure whose row is younger than `after`."""

    after: int
    number: int


class Lineage(msgspec.Struct, frozen=True):
    """`epochs` oldest first; before the first restore, none."""

    ledger_id: str
    epochs: tuple[ClosureEpoch, ...]

    def epoch_of(self, closure_row: int) -> int:
        return max((epoch.number for epoch in self.epochs if epoch.after < closure_row), default=0)

    @property
    def epoch(self) -> int:
        """Of what happens now."""
        return max((epoch.number for epoch in self.epochs), default=0)


def identify(connection: sqlite3.Connection) -> None:
    """Gives a ledger its id, once."""
    if not read_meta(connection, LEDGER_ID):
        write_meta(connection, LEDGER_ID, str(uuid.uuid4()))


def read_lineage(connection: sqlite3.Connection) -> Lineage:
    try:
        epochs = msgspec.json.decode(read_meta(connection, EPOCHS) or "[]", type=tuple[ClosureEpoch, ...])
    except msgspec.MsgspecError as error:
        raise LedgerUnusable(DAMAGED) from error
    return Lineage(read_meta(connection, LEDGER_ID), epochs)


def begin_epoch(connection: sqlite3.Connection, at: int) -> None:
    """`at` in ms, by whatever the clock says."""
    identify(connection)
    lineage = read_lineage(connection)
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM closure").fetchone()
    begun = ClosureEpoch(last, max(lineage.epoch + 1, at // 1000))
    write_meta(connection, EPOCHS, msgspec.json.encode([*lineage.epochs, begun]).decode())


def standing(connection: sqlite3.Connection, book: Book) -> BookStanding:
    lineage = read_lineage(connection)
    *heads, tc, fvc, frc, certified_at, question = connection.execute(_SQL["standing"], (book.id,)).fetchone()
    values = (lineage.ledger_id, lineage.epoch, *heads, counters_of(tc, fvc, frc), certified_at, question > 0)
    return BookStanding(*values)
