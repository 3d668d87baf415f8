"""The lines of a closed year in the order of the chain, for its archive (0047 art. 23).

A year goes from the last Z of the year before to the year's closure. Certifications after the last Z are in the archive
of the next year too, since its first Z counts them."""

import base64
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from daemon.core.audit import GENESIS as AUDIT_GENESIS
from daemon.core.ledger.book import Book, Closure
from daemon.core.ledger.chain import GENESIS, closure_link, record_link
from daemon.core.ledger.entries import NO_CASH, CalendarClosed, Placed, RecordsLost
from daemon.core.report.fiscal_reports import totals_of
from daemon.core.report.journal import journal_record
from daemon.store.sqlite.file import load, read_as
from daemon.store.tables.book.books import all_books, book_state
from daemon.store.tables.book.calendar_closures import find_calendar_closure
from daemon.store.tables.book.closures import COLUMNS, closure_of, find_closure
from daemon.store.tables.book.codec import PAYLOAD, RECORD_COLUMNS, SEQ, record_of, unpack
from daemon.store.tables.book.entries import COLUMNS as ENTRY_COLUMNS
from daemon.store.tables.book.entries import in_order, losses

_SQL = load(__name__, record=RECORD_COLUMNS, closure=COLUMNS, entry=ENTRY_COLUMNS)
PLAIN = ("decisions", "audit", "letterheads")
Line = dict[str, Any]


class ArchiveYear(NamedTuple):
    """A closed year. `number`: of its closure; the chain starts after the Z `after_z` with the hash `start`."""

    book: Book
    ifu: str
    year: str
    number: int
    after_z: int
    after_seq: int
    start: bytes
    began_at: int
    end: Placed


def closed_years(connection: sqlite3.Connection) -> list[ArchiveYear]:
    """Of live books, oldest first; a year that was closed too early and again is two."""
    return [
        _archive_year(connection, book, number)
        for book in all_books(connection)
        if book.mode == "live"
        for (number,) in connection.execute(_SQL["years"], (book.id,))
    ]


def _archive_year(connection: sqlite3.Connection, book: Book, number: int) -> ArchiveYear:
    end = find_calendar_closure(connection, book, "year", number)
    closed, state = end.entry_of(CalendarClosed), book_state(connection, book)
    start, after_seq, began_at = GENESIS, 0, 0
    if closed.after_z:
        before = find_closure(connection, book, closed.after_z)
        start, after_seq, began_at = before.hash, before.last_seq, before.created_at
    return ArchiveYear(state.book, state.ifu, closed.period, number, closed.after_z, after_seq, start, began_at, end)


def chain_lines(connection: sqlite3.Connection, year: ArchiveYear) -> Iterator[Line]:
    """Each with its hash, as the chain holds it; a certification with what the journal says of it beside. Before what
    follows lost records, a line says which these are and what they counted."""
    lost = losses(connection, year.book)
    records = connection.execute(_SQL["records"], (year.book.id, year.after_seq, year.end.after_seq))
    closures = connection.execute(_SQL["closures"], (year.book.id, year.after_z, year.end.after_z))
    found = read_as(Placed, connection.execute(_SQL["entries"], (year.book.id, year.after_seq, year.end.after_seq)))
    last = (year.end.after_seq, year.end.after_z, year.end.id)
    placed = (
        each for each in found if (each.after_seq, each.after_z, each.id) <= last and each.after_z >= year.after_z
    )
    readable = ((row[SEQ], row) for row in records if not any(each.has(row[SEQ]) for each in lost.values()))
    for _, item in in_order(readable, map(closure_of, closures), placed):
        match item:
            case Closure():
                line = _closure_line(item)
            case Placed():
                line = _entry_line(item)
            case _:
                line = _record_line(item)
        if line["hash"] in lost:
            yield _lost_line(year.book, lost[line["hash"]])
        yield line


def is_unsure(connection: sqlite3.Connection, year: ArchiveYear) -> bool:
    """Whether what records counted that were lost before the year is in the figures of the first ones lost in it."""
    before = [each for each in losses(connection, year.book).values() if each.last_seq <= year.after_seq]
    return bool(before) and max(before, key=lambda each: each.last_seq).tally is None


def _lost_line(book: Book, lost: RecordsLost) -> Line:
    totals = totals_of(book, lost.tally, NO_CASH, {}) if lost.tally is not None else None
    figures = totals and {name: totals[name] for name in ("certs_count", "total_ttc", "total_ht", "total_tva")}
    return {"kind": "lost", "first_seq": lost.first_seq, "last_seq": lost.last_seq, "figures": figures}


def _record_line(row: tuple[Any, ...]) -> Line:
    content = unpack(row[PAYLOAD])
    record = record_of(row, content)
    beside = {"invoice": base64.b64encode(content).decode(), "fc": record.fc, "hash": record.hash.hex()}
    return {"kind": "certification", **record_link(record), **beside, "journal": journal_record(record, 0)}


def _closure_line(closure: Closure) -> Line:
    link = msgspec.structs.asdict(closure_link(closure))
    return {"kind": "closure", **link, "body": closure.body.decode(), "hash": closure.hash.hex()}


def _entry_line(placed: Placed) -> Line:
    return {
        "kind": "entry",
        "id": placed.id,
        "after_seq": placed.after_seq,
        "after_z": placed.after_z,
        "at": placed.chained_at or placed.at,
        "body": placed.body.decode(),
        "hash": placed.hash.hex(),
    }


def plain_lines(connection: sqlite3.Connection, name: str, year: ArchiveYear) -> Iterator[Line]:
    """`decisions`: of operators in that time; `audit`: the log of the box in it, each entry with the hash that it is
    chained to; `letterheads`: what stood on paper, as invoices, Zs and months name it."""
    values = {"book": year.book.id, "begin": year.began_at, "end": year.end.at, "genesis": AUDIT_GENESIS}
    for line in read_as(dict[str, Any], connection.execute(_SQL[name], values)):
        yield line | {"detail": msgspec.json.decode(line["detail"])} if name == "audit" else line
