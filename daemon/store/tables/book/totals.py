"""Totals are running sums: any report is the difference of two of them (docs/architecture.md).

`total` has the running tally of a book up to the last tick; `checkpoint` has it every 64 entries and at the end of each
local day. The time zone only decides where the day's checkpoints are, not the result of a report."""

import sqlite3
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta, tzinfo

import msgspec
from msgspec.structs import asdict

from daemon.core.clock import millis
from daemon.core.invoice.invoice import CREDITS
from daemon.core.ledger.book import Aggregate, Book, Tally
from daemon.core.ledger.tally import accumulate, subtract
from daemon.store.sqlite.file import load, value_of
from daemon.store.tables.book.books import read_start
from daemon.store.tables.book.codec import read_tally, tally_bytes

_SQL = load(__name__)

STRIDE = 64
"""Entries between two checkpoints, so that a range adds up at most 63 rows at each end."""

BATCH = 2000
"""Entries brought in by one transaction of the tick, so that a long absence does not hold up the writer."""

_NEVER = sys.maxsize


class TotalRow(msgspec.Struct):
    """The row of one book in `total`. Times in ms."""

    seq: int
    at: int
    closed_seq: int
    period_start: int
    fvc_start: int
    fvc_end: int
    running: Tally
    closed: Tally

    def aggregate(self) -> Aggregate:
        return Aggregate(self.seq, self.at, self.running, self.closed, self.period_start, self.fvc_start, self.fvc_end)


def read_totals(connection: sqlite3.Connection, book_id: int) -> TotalRow:
    row = connection.execute(_SQL["read"], (book_id,)).fetchone()
    return TotalRow(*row[:-2], *map(read_tally, row[-2:]))


def write_totals(connection: sqlite3.Connection, book_id: int, totals: TotalRow) -> None:
    sums = {"running": tally_bytes(totals.running), "closed": tally_bytes(totals.closed)}
    connection.execute(_SQL["write"], asdict(totals) | sums | {"book": book_id})


def is_behind(connection: sqlite3.Connection, book: Book) -> bool:
    """Whether something has ended since the last tick."""
    return bool(connection.execute(_SQL["behind"], (book.id,)).fetchone()[0])


def add_new(connection: sqlite3.Connection, book: Book, zone: tzinfo, limit: int = -1) -> tuple[TotalRow, bool]:
    """Folds in what ended since the last tick, at most `limit` entries (-1: all); the totals, and whether that was all."""
    totals = read_totals(connection, book.id)
    last_seq, last_fvc = connection.execute(_SQL["head"], (book.id,)).fetchone()
    rows = connection.execute(_SQL["ended"], (book.id, totals.seq, limit))
    complete = _fold(connection, book.id, totals, rows, zone) != limit
    if complete:
        totals.seq, totals.fvc_end = last_seq, max(totals.fvc_end, last_fvc)  # also where the newest rows are lost
    write_totals(connection, book.id, totals)
    return totals, complete


def tally_between(connection: sqlite3.Connection, book: Book, start: int, end: int) -> Tally:
    """What ended in `start <= t < end` (ms), of all that the last tick brought in."""
    totals = read_totals(connection, book.id)
    until = totals.running if end > totals.at else _running_before(connection, book.id, end, totals.seq)
    return subtract(until, _running_before(connection, book.id, start, totals.seq))


def aggregate_between(connection: sqlite3.Connection, book: Book, start: int, end: int) -> Aggregate:
    """The totals of a range as an Aggregate: `running` is the range, `closed` empty, `period_start` is `start`.
    `fvc_start`: lowest FVC of its sales, 0 without one; `fvc_end`: the highest, else the last one known before `end`."""
    totals = read_totals(connection, book.id)
    after, upto = bracket(connection, book, start, end)
    upto = totals.seq if upto is None else min(upto, totals.seq)
    place = {"book": book.id, "after": after, "upto": upto, "start": start, "end": end}
    first, last = connection.execute(_SQL["fvc_range"], place).fetchone()
    return Aggregate(
        seq=totals.seq,
        at=totals.at,
        running=tally_between(connection, book, start, end),
        closed={},
        period_start=start,
        fvc_start=first or 0,
        fvc_end=last or _fvc_before(connection, book, end, totals),
    )


def isfs_of_period(connection: sqlite3.Connection, book: Book) -> tuple[str, ...]:
    """Under which the certifications of the open period were made, as far as the last tick has brought them in."""
    totals = read_totals(connection, book.id)
    return _isfs(connection, book, (totals.closed_seq, totals.seq), (0, _NEVER))


def isfs_between(connection: sqlite3.Connection, book: Book, start: int, end: int) -> tuple[str, ...]:
    """The same of `start <= t < end` (ms)."""
    totals = read_totals(connection, book.id)
    after, upto = bracket(connection, book, start, end)
    return _isfs(connection, book, (after, totals.seq if upto is None else min(upto, totals.seq)), (start, end))


