"""One book read from its first record to its head, everything recomputed on the way."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from common.language import Counted, Text
from daemon.core.errors import StorageFull
from daemon.core.invoice.number import number_key
from daemon.core.ledger import chain
from daemon.core.ledger.attempt import OPEN, Record
from daemon.core.ledger.book import Aggregate, Book, Closure, Tally
from daemon.core.ledger.entries import NO_CASH, Epoch, Gap, Placed, RecordsLost, TimeRepair, repaired
from daemon.core.ledger.tally import contribution
from daemon.core.report import fiscal_reports
from daemon.store.maintenance.recompute_parts import (
    CalendarCheck,
    CountersCheck,
    LossCheck,
    OriginalCheck,
    RegisterOfOutages,
    as_in_json,
    is_number_year,
)
from daemon.store.sqlite.disk_failure import storage_error
from daemon.store.sqlite.file import load
from daemon.store.tables.book.books import book_state, read_start
from daemon.store.tables.book.closures import COLUMNS, closure_of
from daemon.store.tables.book.codec import NUMBER, PAYLOAD, RECORD_COLUMNS, SEQ, read_tally, record_of, unpack
from daemon.store.tables.book.entries import entries, in_order
from daemon.store.tables.book.totals import STRIDE, read_totals

_SQL = load(__name__, record=RECORD_COLUMNS, closure=COLUMNS)
_HASH = RECORD_COLUMNS.split(", ").index("hash")
_STEP = 10_000

# What a report says that can be computed again; texts and whatever later versions add are the chain's business.
_FIGURES = (
    *("kind", "nim", "certs_count", "total_ttc", "total_ht", "total_tva", "by_group", "by_type"),
    *("period_start", "period_end", "fvc_start", "fvc_end"),
    *("z_number", "report_id", "created_at", "mcf_counters", "unexplained", "cash"),
)


def count_records(connection: sqlite3.Connection) -> int:
    """Of all books, as far as their heads go."""
    return int(connection.execute(_SQL["count"]).fetchone()[0])


class BookRecomputation:
    """`run` tells every problem to `note`; afterwards `records` and `z_number` say how far the book goes, and `losses`
    which records are missing that no entry of the chain names."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        book: Book,
        note: Callable[[str], None],
        progress: Callable[[int], None],
    ) -> None:
        self.records = 0
        self._now = start = read_start(connection, book.id)
        self._is_whole = start.is_whole
        self._first_fvc = start.fvc_start
        """Of the open period's first record: what mcfd 0.15 has as `fvc_start`, also where a later record has a lower one."""
        self._connection = connection
        self._book = book
        self._note = note
        self._progress = progress
        self._totals = read_totals(connection, book.id)
        self._entries = [placed for placed in entries(connection, book) if placed.id > start.entry_id]
        self._repairs = [(placed, entry) for placed in self._entries if isinstance(entry := placed.entry, TimeRepair)]
        self._losses = LossCheck(self._entries, note)
        epochs = [entry for placed in self._entries if isinstance(entry := placed.entry, Epoch)]
        self._nim = epochs[0].was if epochs else book.nim
        self._epoch = epochs[0].number - 1 if epochs else book_state(connection, book).epoch
        self._original = OriginalCheck(connection, book, has_lost=bool(self._losses.named))
        self._counters = CountersCheck()
        self.closures = 0
        self._calendar = CalendarCheck(book, start)
        self._outages = RegisterOfOutages()
        self._checkpoints = self._rows("checkpoints")
        self._checkpoint = next(self._checkpoints, None)

    @property
    def z_number(self) -> int:
        return self._now.z_number

    @property
    def losses(self) -> list[RecordsLost]:
        return self._losses.found

    def run(self) -> None:
        if self._book.mode == "live" and not self._is_whole:
            self._note(Text("a live book has lost its beginning"))
        self._check_totals()
        records = ((row[SEQ], row) for row in self._record_rows())
        for (seq, *_), item in in_order(records, map(closure_of, self._rows("closures")), self._entries):
            match item:
                case Closure():
                    self._pass_missing(seq, item.hash.hex())
                    self._take_closure(item)
                case Placed(entry=RecordsLost(next_hash="")):  # of records that were lost right before it
                    self._pass_missing(seq, "")
                    self._take_entry(item)
                case Placed():
                    self._pass_missing(seq, item.hash.hex())
                    self._take_entry(item)
                case _:
                    self._try_record(item)
        self._check_end()

    # -- records ----------------------------------------------------------------------------------------------------

    def _record_rows(self) -> Iterator[tuple[Any, ...]]:
        """In their order; past a page that cannot be read, one by one by the index of the seqs."""
        after = self._now.seq
        try:
            for row in self._rows("records", after):
                after = row[SEQ]
                yield row
        except sqlite3.DatabaseError as error:
            if isinstance(storage_error(error), StorageFull):
                raise
        else:
            return
        found: tuple[Any, ...] | None
        for record_id, seq in self._connection.execute(_SQL["places"], (self._book.id, after)).fetchall():
            try:
                found = self._connection.execute(_SQL["record"], (record_id,)).fetchone()
            except sqlite3.DatabaseError:
                found = None
            if found is not None and found[SEQ] == seq:
                yield found
            else:
                self._note(Text("record {seq} cannot be read", seq=seq))

    def _try_record(self, row: tuple[Any, ...]) -> None:
        """Whatever its bytes are, it is this record's finding, and the chain goes on from its hash."""
        try:
            self._take_record(row)
            self._check_key(row)
        except Exception as error:
            if isinstance(error, sqlite3.Error) and isinstance(storage_error(error), StorageFull):
                raise
            if isinstance(row[_HASH], bytes):
                self._now.hash = row[_HASH]
            if self._losses.take_unreadable(row[SEQ]):
                return
            error = error.with_traceback(None)  # its frames have cursors, which would keep the file locked
            names: dict[str, object] = {"seq": row[SEQ], "number": row[NUMBER], "error": error}
            self._note(Text("record {seq} (invoice {number!r}) cannot be read: {error}", **names))

    def _take_record(self, row: tuple[Any, ...]) -> None:
        *columns, stored_tally, epoch, original_id, _, number_year = row
        content = unpack(row[PAYLOAD]) if isinstance(row[PAYLOAD], bytes) else b""
        record = record_of(tuple(columns), content)
        names: dict[str, object] = {"seq": record.seq, "number": record.number}
        self._pass_missing(record.seq - 1, record.hash.hex())
        if not self._losses.is_after_loss and chain.record_hash(self._now.hash, record, content) != record.hash:
            self._note(Text("record {seq} (invoice {number!r}) does not continue the chain", **names))
        self._check_time(Text("record {seq}", seq=record.seq), record.ended_at, record.chained_at, (record.seq, 0))
        if record.ended_at < self._now.at:
            self._note(Text("record {seq} is older than the one before it", seq=record.seq))
        tally = read_tally(stored_tally)
        if problem := self._wrong_beside(record, tally, epoch, original_id, number_year):
            self._note(problem(**names))
        counters = record.counters if record.state == "certified" else None
        fvc = counters.fvc if counters else None
        before = self._now.fvc_start
        self._now.pass_record(record.seq, record.ended_at, record.hash, tally, kind=record.type, fvc=fvc, epoch=epoch)
        if not before:
            self._first_fvc = self._now.fvc_start
        if counters:
            self._counters.check(counters, record.ifu, is_decided=bool(record.reason))
        if record.seq == self._totals.seq:
            self._counters.totals_at = record.ended_at
        self._check_checkpoint()
        self._check_totals()
        self.records += 1
        if self.records % _STEP == 0:
            self._progress(self.records)

    def _wrong_beside(
        self, record: Record, tally: Tally, epoch: int, original_id: int | None, number_year: int
    ) -> Text | None:
        """What of its row, beside what is chained, does not follow from that; with `seq` and `number`."""
        if record.state in OPEN:
            return Text("record {seq} (invoice {number!r}) has a place in the book without having ended")
        if tally != contribution(record):
            return Text("record {seq} (invoice {number!r}) counts for other amounts than it has")
        if record.state == "certified" and epoch != self._epoch:
            return Text("record {seq} (invoice {number!r}) is not of the activation that it stands in")
        if not self._original.fits(record.invoice, original_id):
            return Text("record {seq} (invoice {number!r}) is entered as a credit of another sale than it names")
        if not is_number_year(record, number_year):
            return Text("record {seq} (invoice {number!r}) holds its number in another year than it was given for")
        return None

    def _check_key(self, row: tuple[Any, ...]) -> None:
        seq, number, key = row[SEQ], row[NUMBER], row[-2]
        if (key or number) != number_key(number):
            self._note(
                Text("record {seq} (invoice {number!r}) is looked for under another number", seq=seq, number=number)
            )

    def _pass_missing(self, last: int, next_hash: str) -> None:
        first = self._now.seq + 1
        self._losses.pass_missing(
            self._now, last, next_hash, self._totals.running if first <= self._totals.seq <= last else None
        )
        while self._checkpoint is not None and first <= self._checkpoint[0] <= last:
            self._checkpoint = next(self._checkpoints, None)

    def _check_checkpoint(self) -> None:
        due = self._now.seq % STRIDE == 0 and self._now.seq <= self._totals.seq
        if self._checkpoint is None or self._checkpoint[0] != self._now.seq:
            if due:
                self._note(Text("the checkpoint at record {seq} is missing", seq=self._now.seq))
            return
        _, at, running = self._checkpoint
        if not self._losses.is_sum(self._now, read_tally(running)) or at != self._now.at:
            self._note(Text("the checkpoint at record {seq} is not the sum of what came before it", seq=self._now.seq))
        self._checkpoint = next(self._checkpoints, None)

    def _check_totals(self) -> None:
        if self._totals.seq == self._now.seq and not self._losses.is_sum(self._now, self._totals.running):
            self._note(Text("the running totals are not the sum of the records up to {seq}", seq=self._now.seq))

    # -- closures ---------------------------------------------------------------------------------------------------

    def _take_entry(self, placed: Placed) -> None:
        entry, name = placed.entry, Text("entry {number}", number=placed.id)
        if (placed.after_seq, placed.after_z) != (self._now.seq, self.z_number):
            self._note(Text("{name} is not in its place", name=name))
        if not self._losses.is_after_loss and chain.entry_hash(self._now.hash, placed) != placed.hash:
            self._note(Text("{name} does not continue the chain", name=name))
        self._check_entry_time(name, placed)
        if placed.at < self._now.at:
            self._note(Text("{name} is older than what comes before it", name=name))
        previous = b"" if self._losses.is_after_loss else self._now.hash
        for problem in self._calendar.problems(entry, placed, self._nim, previous):
            self._note(problem)
        if problem := self._outages.problem(name, entry):
            self._note(problem)
        if isinstance(entry, Gap) and (entry.first, entry.last < entry.first) != (self.z_number + 1, False):
            self._note(Text("{name} does not begin after the last Z", name=name))
        if isinstance(entry, Epoch):
            self._nim, self._epoch = entry.nim, entry.number
            self._counters.begin(entry)
        self._now.pass_entry(placed)  # what a repair changed was compared with it on the way (`_check_time`)

    def _check_time(self, what: str, at: int, chained: int, place: tuple[int, int]) -> None:
        """A time that is not the chained one has to be what the repairs after it make of that."""
        expected = chained or at
        for placed, repair in self._repairs:
            seq, z_number = place
            concerned = (
                repair.first_seq <= seq <= placed.after_seq if seq else repair.first_z <= z_number <= placed.after_z
            )
            if concerned:
                expected = repaired(expected, repair, placed.at)
        if at != expected:
            self._note(Text("{what} has another time than the chain", what=what))

    def _check_entry_time(self, what: str, placed: Placed) -> None:
        """The same of an entry, which is concerned by each later repair that it would come after."""
        expected = placed.chained_at or placed.at
        for later, repair in self._repairs:
            if later.id > placed.id and expected > later.at:
                expected = repaired(expected, repair, later.at)
        if placed.at != expected:
            self._note(Text("{what} has another time than the chain", what=what))

    def _take_closure(self, closure: Closure) -> None:
        name = Text("Z {z_number}", z_number=closure.z_number)
        if closure.z_number != self.z_number + 1:
            self._note(Text("Z {first} to {last} are missing", first=self.z_number + 1, last=closure.z_number - 1))
        if (closure.first_seq, closure.last_seq) != (self._now.closed_seq + 1, self._now.seq):
            self._note(Text("{name} does not hold exactly the records since the Z before it", name=name))
        self._check_time(name, closure.created_at, closure.chained_at, (0, closure.z_number))
        if not self._losses.is_after_loss and chain.closure_hash(self._now.hash, closure) != closure.hash:
            self._note(Text("{name} does not continue the chain", name=name))
        if self._losses.is_start_lost and not self.closures and closure.period_start < self._now.period_start:
            self._now.period_start = closure.period_start  # of the book's first sale, which is lost
        if closure.period_start != (self._now.period_start or closure.period_end):
            self._note(Text("{name} does not begin where the Z before it ended", name=name))
        if closure.created_at < self._now.at or closure.period_end != closure.created_at:
            self._note(Text("{name} is older than what it holds", name=name))
        for figure in (
            self._wrong_figures(closure) if not (self._losses.is_unsure or self._losses.is_closed_unsure) else ()
        ):
            self._note(Text("{name} reports another {figure} than its records give", name=name, figure=figure))
        self._calendar.take_closure(
            closure, None if self._losses.is_unsure else dict(self._now.running), self._now.cash
        )
        self._now.pass_closure(closure.z_number, closure.created_at, closure.hash, closure.period_end)
        self._losses.pass_closure()
        self._counters.check(closure.counters)
        self.closures += 1

    def _wrong_figures(self, closure: Closure) -> Iterator[str]:
        ours = as_in_json(
            fiscal_reports.z_report(
                msgspec.structs.replace(self._book, nim=self._nim),
                self._aggregate(closure),
                z_number=closure.z_number,
                report_id=closure.report_id,
                created_at=closure.chained_at or closure.created_at,
                counters=closure.counters,
                unexplained=closure.unexplained,
                chain_previous=self._now.hash,
                cash=self._now.cash,
            )
        )
        stored = msgspec.json.decode(closure.body, type=dict[str, Any])
        row = {"certs_count": closure.certs_count, "total_ttc": closure.total_ttc}
        if self._now.cash == NO_CASH:  # the Z of a version that did not know of cash does not speak of it
            stored.setdefault("cash", ours["cash"])
        for figure in _FIGURES:
            expected = ours[figure]
            is_first = self._now.fvc_start and stored.get(figure) == self._first_fvc
            if figure == "fvc_start" and (is_first or self._losses.is_start_lost):
                continue
            if stored.get(figure) != expected or row.get(figure, expected) != expected:
                yield figure

    def _aggregate(self, closure: Closure) -> Aggregate:
        return Aggregate(
            seq=self._now.seq,
            at=self._now.at,
            running=self._now.running,
            closed=self._now.closed,
            period_start=closure.chained_start or self._now.period_start,
            fvc_start=self._now.fvc_start,
            fvc_end=closure.counters.fvc,
        )

    # -- the end ------------------------------------------------------------------------------------------------------

    def _check_end(self) -> None:
        book = self._connection.execute(_SQL["book"], (self._book.id,)).fetchone()
        last_seq, last_at, head, z_number = book
        self._pass_missing(last_seq, "")
        self._losses.end({})
        if (last_seq, head) != (self._now.seq, self._now.hash):
            self._note(
                Text("the head of the chain is not its last record: the end of the book is missing or was changed")
            )
        if last_at < self._now.at:
            self._note(Text("the book is older than its last record"))
        if z_number != self.z_number:
            self._note(Text("the last Z should be {z_number}", z_number=z_number))
        if self._checkpoint is not None:
            self._note(Text("there is a checkpoint at record {seq} that belongs to nothing", seq=self._checkpoint[0]))
        totals = self._totals
        closed = totals.closed if self._losses.is_closed_unsure else self._now.closed
        if totals.seq > self._now.seq or (totals.closed, totals.closed_seq) != (closed, self._now.closed_seq):
            self._note(Text("the totals were not closed where the last Z ends"))
        # 0: the numbers begin with a gap, and no tick has come since the first sale.
        starts = {self._now.period_start, 0 if totals.seq < self._now.seq else self._now.period_start}
        if self.z_number and totals.period_start not in starts:
            self._note(Text("the open period does not begin where the last Z ended"))
        first = {self._now.fvc_start, self._first_fvc if self._now.fvc_start else 0}
        if totals.seq == self._now.seq and totals.fvc_start not in first and not self._losses.is_start_lost:
            self._note(Text("the open period does not begin with its first sale"))
        for problem in self._counters.problems(book_state(self._connection, self._book), totals):
            self._note(problem)
        (half_ended,) = self._connection.execute(_SQL["half_ended"], (self._book.id,)).fetchone()
        if half_ended:
            self._note(
                Counted(
                    "{count} attempt has ended without a place in the book",
                    "{count} attempts have ended without a place in the book",
                    half_ended,
                )
            )

    def _rows(self, name: str, *more: int) -> Iterator[tuple[Any, ...]]:
        return iter(self._connection.execute(_SQL[name], (self._book.id, *more)))
