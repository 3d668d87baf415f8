"""The register of outages, made from entries of the book. Functions on a connection, for the writer or a reader."""

import sqlite3
from collections.abc import Callable, Iterator
from itertools import groupby, islice, takewhile

import msgspec

from common.language import Text
from daemon.core.audit import Call
from daemon.core.errors import NotFound
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import (
    OutageBegun,
    OutageEnded,
    OutageNotified,
    OutageReason,
    Placed,
)
from daemon.core.ledger.outage import Notice, Outage, read_outage
from daemon.store.sqlite.file import load, read_as, value_of
from daemon.store.tables import audit
from daemon.store.tables.book import attempts, entries
from daemon.store.tables.meta import read_number, write_meta

_SQL = load(__name__, columns=entries.COLUMNS)
SIGN = "alive"
"""In `meta`, with the id of a book."""


def begin(
    connection: sqlite3.Connection,
    book: Book,
    reason: OutageReason,
    *,
    at: int,
    lasted: int,
    refused: bool,
    incident: str = "",
) -> Outage | None:
    """Begins an outage of `lasted` ms at `at`, but not from before the last one's end; None if one is open. What the
    machine has certified since it began has ended it."""
    last = last_outage(connection, book)
    if last is not None and last.is_open:
        return None
    since = max(at - lasted, last.until if last is not None else 0)
    certified = value_of(connection.execute(_SQL["certified_since"], (book.id, since)))
    at = max(since, certified, at, entries.next_time(connection, book))  # a decision may have been stored meanwhile
    number = last.number + 1 if last is not None else 1
    placed = [
        entries.append(connection, book, OutageBegun(number, book.nim, reason, at - since, refused, incident), at)
    ]
    if certified:
        placed.append(entries.append(connection, book, OutageEnded(number, at - max(since, certified)), at))
    return read_outage(placed)


def end(connection: sqlite3.Connection, book: Book, *, at: int, until: int) -> Outage | None:
    """The machine can certify since `until` (ms); the outage as it has ended, None where none is open."""
    last = last_outage(connection, book)
    if last is None or not last.is_open:
        return None
    at = max(at, entries.next_time(connection, book))
    ended = OutageEnded(last.number, at - max(min(until, at), last.since))
    entries.append(connection, book, ended, at)
    return find_outage(connection, book, last.number)


def note_notified(
    connection: sqlite3.Connection,
    book: Book,
    number: int,
    notice: Notice,
    *,
    at: int,
    call: Call,
    answer: Callable[[Outage], bytes],
) -> bytes:
    """What `answer` makes of the outage then. The same person and reference are noted once; NotFound."""
    notices = {(each.who, each.reference) for each in find_outage(connection, book, number).notices}
    if (notice.who, notice.reference) not in notices:
        noted = OutageNotified(number, notice.who, notice.reference, notice.at)
        placed = entries.append(connection, book, noted, at)
        detail = {"outage": str(number), "who": notice.who, "reference": notice.reference}
        audit.add(connection, "outage.notified", f"{book.nim} {book.mode}", at=placed.at, by=call.by, detail=detail)
    body = answer(find_outage(connection, book, number))
    attempts.insert_answer(connection, book, call, at=at, answer=body)
    return body


def last_outage(connection: sqlite3.Connection, book: Book) -> Outage | None:
    """The newest one, whether or not it is over."""
    placed = list(read_as(Placed, connection.execute(_SQL["last"], (book.id,))))
    return _with_sales(connection, book, read_outage(placed)) if placed else None


def open_outage(connection: sqlite3.Connection, book: Book) -> Outage | None:
    last = last_outage(connection, book)
    return last if last is not None and last.is_open else None


def out_since(connection: sqlite3.Connection, book: Book) -> int:
    """When the outage that lasts began (ms); 0 where none does."""
    lasting = open_outage(connection, book)
    return lasting.since if lasting else 0


def find_outage(connection: sqlite3.Connection, book: Book, number: int) -> Outage:
    """NotFound where the register has none of that number."""
    outage = next(_after(connection, book, number - 1), None)
    if outage is None or outage.number != number:
        raise NotFound(Text("there is no outage {number}", number=number))
    return outage


def outages_between(
    connection: sqlite3.Connection, book: Book, *, start: int, end: int, after: int, limit: int
) -> list[Outage]:
    """Outages that lasted at some time of `start <= t < end` (ms), oldest first, after the number `after`."""
    ended = value_of(connection.execute(_SQL["ended_before"], (book.id, start)))
    began = takewhile(lambda outage: outage.since < end, _after(connection, book, max(after, ended)))
    found = (outage for outage in began if outage.is_open or outage.until > start or outage.since >= start)
    return list(islice(found, limit))


def newest_outages(connection: sqlite3.Connection, book: Book, *, start: int, end: int, limit: int) -> list[Outage]:
    """Those of that time among the `limit` newest of all, the newest first."""
    last = last_outage(connection, book)
    after = (last.number if last else 0) - limit
    return outages_between(connection, book, start=start, end=end, after=after, limit=limit)[::-1]


def _after(connection: sqlite3.Connection, book: Book, number: int) -> Iterator[Outage]:
    placed = read_as(Placed, connection.execute(_SQL["after"], (book.id, number)))
    for _, group in groupby(placed, _number):
        yield _with_sales(connection, book, read_outage(group))


def _number(placed: Placed) -> int:
    entry = placed.entry
    if not isinstance(entry, OutageBegun | OutageEnded | OutageNotified):
        raise TypeError(f"entry {placed.id} is not of an outage")
    return entry.number


def _with_sales(connection: sqlite3.Connection, book: Book, outage: Outage) -> Outage:
    sales, total = connection.execute(_SQL["sales"], (book.id, outage.number)).fetchone()
    return msgspec.structs.replace(outage, sales=sales, sales_total=total)


# -- the last sign of life ----------------------------------------------------------------------------------------------------


def sign_of_life(connection: sqlite3.Connection, book: Book) -> int:
    """The last stored time (ms) at which the machine could certify: in service, at a certification, or at an outage's
    end; 0 if none was stored since this ledger is in use."""
    sign = read_number(connection, f"{SIGN} {book.id}")
    return max(sign, last_service(connection, book)) if sign else 0


def last_service(connection: sqlite3.Connection, book: Book) -> int:
    """When it certified last, or an outage was over (ms); 0 for never."""
    certified, last = connection.execute(_SQL["last_certified"], (book.id,)), last_outage(connection, book)
    return int(max(value_of(certified), last.until if last else 0))


def store_sign_of_life(connection: sqlite3.Connection, book: Book, at: int) -> None:
    write_meta(connection, f"{SIGN} {book.id}", str(at))