def _isfs(connection: sqlite3.Connection, book: Book, seqs: tuple[int, int], times: tuple[int, int]) -> tuple[str, ...]:
    """Of records with a seq after the first of `seqs` up to the second, ended at the first of `times` or later, before
    the second."""
    (after, upto), (start, end) = seqs, times
    place = {"book": book.id, "after": after, "upto": upto, "start": start, "end": end}
    return tuple(isf for (isf,) in connection.execute(_SQL["isfs"], place))


def _fvc_before(connection: sqlite3.Connection, book: Book, end: int, totals: TotalRow) -> int:
    """The last FVC known before `end`: from a certification or a closure, or as the book has it now."""
    if end > totals.at:
        return totals.fvc_end
    _, upto = bracket(connection, book, end, end)
    place = {"book": book.id, "upto": totals.seq if upto is None else upto, "end": end}
    return int(value_of(connection.execute(_SQL["fvc_before"], place)))


def bracket(connection: sqlite3.Connection, book: Book, start: int, end: int) -> tuple[int, int | None]:
    """The seqs between which everything lies that ended in `start <= t < end`: after the first, up to the second."""
    before = connection.execute(_SQL["checkpoint_before"], (book.id, start))
    after = connection.execute(_SQL["checkpoint_from"], (book.id, end))
    return value_of(before), value_of(after, None)


def _running_before(connection: sqlite3.Connection, book_id: int, t: int, last_seq: int) -> Tally:
    """The running tally of what ended before `t`: that of the last checkpoint, and the few rows after it."""
    checkpoint = connection.execute(_SQL["checkpoint_before"], (book_id, t)).fetchone()
    upto = value_of(connection.execute(_SQL["checkpoint_from"], (book_id, t)), last_seq)
    return _running_from(connection, book_id, checkpoint, upto=upto, end=t)


def _running_from(
    connection: sqlite3.Connection, book_id: int, checkpoint: tuple[int, bytes] | None, *, upto: int, end: int
) -> Tally:
    """From a checkpoint, or the book's start without one: with the records up to `upto` that ended before `end`."""
    if checkpoint is None:
        start = read_start(connection, book_id)
        seq, running = start.seq, start.running
    else:
        seq, running = checkpoint[0], read_tally(checkpoint[1])
    for (tally,) in connection.execute(_SQL["tallies"], (book_id, seq, upto, end)):
        accumulate(running, read_tally(tally))
    return running


def running_at(connection: sqlite3.Connection, book: Book, seq: int) -> Tally:
    """The running tally up to the record `seq`, which the totals have brought in."""
    totals = read_totals(connection, book.id)
    if seq == totals.closed_seq:
        return totals.closed
    checkpoint = connection.execute(_SQL["checkpoint_at"], {"book": book.id, "seq": seq}).fetchone()
    return _running_from(connection, book.id, checkpoint, upto=seq, end=_NEVER)


def _fold(
    connection: sqlite3.Connection,
    book_id: int,
    totals: TotalRow,
    rows: Iterable[tuple[int, int, str, int | None, bytes]],
    zone: tzinfo,
) -> int:
    """How many there were."""
    midnight, count = day_end(totals.at, zone), 0
    for count, (seq, ended_at, kind, fvc, tally) in enumerate(rows, 1):  # noqa: B007  counted
        if ended_at >= midnight:
            if totals.seq % STRIDE:  # else it has one already
                _checkpoint(connection, book_id, totals)
            midnight = day_end(ended_at, zone)
        accumulate(totals.running, read_tally(tally))
        totals.seq, totals.at = seq, ended_at
        if fvc is not None:
            _note_certified(connection, book_id, totals, kind, fvc)
        if seq % STRIDE == 0:
            _checkpoint(connection, book_id, totals)
    return count


def _note_certified(connection: sqlite3.Connection, book_id: int, totals: TotalRow, kind: str, fvc: int) -> None:
    """A sale that was entered from paper may lie behind a later one; counters that a new activation began again are no
    lower ones."""
    totals.fvc_end = fvc
    totals.period_start = totals.period_start or totals.at
    place = (book_id, totals.fvc_start, totals.closed_seq, totals.seq)
    is_lower = fvc < totals.fvc_start and value_of(connection.execute(_SQL["same_activation"], place))
    if kind not in CREDITS and (is_lower or not totals.fvc_start):
        totals.fvc_start = fvc


def _checkpoint(connection: sqlite3.Connection, book_id: int, totals: TotalRow) -> None:
    connection.execute(_SQL["checkpoint"], (book_id, totals.at, totals.seq, tally_bytes(totals.running)))


def day_end(at: int, zone: tzinfo) -> int:
    """The local midnight after `at`, both in ms."""
    try:
        day = datetime.fromtimestamp(at // 1000, zone).date() + timedelta(days=1)
        return millis(datetime.combine(day, time(), zone).astimezone(UTC))
    except (OverflowError, ValueError):
        return _NEVER  # the last day of the year 9999, from a clock before it was repaired
