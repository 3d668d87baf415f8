"""What is known to be damaged in the ledger, as `mcfd verify` or a reading has found it, until a `verify` finds the ledger sound."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from common.language.reasons import ENTRY_UNREADABLE, to_stored
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.store.tables.meta import read_meta, write_meta

DAMAGE = "damage"
MOST = 20
"""Findings kept; `mcfd verify` tells all."""


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
    kept = Damage(damage.file[:MOST], damage.entries[:MOST])
    write_meta(connection, DAMAGE, msgspec.json.encode(kept).decode() if kept != Damage() else "")


def add_entries(connection: sqlite3.Connection, found: Iterable[str]) -> None:
    known = read_damage(connection)
    write_damage(connection, Damage(known.file, tuple(dict.fromkeys((*known.entries, *found)))))


def damaged_entries(book: Book, records: Sequence[Record]) -> list[str]:
    return [
        to_stored(ENTRY_UNREADABLE(nim=book.nim, mode=book.mode, seq=record.seq, number=record.number))
        for record in records
        if record.state == "damaged"
    ]
