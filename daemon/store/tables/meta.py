"""Single values of the ledger: known damage, from `mcfd verify` or a failed read, until a `verify` finds the ledger
sound; and the ledger's id and epoch, by which headquarters distinguishes a ledger that continues from one that began
again.

Each restore begins an epoch. Its number increases, and is the time of the restore in seconds if the clock allows, so
that two restores of one backup are two epochs."""

import sqlite3
import uuid
from collections.abc import Iterable, Sequence

import msgspec

from common.language.reasons import ENTRY_UNREADABLE, to_stored
from daemon.core.errors import LedgerUnusable
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.store.sqlite.disk_failure import DAMAGED
from daemon.store.sqlite.file import load, value_of
from daemon.store.sqlite.lock import MarkRow

_SQL = load(__name__)

DAMAGE = "damage"
MAX_DAMAGED = 20
"""Stored findings; `mcfd verify` names all."""

LEDGER_ID = "ledger_id"
EPOCHS = "epochs"


def read_meta(connection: sqlite3.Connection, name: str) -> str:
    """Empty when it was never written."""
    return str(value_of(connection.execute(_SQL["read"], (name,)), ""))


def read_number(connection: sqlite3.Connection, name: str) -> int:
    """0 when none was written."""
    return int(read_meta(connection, name) or 0)


def write_meta(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute(_SQL["write"], (name, value))


class Damage(msgspec.Struct, frozen=True):
    """Known damage. `file`: of the file or its indexes; nothing is certified, since a number might be certified twice.
    `entries`: of single rows; the rest is readable, and sales continue."""

    file: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.file, *self.entries)


def read_damage(connection: sqlite3.Connection) -> Damage:
    text = read_meta(connection, DAMAGE)
    try:
        return msgspec.json.decode(text, type=Damage) if text else Damage()
    except msgspec.MsgspecError:
        return Damage(file=(text,))


def write_damage(connection: sqlite3.Connection, damage: Damage) -> None:
    sample = Damage(damage.file[:MAX_DAMAGED], damage.entries[:MAX_DAMAGED])
    write_meta(connection, DAMAGE, msgspec.json.encode(sample).decode() if sample != Damage() else "")


def add_entries(connection: sqlite3.Connection, found: Iterable[str]) -> None:
    before = read_damage(connection)
    write_damage(connection, Damage(before.file, tuple(dict.fromkeys((*before.entries, *found)))))


def damaged_entries(book: Book, records: Sequence[Record]) -> list[str]:
    return [
        to_stored(ENTRY_UNREADABLE(nim=book.nim, mode=book.mode, seq=record.seq, number=record.number))
        for record in records
        if record.state == "damaged"
    ]


class ClosureEpoch(msgspec.Struct, frozen=True, array_like=True):
    """Of every closure whose row is younger than `after`."""

    after: int
    number: int


class Lineage(msgspec.Struct, frozen=True):
    """`epochs` oldest first; before the first restore, none."""

    ledger_id: str
    epochs: tuple[ClosureEpoch, ...]

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


def begin_epoch(connection: sqlite3.Connection, at: int, mark: MarkRow | None) -> None:
    """`at` in ms, by whatever the clock says; `mark` of the ledger before it in its place, whose epoch is over."""
    identify(connection)
    lineage = read_lineage(connection)
    (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM closure").fetchone()
    begun = ClosureEpoch(last, max(lineage.epoch + 1, mark.epoch + 1 if mark else 0, at // 1000))
    write_meta(connection, EPOCHS, msgspec.json.encode([*lineage.epochs, begun]).decode())
