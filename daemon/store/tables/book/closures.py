"""Closures: everything a Z does to the ledger, in one transaction (decision 14), and reading them back."""

import sqlite3
import uuid
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from itertools import takewhile
from typing import Any, Required, TypedDict, Unpack

import msgspec
from msgspec.structs import asdict

from common.language import Text
from daemon.core.errors import NotFound
from daemon.core.ledger import chain
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book, Closure, LastSeen
from daemon.core.machine.state import FiscalCounters
from daemon.core.report import fiscal_reports
from daemon.store.sqlite.file import load
from daemon.store.tables.book import take_overs
from daemon.store.tables.book.acts import cash_of_period
from daemon.store.tables.book.books import read_head
from daemon.store.tables.book.codec import seen_text
from daemon.store.tables.book.deferred import backlog
from daemon.store.tables.book.totals import add_new, isfs_of_period, write_totals

COLUMNS = (
    "z_number, report_id, period_start, period_end, created_at, certs_count, total_ttc, tc, fvc, frc, unexplained, "
    "first_seq, last_seq, body, hash, chained_at, chained_start"
)
_SQL = load(__name__, columns=COLUMNS)


class PeriodFigures(TypedDict, total=False):
    """What is said of a period at its end. `counters`: the machine's, which have counted `unexplained` others;
    `letterhead`: digest in hex; `counted`: cash in the drawer."""

    counters: Required[FiscalCounters]
    unexplained: Required[int]
    without_machine: bool
    letterhead: str
    counted: int | None


def close_period(
    connection: sqlite3.Connection,
    book: Book,
    *,
    at: int,
    zone: tzinfo,
    labels: Mapping[str, str],
    seen: LastSeen | None = None,
    **figures: Unpack[PeriodFigures],
) -> Closure:
    """Brings in the rest, freezes, numbers, chains, and opens the next period."""
    totals, _ = add_new(connection, book, zone)
    head = read_head(connection, book.id)
    last_z, found = connection.execute(_SQL["opening"], (book.id,)).fetchone()
    counters = figures["counters"]
    figures["unexplained"] += found
    totals.fvc_end = counters.fvc
    since, at = totals.period_start or at, max(at, head.at)
    report = fiscal_reports.z_report(
        book,
        totals.aggregate(),
        z_number=last_z + 1,
        report_id=str(uuid.uuid4()),
        created_at=at,
        chain_previous=head.hash,
        cash=cash_of_period(connection, book, totals.period_start),
        isfs=isfs_of_period(connection, book),
        waiting=backlog(connection, book).waiting,
        labels=labels,
        stands_for=take_overs.stands_for(connection, book, since, at),
        **figures,
    )
    closure = Closure(
        z_number=report.z_number,
        report_id=report.report_id,
        period_start=totals.period_start or at,
        period_end=at,
        created_at=at,
        certs_count=report.certs_count,
        total_ttc=report.total_ttc,
        counters=counters,
        unexplained=report.unexplained,
        first_seq=totals.closed_seq + 1,
        last_seq=totals.seq,
        body=msgspec.json.encode(report),
        hash=b"",
    )
    closure = msgspec.structs.replace(closure, hash=chain.closure_hash(head.hash, closure))
    values = asdict(closure) | asdict(counters) | {"book": book.id, "seen": seen_text(seen)}
    connection.execute(_SQL["insert"], values)
    connection.execute(_SQL["advance"], values)
    totals.closed, totals.closed_seq, totals.period_start, totals.fvc_start = totals.running, totals.seq, at, 0
    write_totals(connection, book.id, totals)
    return closure


def find_closure(connection: sqlite3.Connection, book: Book, z_number: int) -> Closure:
    row = connection.execute(_SQL["by_number"], (book.id, z_number)).fetchone()
    if row is None:
        raise NotFound(Text("there is no Z number {z_number}", z_number=z_number))
    return closure_of(row)


def find_closure_by_id(connection: sqlite3.Connection, book: Book, report_id: str) -> Closure:
    """Of this book, or of the other machine of a pair."""
    row = connection.execute(_SQL["by_report_id"], (book.id, report_id)).fetchone()
    if row is None:
        raise NotFound(Text("there is no Z with this report_id"))
    return closure_of(row)


def closures_between(
    connection: sqlite3.Connection, book: Book, *, start: int, end: int, after: int = 0, limit: int = -1
) -> list[Closure]:
    """With `start <= created_at < end`, by z_number, from the one after `after`; a limit of -1: all of them."""
    values = (book.id, start, end, after, limit)
    return [closure_of(row) for row in connection.execute(_SQL["between"], values)]


def periods_of(connection: sqlite3.Connection, book: Book, records: Sequence[Record]) -> list[int]:
    """The Z number of each record, 0 in the open period. A closure is not older than its records."""
    ended = [record for record in records if record.seq]
    if not ended:
        return [0] * len(records)
    last = max(record.seq for record in ended)
    since = connection.execute(_SQL["since"], (book.id, min(record.ended_at for record in ended)))
    bounds = [(last_seq, z_number) for _, last_seq, z_number in takewhile(lambda row: row[0] <= last, since)]
    return [_holding(bounds, record.seq) if record.seq else 0 for record in records]


def _holding(bounds: list[tuple[int, int]], seq: int) -> int:
    at = bisect_left(bounds, seq, key=lambda bound: bound[0])
    return bounds[at][1] if at < len(bounds) else 0


def closure_of(row: tuple[Any, ...]) -> Closure:
    """`row` as `COLUMNS` has it."""
    figures, counters, (*rest, chained_at, chained_start) = row[:7], row[7:10], row[10:]
    values = (*figures, FiscalCounters(*counters), *rest, chained_at or 0, chained_start or 0)
    return Closure(*values)
