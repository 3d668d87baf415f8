"""Activations of a machine (decision 33): the same taxpayer continues the book in a new epoch, another one gets another
book. Functions on a connection, for the writer or a reader.

Also FC, the counter by type (SECeF 2.12.4), of a certification without one in the machine's reply. FVC counts sales of
several types, FRC credit notes; FC of 38h may be either, or count each type separately. The ledger can derive it if
only invoices of that type were counted since the last known FC or the beginning, or if FC equals FVC (FRC) again
later."""

import sqlite3
from typing import NamedTuple

import msgspec

from daemon.core.ledger.attempt import NOT_STATED
from daemon.core.ledger.book import Book, LastSeen
from daemon.core.ledger.entries import Epoch
from daemon.core.ledger.verdict import went_down
from daemon.core.machine.state import NO_COUNTERS, FiscalCounters, short_nim
from daemon.store.sqlite.file import load
from daemon.store.tables.book import books, entries
from daemon.store.tables.book.codec import counters_of, seen_text

_SQL = load(__name__)

REACH = 5_000
"""Entries that are looked through."""


class Activation(NamedTuple):
    """An epoch by its number, the machine's name in it, and its counters as they are known (None: never read)."""

    number: int
    nim: str
    counters: FiscalCounters | None


def begin_epoch(
    connection: sqlite3.Connection,
    book: Book,
    counters: FiscalCounters,
    *,
    ifu: str,
    nim: str,
    at: int,
    began_again: bool = False,
    ours: int = 0,
    seen: LastSeen | None = None,
) -> Book:
    """Begins an epoch and returns the book under the machine's present NIM. An empty book is only renamed; one with
    that NIM and continuing counters does not change. `began_again`: the counters restarted although they do not show
    it; counters below the known ones always did. Then they are taken over with the last invoice `seen`, and all that
    they count except `ours` invoices is unexplained."""
    now = books.book_state(connection, book)
    before = now.counters or NO_COUNTERS
    renamed = msgspec.structs.replace(book, nim=nim)
    began_again = began_again or went_down(before, counters)
    was = present_epoch(connection, book).nim
    if was == nim and not began_again:
        return renamed
    if now.counters is None and not now.last_seq and not now.z_number:
        connection.execute(_SQL["rename"], (nim, book.id))
        return renamed
    after = counters if began_again else before
    entries.append(connection, book, Epoch(now.epoch + 1, was, nim, ifu or now.ifu, before, after), at)
    unexplained = max(0, after.fvc + after.frc - ours) if began_again else 0
    values = (nim, after.tc, after.fvc, after.frc, unexplained, began_again, seen_text(seen))
    connection.execute(_SQL["begin"], (book.id, *values))
    return renamed


def present_epoch(connection: sqlite3.Connection, book: Book) -> Activation:
    """As the ledger has it, whatever the caller's `book` remembers."""
    number, nim, *counters = connection.execute(_SQL["present"], (book.id,)).fetchone()
    return Activation(number, nim, counters_of(*counters))


def book_of_taxpayer(connection: sqlite3.Connection, book: Book, nim: str, ifu: str) -> Book:
    """Keys that were made until now are for the taxpayer that the machine had until now."""
    before = books.book_state(connection, book).ifu
    short = short_nim(nim)
    connection.execute(_SQL["bind_keys"], (before, book.mode, short, f"{short}-*"))
    connection.execute(_SQL["retire"], (book.mode, short, f"{short}-*"))
    found = connection.execute(_SQL["of_taxpayer"], (book.mode, short, f"{short}-*", ifu)).fetchone()
    taken = Book(found[0], found[1], book.mode) if found else books.new_book(connection, nim, book.mode)
    connection.execute(_SQL["take_up"], (ifu, taken.id))
    connection.execute(_SQL["forget_sign"], (taken.id,))
    connection.execute(_SQL["go_on"], (book.id, taken.id))
    connection.execute(_SQL["own_end"], (taken.id,))
    return taken


def derived_counter(
    connection: sqlite3.Connection, book_id: int, *, seq: int, epoch: int, type_: str, now: FiscalCounters
) -> int:
    """Of the certification with that seq, which is there or just being written; NOT_STATED where it is not certain."""
    if type_ not in ("FV", "FT", "FA"):
        return NOT_STATED
    count = _counted(type_, now.fvc, now.frc)
    place = (book_id, seq, epoch, type_, REACH)
    since = fc = counted = 0
    if before := connection.execute(_SQL["before"], place).fetchone():
        since, fc, *both = before
        counted = _counted(type_, *both)
    if before or count <= REACH:
        (others,) = connection.execute(_SQL["between"], (book_id, since, seq, epoch, type_)).fetchone()
        if count - counted == others + 1:
            return int(fc + others + 1)
    after = connection.execute(_SQL["after"], place).fetchone()
    return count if after and after[0] == _counted(type_, *after[1:]) else NOT_STATED


def counter_of_older(
    connection: sqlite3.Connection, book_id: int, record_id: int, type_: str, now: FiscalCounters
) -> int:
    """The same of one that was certified before counters were stored."""
    seq: int
    epoch: int
    seq, epoch = connection.execute(_SQL["place"], (record_id,)).fetchone()
    return derived_counter(connection, book_id, seq=seq, epoch=epoch, type_=type_, now=now)


def _counted(type_: str, fvc: int, frc: int) -> int:
    return frc if type_ == "FA" else fvc
