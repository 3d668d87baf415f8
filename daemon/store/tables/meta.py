"""Single values of the ledger that belong to no other table; among them what is known to be damaged in it, as `mcfd verify` or a reading has
found it, until a `verify` finds the ledger sound."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from common.language.reasons import ENTRY_UNREADABLE, to_stored
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.store.sqlite.queries import load

_SQL = load(__name__)

DAMAGE = "damage"
MOST = 20
"""Findings kept; `mcfd verify` tells all."""


def read_meta(connection: sqlite3.Connection, name: str) -> str:
    """Empty when it was never written."""
    row = connection.execute(_SQL["read"], (name,)).fetchone()
    return str(row[0]) if row else ""


def write_meta(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute(_SQL["write"], (name, value))


class Damage(msgspec.Struct, frozen=True):
    """`file`: of the file itself, its indexes too: nothing is certified with it, since a number might be certified twice. `entries`: of what it
    holds; the rest is served, and what is sold is added to it."""

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
    sample = Damage(damage.file[:MOST], damage.entries[:MOST])
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
