"""Numbers that must not come twice, whatever is restored (decision 30): what a ledger that is replaced knows goes into the high-water file,
and what the file knows comes back into the ledger at each start, when it meets its machine and before each Z, as an entry of its chain that
`mcfd verify` accepts and shows."""

from __future__ import annotations

import contextlib
import sqlite3
from contextlib import closing
from pathlib import Path

from daemon.core.ledger.book import Book, BookState
from daemon.core.ledger.entries import Gap
from daemon.core.machine.nim import short_nim
from daemon.store.sqlite.connection import open_to_read
from daemon.store.sqlite.high_water import SUFFIX, HighWater, Mark, Marks, book_name, merged, read_marks, write_marks
from daemon.store.sqlite.queries import load
from daemon.store.tables.book import books, entries

_SQL = load(__name__)


def known_to(ledger: Path) -> Marks | None:
    """What a ledger's file knows of its Z numbers and revoked keys; None when there is no file, or it cannot be read."""
    with contextlib.suppress(sqlite3.Error), closing(open_to_read(ledger)) as connection:
        given = {book_name(nim, mode, ifu): Mark(z) for nim, mode, ifu, z in connection.execute(_SQL["given"])}
        revoked = frozenset(key_hash.hex() for (key_hash,) in connection.execute(_SQL["revoked"]))
        return Marks(given, revoked)
    return None


def remember(replaced: Path) -> bool:
    """Before `replaced` gives way to an older copy: its numbers are durable beside it. Whether anything here remembers any."""
    before, known = read_marks(replaced), known_to(replaced)
    if known is not None:
        write_marks(replaced, merged(_without_cut_off(before or Marks(), known), known))
    return before is not None or known is not None


def _without_cut_off(marks: Marks, known: Marks) -> Marks:
    """A ledger that has all that was given also knows of what was reserved: it has that Z, or nobody has."""
    kept = {
        name: Mark(mark.given) if name in known.books and known.books[name].given >= mark.given else mark
        for name, mark in marks.books.items()
    }
    return Marks(kept, marks.revoked)


def bring_back(connection: sqlite3.Connection, ledger: Path) -> HighWater:
    """At a start: what was given after this copy of the ledger was made is a gap in it, and what was revoked stays so. A number that was
    only reserved belongs to a Z that a crash cut off, and is given by its retry; one that another ledger reserved may have been told."""
    water = HighWater(ledger)
    states = [books.book_state(connection, book) for book in books.all_books(connection)]
    z_numbers = {name_of(state): state.z_number for state in states}
    for name, mark in water.marks.books.items():
        if mark.reserved and z_numbers.get(name, -1) < mark.given:
            water.give(name, mark.reserved)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for state in states:
            catch_up(connection, state.book, water)
        for key_hash in water.marks.revoked:
            connection.execute(_SQL["revoke"], (bytes.fromhex(key_hash),))
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    for state in (books.book_state(connection, state.book) for state in states):
        if state.known is not None or state.z_number:  # another taxpayer's name until the machine has told its own
            water.give(name_of(state), state.z_number)
    return water


def name_of(state: BookState) -> str:
    return book_name(state.book.nim, state.book.mode, state.ifu)


def catch_up(connection: sqlite3.Connection, book: Book, water: HighWater) -> BookState:
    """The numbers that were given in this book by another ledger are gone, as soon as it is known whose book it is; the book as it is then."""
    state = books.book_state(connection, book)
    given = water.given(name_of(state))
    if given <= state.z_number:
        return state
    skip_to(connection, book, given, known_from="ledger" + SUFFIX)
    return books.book_state(connection, book)


def skip_to(connection: sqlite3.Connection, book: Book, given: int, *, known_from: str) -> None:
    """The Z numbers up to `given` are gone: the next one is after it."""
    state = books.book_state(connection, book)
    if given > state.z_number:
        import structlog  # noqa: PLC0415  a command that only reads has nothing to log, and starts without it

        log = structlog.get_logger(__name__)
        if structlog.is_configured():  # by a daemon; a command says it itself
            log.warning("closure.gap", nim=book.nim, mode=book.mode, first=state.z_number + 1, last=given)
        entries.append(connection, book, Gap(state.z_number + 1, given, known_from), state.last_at)
    connection.execute(_SQL["skip"], (max(given, state.z_number), book.id))


def hear(connection: sqlite3.Connection, book: Book, given: int) -> bool:
    """Headquarters says the last Z. Whether that was wanted: where nothing here remembers it, or where a book that has made no Z yet is the only one
    of its machine (another taxpayer's begins with Z 1 by right)."""
    state = books.book_state(connection, book)
    of_machine = [
        one for one in books.all_books(connection) if (one.mode, short_nim(one.nim)) == (book.mode, short_nim(book.nim))
    ]
    is_wanted = state.z_asked or (not state.z_number and len(of_machine) == 1)
    if is_wanted:
        skip_to(connection, book, given, known_from="upstream")
    return is_wanted


def ask_for_z(connection: sqlite3.Connection, book: Book) -> None:
    """No Z until somebody has said which was the last."""
    connection.execute(_SQL["ask"], (book.id,))
