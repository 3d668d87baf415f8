"""Closures of months and years (0047 art. 23): entries of a book's chain. Functions on a connection, for the writer or
a reader.

A month is over once the book has a time after it: no Z can fall into it any more. Then all open months are closed in
order, also one without a Z; December closes its year. A month that a fast clock closed too early, repaired since, gets
a supplementary closure with its later Zs when it is over (decision 42)."""

import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from itertools import takewhile
from typing import NamedTuple

import msgspec

from common.language import Text
from daemon.core.clock import HOUR
from daemon.core.errors import NotFound
from daemon.core.ledger.book import Book, Tally
from daemon.core.ledger.entries import CalendarClosed, CalendarKind, CashTotal, Placed
from daemon.core.report.calendar_report import bounds_of, calendar_report, following, month_of, months_from
from daemon.store.sqlite.file import load, read_as, value_of
from daemon.store.tables.book.books import book_state, read_head, read_start
from daemon.store.tables.book.entries import COLUMNS, append
from daemon.store.tables.book.totals import running_at

_SQL = load(__name__, columns=COLUMNS)
MAX_Z = 1 << 53
MAX_MONTHS = 600
"""More than these are over by a wrong clock alone; nothing is closed until it is repaired."""
_EASTMOST = 14
"""Hours that any time zone is ahead of UTC at the most."""
_YEAR = 4
_JANUARY, _DECEMBER = "-01", "-12"


class IssuedNumbers(NamedTuple):
    """The last numbers of months and years that any ledger of this book is known to have given."""

    months: int = 0
    years: int = 0


class ClosingTerms(NamedTuple):
    """What is closed at `at` (ms), and how; `given` are numbers of ledgers that this one has replaced."""

    at: int
    zone: tzinfo
    labels: Mapping[str, str]
    numbers: IssuedNumbers


class _Body(msgspec.Struct):
    cash: CashTotal = CashTotal()
    isfs: tuple[str, ...] = ()
    stands_for: str = ""


class _ClosedDay(NamedTuple):
    """What a closure of a month takes from a Z."""

    z_number: int
    created_at: int
    last_seq: int
    hash: bytes
    body: _Body


_read_body = msgspec.json.Decoder(_Body).decode


def open_month(connection: sqlite3.Connection, book: Book, zone: tzinfo) -> str:
    """The oldest month that is not closed, or since a time repair has Zs that no closure holds; empty for an empty
    book."""
    if (placed := _newest(connection, book, "month")) is not None:
        last = placed.entry_of(CalendarClosed)
        after = following(last.period)
        if not book_state(connection, book).time_repairs:
            return after
        found = connection.execute(_SQL["first_z_since_repair"], (book.id, last.upto_z, placed.id)).fetchone()
        return min(after, month_of(found[0], zone)) if found else after
    start = read_start(connection, book.id)
    found = connection.execute(_SQL["first_at"], (book.id, start.seq, start.z_number)).fetchone()[0]
    return "" if found is None else month_of(found, zone)


def close_over(
    connection: sqlite3.Connection, book: Book, terms: ClosingTerms, *, upto_z: bool = False
) -> Iterator[Placed]:
    """Closes each month that is over, and with December its year; yields the entries. `upto_z`: none after the last Z's
    year."""
    terms = terms._replace(at=max(terms.at, read_head(connection, book.id).at))
    end, month = month_of(terms.at, terms.zone), open_month(connection, book, terms.zone)
    if month and months_from(month, end) > MAX_MONTHS:
        return
    while month and month < end and not (upto_z and month.endswith(_JANUARY) and not _is_z_left(connection, book)):
        for kind, period in _ending(month):
            yield _close(connection, book, kind, period, terms)
        month = following(month)


def _ending(month: str) -> Iterator[tuple[CalendarKind, str]]:
    yield "month", month
    if month.endswith(_DECEMBER):
        yield "year", month.removesuffix(_DECEMBER)


def _is_z_left(connection: sqlite3.Connection, book: Book) -> bool:
    last = last_closed(connection, book, "month")
    return bool(connection.execute(_SQL["has_z"], (book.id, last.upto_z if last else 0)).fetchone()[0])


