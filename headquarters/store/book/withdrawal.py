"""Closures of a key that was in the wrong hands are taken out of the table, and nothing of them is thrown away.

What the shop itself has made goes with what the thief has made up, for the key is the same; its box is asked for it, as for anything that is
missing, and signs it anew.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, delete, select, update

from headquarters.store import tables
from headquarters.store.book.books import LockedBook, count_closures, keep_books, lock_books, settle_gaps
from headquarters.store.bulk import among
from headquarters.store.database import READ_AT_ONCE
from headquarters.store.evidence import keep_withdrawn
from headquarters.store.findings import disown


def withdraw(connection: Connection, machine: str, key_id: str, since: int, now: int) -> int:
    """Those that headquarters got under that key from `since` on (ms, by its own clock: the thief says what he likes of his): how many. They
    are kept as evidence, and what they have shown is no longer a finding."""
    table = tables.closure.c
    theirs = and_(table.machine == machine, table.key_id == key_id, table.received_at >= since)
    modes = connection.scalars(select(table.mode).where(theirs).distinct().order_by(table.mode)).all()
    books = list(lock_books(connection, [(machine, mode) for mode in modes]).values())
    numbers = {book.key: _taken_out(connection, book, theirs, now) for book in books}
    for book in books:
        count_closures(connection, book)
        book.was_whole = False  # whatever was missing before is looked at again
    keep_books(connection, books, None)
    for key, found in numbers.items():
        disown(connection, key, found | {z + 1 for z in found}, f"withdrawn with key {key_id}", now)
    settle_gaps(connection, books, now)
    # Nothing is on its way, and nothing was asked: the box is asked in the answer to its next word.
    soon = and_(tables.book.c.machine == machine, tables.book.c.mode.in_(modes))
    connection.execute(update(tables.book).where(soon).values(received_at=0, asked_at=0, asked=None))
    return sum(map(len, numbers.values()))


def _taken_out(connection: Connection, book: LockedBook, theirs: ColumnElement[bool], now: int) -> set[int]:
    """Their numbers."""
    table, message = tables.closure.c, tables.message.c
    query = (
        select(table.id, table.z, table.nim, table.via, message.headers, message.body)
        .join(tables.message, and_(message.machine == table.machine, message.id == table.id))
        .where(theirs, table.mode == book.mode)
        .limit(READ_AT_ONCE)
    )
    numbers: set[int] = set()
    while rows := connection.execute(query).mappings().all():
        keep_withdrawn(connection, rows, now)
        ids = [row["id"] for row in rows]
        for of in (tables.message, tables.closure):
            connection.execute(delete(of).where(of.c.machine == book.machine, among(connection, of.c.id, ids)))
        numbers.update(row["z"] for row in rows)
    return numbers
