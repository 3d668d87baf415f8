"""Which Zs of a book `[printer] z` has not printed, in `meta`. Functions on a connection."""

import sqlite3

import msgspec

from daemon.core.ledger.book import Book
from daemon.store.tables.book.books import book_state
from daemon.store.tables.meta import read_meta, write_meta

MAX_UNPRINTED = 31
"""Older ones are let go of."""


class ZPapers(msgspec.Struct, frozen=True):
    """`upto`: the last Z whose printing has ended, with paper or without."""

    upto: int
    unprinted: tuple[int, ...] = ()


def unprinted(connection: sqlite3.Connection, book: Book) -> tuple[int, ...]:
    """By number; none while no Z prints itself."""
    before = _read(connection, book)
    return before.unprinted if before else ()


def resume(connection: sqlite3.Connection, book: Book) -> tuple[int, ...]:
    """At a start: the Zs whose printing has not ended, which are unprinted from now on. None at the first start with
    `[printer] z`."""
    last = book_state(connection, book).z_number
    before = _read(connection, book) or ZPapers(last)
    found = tuple(range(before.upto + 1, last + 1)[-MAX_UNPRINTED:])
    _write(connection, book, ZPapers(last, (*before.unprinted, *found)[-MAX_UNPRINTED:]))
    return found


def note(connection: sqlite3.Connection, book: Book, z_number: int, *, is_printed: bool) -> None:
    """The end of a printing, or paper of a Z that was made on request."""
    before = _read(connection, book)
    if before is None:
        return
    rest = [each for each in before.unprinted if each != z_number]
    unprinted = tuple(sorted(rest if is_printed else [*rest, z_number])[-MAX_UNPRINTED:])
    after = ZPapers(max(before.upto, z_number), unprinted)
    if after != before:
        _write(connection, book, after)


def forget(connection: sqlite3.Connection, book: Book) -> None:
    """While no Z prints itself, none is missing."""
    if _read(connection, book) is not None:
        write_meta(connection, _name(book), "")


def _read(connection: sqlite3.Connection, book: Book) -> ZPapers | None:
    text = read_meta(connection, _name(book))
    return msgspec.json.decode(text, type=ZPapers) if text else None


def _write(connection: sqlite3.Connection, book: Book, papers: ZPapers) -> None:
    write_meta(connection, _name(book), msgspec.json.encode(papers).decode())


def _name(book: Book) -> str:
    return f"z papers {book.id}"