def _close(connection: sqlite3.Connection, book: Book, kind: CalendarKind, period: str, terms: ClosingTerms) -> Placed:
    last, start = last_closed(connection, book, kind), read_start(connection, book.id)
    after_z, after_seq, before = (
        (last.upto_z, last.upto_seq, last.running) if last else (start.z_number, start.closed_seq, start.closed)
    )
    december = last_closed(connection, book, "month") if kind == "year" else None
    until = december.upto_z if december else MAX_Z
    days = _days(connection, book, (after_z, until), upto=period if kind == "month" else None, zone=terms.zone)
    upto_z, upto_seq = (days[-1].z_number, days[-1].last_seq) if days else (after_z, after_seq)
    running: Tally = running_at(connection, book, upto_seq) if days else before
    highest = terms.numbers.months if kind == "month" else terms.numbers.years
    number = max(last.number if last else 0, highest) + 1
    newest = newest_letterhead(connection, book)
    bodies = [day.body for day in days]
    same = next(iter(calendar_closures_of(connection, book, kind, period)), None)
    report = calendar_report(
        book,
        kind=kind,
        number=number,
        period=period,
        report_id=str(uuid.uuid4()),
        created_at=terms.at,
        bounds=bounds_of(period, terms.zone),
        zs=[(day.z_number, day.hash) for day in days],
        before=before,
        running=running,
        cash=CashTotal(sum(body.cash.deposits for body in bodies), sum(body.cash.withdrawals for body in bodies)),
        labels=terms.labels,
        isfs=sorted({isf for body in bodies for isf in body.isfs}),
        stands_for=next((body.stands_for for body in reversed(bodies) if body.stands_for), ""),
        chain_previous=read_head(connection, book.id).hash,
        letterhead=newest[0].hex() if newest else "",
        supplements=same.entry_of(CalendarClosed).number if same else 0,
    )
    body = msgspec.json.encode(report).decode()
    closed = CalendarClosed(kind, number, period, after_z, upto_z, upto_seq, running, body)
    return append(connection, book, closed, terms.at)


def _days(
    connection: sqlite3.Connection, book: Book, zs: tuple[int, int], *, upto: str | None, zone: tzinfo
) -> list[_ClosedDay]:
    """The Zs after the first number and up to the second, as far as they were made in the month `upto` or before it."""
    rows = connection.execute(_SQL["days"], (book.id, *zs))
    rows_upto = takewhile(lambda row: upto is None or month_of(row[1], zone) <= upto, rows)
    return [_ClosedDay._make((*row, _read_body(body))) for *row, body in rows_upto]


def last_closed(connection: sqlite3.Connection, book: Book, kind: CalendarKind) -> CalendarClosed | None:
    placed = _newest(connection, book, kind)
    return None if placed is None else placed.entry_of(CalendarClosed)


def _newest(connection: sqlite3.Connection, book: Book, kind: CalendarKind) -> Placed | None:
    return next(read_as(Placed, connection.execute(_SQL["last"], (book.id, kind))), None)


def numbers(connection: sqlite3.Connection, book: Book) -> IssuedNumbers:
    """The last ones of the book."""
    month, year = (last_closed(connection, book, kind) for kind in ("month", "year"))
    return IssuedNumbers(month.number if month else 0, year.number if year else 0)


def highest_numbers(connection: sqlite3.Connection, book: Book, at: int) -> IssuedNumbers:
    """The highest numbers that a later state of this ledger can have given until `at` (ms): one for each month and year
    that was over then in any time zone."""
    months, years = numbers(connection, book)
    month = open_month(connection, book, UTC)
    if not month:
        return IssuedNumbers(months, years)
    end = month_of(at + HOUR * _EASTMOST, UTC)
    return IssuedNumbers(
        months + max(0, months_from(month, end)), years + max(0, int(end[:_YEAR]) - int(month[:_YEAR]))
    )


def find_calendar_closure(connection: sqlite3.Connection, book: Book, kind: CalendarKind, wanted: int | str) -> Placed:
    """By its number, or by its month or year: the newest of that name."""
    for placed in calendar_closures_of(connection, book, kind, wanted):
        return placed
    raise NotFound(
        Text("there is no closure of a month {wanted}", wanted=wanted)
        if kind == "month"
        else Text("there is no closure of a year {wanted}", wanted=wanted)
    )


def calendar_closures_of(
    connection: sqlite3.Connection, book: Book, kind: CalendarKind, wanted: int | str
) -> list[Placed]:
    """The one of that number, or all of that month or year, newest first: a repeated one supplements those before."""
    column = "by_number" if isinstance(wanted, int) else "by_period"
    return list(read_as(Placed, connection.execute(_SQL[column], (book.id, kind, wanted))))


def calendar_list(
    connection: sqlite3.Connection, book: Book, kind: CalendarKind, *, after: int = 0, limit: int
) -> list[Placed]:
    """By their numbers, from the one after `after`."""
    return list(read_as(Placed, connection.execute(_SQL["list"], (book.id, kind, after, limit))))


def store_letterhead(connection: sqlite3.Connection, book: Book, digest: bytes, content: bytes, at: int) -> None:
    connection.execute(_SQL["keep"], (book.id, digest, at, content))


def find_letterhead(connection: sqlite3.Connection, book: Book, digest: bytes) -> bytes | None:
    content: bytes | None = value_of(connection.execute(_SQL["find"], (book.id, digest)), None)
    return content


def newest_letterhead(connection: sqlite3.Connection, book: Book) -> tuple[bytes, bytes] | None:
    """Digest and content."""
    row: tuple[bytes, bytes] | None = connection.execute(_SQL["newest"], (book.id,)).fetchone()
    return row
