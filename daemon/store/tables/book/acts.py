"""Acts in the journal beside certifications: cash movements, duplicates, issued reports. Functions on a connection."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

from common.language import Text
from daemon.core.audit import INTERNAL, Call
from daemon.core.clock import HOUR
from daemon.core.errors import NotFound, TooManyActs
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import NO_CASH, CashMove, CashTotal, CopyAct, Placed, ReportAct
from daemon.store.sqlite.file import load, read_as
from daemon.store.tables import audit
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import read_start
from daemon.store.tables.book.entries import COLUMNS, append

_SQL = load(__name__, columns=COLUMNS)


class ActLimit(NamedTuple):
    """At most so many acts of a type by one key or person within an hour of the box's clock, which says `box_at` (ms);
    the book's may stand still for days after a fast clock."""

    most: int
    box_at: int


def make_copy(
    connection: sqlite3.Connection,
    book: Book,
    code: str,
    number: str,
    *,
    at: int,
    call: Call,
    limit: ActLimit | None = None,
) -> int:
    """Which duplicate of that certification it is, from 1. TooManyActs."""
    copy = copies(connection, book, code) + 1
    placed = _append(connection, book, CopyAct(code, number, copy), at, by=call.by.name, limit=limit)
    detail = {"invoice_number": number, "copy": str(copy)}
    audit.add_of_book(connection, book, "copy.made", at=placed.at, by=call.by, detail=detail)
    return copy


def insert_report(
    connection: sqlite3.Connection,
    book: Book,
    report: ReportAct,
    *,
    at: int,
    call: Call,
    answer: Callable[[int], bytes] | None = None,
    limit: ActLimit | None = None,
) -> ReportAct:
    """A numbered one gets the next number, `answer` its body. TooManyActs."""
    act = report
    if answer is not None:
        last = last_closed(connection, book)
        number = 1 + (last.entry.number if last and isinstance(last.entry, ReportAct) else 0)
        act = ReportAct(report.kind, answer(number).decode(), number, report.upto_seq)
    placed = _append(connection, book, act, at, by=call.by.name, limit=limit)
    if answer is not None:
        attempts.insert_answer(connection, book, call, at=placed.at, answer=act.body.encode())
    detail = {"kind": act.kind, "number": str(act.number or "")}
    audit.add_of_book(connection, book, "report.given", at=placed.at, by=call.by, detail=detail)
    return act


def move_cash(
    connection: sqlite3.Connection,
    book: Book,
    move: CashMove,
    *,
    at: int,
    answer: Callable[[Placed], bytes],
    call: Call = INTERNAL,
    limit: ActLimit | None = None,
) -> bytes:
    """Stores a movement and returns `answer` of its entry. TooManyActs."""
    placed = _append(connection, book, move, at, by=call.by.name, limit=limit)
    body = answer(placed)
    attempts.insert_answer(connection, book, call, at=placed.at, answer=body)
    detail = {"kind": move.kind, "amount": str(move.amount), "reason": move.reason}
    audit.add_of_book(connection, book, "cash.moved", at=placed.at, by=call.by, detail=detail)
    return body


def copies(connection: sqlite3.Connection, book: Book, code: str) -> int:
    """How many duplicates of that certification were given out."""
    found: int = connection.execute(_SQL["copies"], (book.id, code)).fetchone()[0]
    return found


def last_closed(connection: sqlite3.Connection, book: Book) -> Placed | None:
    """The newest closed report of articles."""
    return next(read_as(Placed, connection.execute(_SQL["last_closed"], (book.id,))), None)


def closed_articles(connection: sqlite3.Connection, book: Book, number: int) -> Placed:
    for placed in read_as(Placed, connection.execute(_SQL["closed"], (book.id, number))):
        return placed
    raise NotFound(Text("there is no report of articles number {number}", number=number))


def issued_report(connection: sqlite3.Connection, book: Book, entry_id: int) -> Placed:
    for placed in read_as(Placed, connection.execute(_SQL["report"], (book.id, entry_id))):
        return placed
    raise NotFound(Text("there is no report {number}", number=entry_id))


def acts_between(
    connection: sqlite3.Connection, book: Book, *, start: int, end: int, after: int, limit: int
) -> list[Placed]:
    """Cash, duplicates, reports and outages in `start <= t < end` (ms), oldest first, after the id `after`."""
    return list(read_as(Placed, connection.execute(_SQL["acts"], (book.id, start, end, after, limit))))


def cash_of_period(connection: sqlite3.Connection, book: Book, period_start: int) -> CashTotal:
    """Cash of the period that begins at `period_start` (ms; 0 before anything was certified): the entries after the
    last Z up to then, whatever the clock, so that a movement in the millisecond of a Z is in one period only."""
    since = period_start if connection.execute(_SQL["has_closure"], (book.id, period_start)).fetchone()[0] else 0
    start = read_start(connection, book.id)
    deposits, withdrawals, after_z = connection.execute(_SQL["period"], (book.id, since, start.entry_id)).fetchone()
    gone = start.cash if after_z <= start.z_number else NO_CASH  # of this period, let go of in a sandbox
    return CashTotal(deposits + gone.deposits, withdrawals + gone.withdrawals)


def cash_between(connection: sqlite3.Connection, book: Book, start: int, end: int) -> CashTotal:
    """What was moved in `start <= t < end` (ms)."""
    return next(read_as(CashTotal, connection.execute(_SQL["between"], (book.id, start, end))))


def cash_moves(
    connection: sqlite3.Connection, book: Book, *, start: int, end: int, after: int, limit: int
) -> list[Placed]:
    """Oldest first; go on with `after` = the id of the last one."""
    return list(read_as(Placed, connection.execute(_SQL["list"], (book.id, start, end, after, limit))))


def newest_moves(connection: sqlite3.Connection, book: Book, *, start: int, end: int, limit: int) -> list[Placed]:
    """Newest first."""
    return list(read_as(Placed, connection.execute(_SQL["newest"], (book.id, start, end, limit))))


def _append(
    connection: sqlite3.Connection,
    book: Book,
    act: CashMove | CopyAct | ReportAct,
    at: int,
    *,
    by: str,
    limit: ActLimit | None,
) -> Placed:
    """Places the act in the chain, with its actor `by` where there is a limit. TooManyActs."""
    if limit is None:
        return append(connection, book, act, at)
    since, kind = limit.box_at - HOUR, act.__struct_config__.tag
    noted = (book.id, by, since, limit.box_at, kind, limit.most - 1)
    if found := connection.execute(_SQL["noted"], noted).fetchone():
        raise TooManyActs(limit.most, -((since - found[0]) // 1000))
    placed = append(connection, book, act, at)
    connection.execute(_SQL["note"], (by, limit.box_at, placed.id))
    return placed


def periods_of_moves(connection: sqlite3.Connection, book: Book, moves: Sequence[Placed]) -> list[int]:
    """The Z number that each is in, 0 while it is in the open period."""
    found: dict[int, int] = {}
    for z_number in {move.after_z for move in moves}:
        (found[z_number],) = connection.execute(_SQL["z_after"], (book.id, z_number)).fetchone()
    return [found[move.after_z] for move in moves]
