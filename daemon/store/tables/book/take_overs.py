"""Pairs of machine and spare, take-overs, and which books share numbers and keys by them. Functions on a connection."""

import sqlite3
import sys
from collections.abc import Iterable
from typing import Any

from common.language import Text
from daemon.core.ledger.book import Book
from daemon.core.ledger.take_over import NotInUse, TakeOver
from daemon.store.sqlite.file import load

COLUMNS = "book_id, nim, mode, spare_id, spare_nim, spare_mode, began_at, coalesce(ended_at, 0), reason"
_SQL = load(__name__, columns=COLUMNS)


def pair(connection: sqlite3.Connection, first: Book, spare: Book) -> None:
    """From now on the two books share numbers and keys. If the ledger was restored from a copy older than the pair, the
    machine that is new to it has to be compared too."""
    if connection.execute(_SQL["pair"], (first.id, spare.id)).rowcount:
        connection.execute(_SQL["doubt"], (first.id, spare.id, 0))


def doubt(connection: sqlite3.Connection, book: Book) -> None:
    """A machine that this ledger has not met, and one before it has."""
    connection.execute(_SQL["doubt"], (book.id, book.id, 1))


def dissolve_pairs(
    connection: sqlite3.Connection, configured: Iterable[tuple[Book, Book]], machines: Iterable[Book]
) -> None:
    """Dissolves other pairs of these machines, except if one has stood for the other, or may have since a restored copy
    was made."""
    stored, ids = {(first.id, spare.id) for first, spare in configured}, {book.id for book in machines}
    for pair in connection.execute(_SQL["pairs_without_take_over"]).fetchall():
        if pair not in stored and ids.issuperset(pair):
            connection.execute(_SQL["part"], pair)


def not_compared(connection: sqlite3.Connection, book: Book) -> Book | None:
    """The pair's other book, if the ledger was restored and that machine neither compared nor declared lost."""
    row = connection.execute(_SQL["not_compared"], (book.id,)).fetchone()
    return None if row is None else Book(*row)


def is_awaited(connection: sqlite3.Connection, book: Book) -> bool:
    """The same, of the book itself: the other machine of its pair certifies nothing meanwhile."""
    return bool(connection.execute(_SQL["is_awaited"], (book.id,)).fetchone()[0])


def lost(connection: sqlite3.Connection, book: Book, at: int) -> None:
    """A person has decided that its machine is lost for good; it is compared all the same, should it answer again."""
    connection.execute(_SQL["lost"], (at, book.id))


def begin(connection: sqlite3.Connection, first: Book, spare: Book, *, at: int, reason: str) -> None:
    """No other one lasts of either machine: the caller has looked in the same transaction."""
    pair(connection, first, spare)
    connection.execute(_SQL["begin"], (first.id, spare.id, at, reason))


def end(connection: sqlite3.Connection, first: Book, *, at: int) -> None:
    connection.execute(_SQL["end"], (at, first.id))


def lasting(connection: sqlite3.Connection, book: Book) -> TakeOver | None:
    """Of that machine or by that spare."""
    return since(connection, book, sys.maxsize)


def since(connection: sqlite3.Connection, book: Book, begun_at: int) -> TakeOver | None:
    """The newest of that machine or by that spare that lasts, or has lasted after `begun_at` (ms)."""
    row = connection.execute(_SQL["since"], (book.id, begun_at)).fetchone()
    return None if row is None else _take_over(row)


def is_elsewhere(connection: sqlite3.Connection, book: Book, begun_at: int) -> bool:
    """Whether the other machine of the pair certifies instead, or did since `begun_at` (ms)."""
    found = since(connection, book, begun_at)
    return found is not None and (bool(found.ended_at) or found.first.id == book.id)


def all_lasting(connection: sqlite3.Connection) -> list[TakeOver]:
    return [_take_over(row) for row in connection.execute(_SQL["all_lasting"])]


def stands_for(connection: sqlite3.Connection, spare: Book, start: int, end: int) -> str:
    """The machine for which it has stood last in `start <= t <= end` (ms); empty without one."""
    row = connection.execute(_SQL["newest_between"], (spare.id, start, end)).fetchone()
    return "" if row is None else _take_over(row).first.nim


def sharing(connection: sqlite3.Connection, book: Book) -> list[Book]:
    """The other books that share its numbers and keys: of its spares, or of machines whose spare it is or was."""
    return [Book(*row) for row in connection.execute(_SQL["sharing"], (book.id,))]


def replacement(connection: sqlite3.Connection, book: Book) -> Book | None:
    """The spare that certifies in its place."""
    found = lasting(connection, book)
    return found.spare if found is not None and found.first.id == book.id else None


def is_replaced(connection: sqlite3.Connection, book: Book) -> bool:
    return replacement(connection, book) is not None


def check_in_use(connection: sqlite3.Connection, book: Book) -> None:
    """NotInUse where its spare certifies in its place."""
    if spare := replacement(connection, book):
        raise NotInUse(
            Text("{spare} certifies in the place of {nim} now; nothing was sent", spare=spare.nim, nim=book.nim)
        )


def _take_over(row: tuple[Any, ...]) -> TakeOver:
    *books, began_at, ended_at, reason = row
    return TakeOver(Book(*books[:3]), Book(*books[3:]), began_at, ended_at, reason)
