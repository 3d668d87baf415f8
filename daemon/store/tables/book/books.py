"""Books: the beginning of each, its machine's state and the head of its chain. A live book begins with its first
record, a sandbox's after its deleted ones (`maintenance.sandbox`). Functions on a connection, for the writer or a
reader."""

import sqlite3
import uuid
from typing import NamedTuple

import msgspec
from msgspec.structs import asdict

from common.language import Text
from common.language.reasons import to_stored
from daemon.core.delivery import BookSummary
from daemon.core.errors import NotFound
from daemon.core.invoice.invoice import CREDITS
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book, BookState, LastSeen, Tally
from daemon.core.ledger.chain import GENESIS
from daemon.core.ledger.entries import NO_CASH, CashMove, CashTotal, Gap, Placed
from daemon.core.ledger.tally import accumulate
from daemon.core.machine.state import FiscalCounters, LastInvoice, MachineState, short_nim
from daemon.store.sqlite.file import load, read_as
from daemon.store.tables.book.codec import (
    counters_of,
    rates_text,
    read_rates,
    read_seen,
    read_tally,
    seen_text,
    tally_bytes,
)
from daemon.store.tables.meta import Lineage, read_lineage

_SQL = load(__name__)


class BookHead(NamedTuple):
    """The end of a book: the last seq, the youngest time (ms) and the chain's hash."""

    seq: int
    at: int
    hash: bytes


def open_book(connection: sqlite3.Connection, nim: str, mode: Mode) -> Book:
    """The book of the machine's present taxpayer, whatever its activation (decision 33); a new one if missing."""
    return find_book(connection, nim, mode) or new_book(connection, nim, mode)


def find_book(connection: sqlite3.Connection, nim: str, mode: Mode) -> Book | None:
    short = short_nim(nim)
    found = connection.execute(_SQL["find"], (mode, short, f"{short}-*", nim)).fetchone()
    return None if found is None else Book(found[0], found[1], mode)


def new_book(connection: sqlite3.Connection, nim: str, mode: Mode) -> Book:
    (book_id,) = connection.execute(_SQL["insert"], (nim, mode, GENESIS)).fetchone()
    connection.execute(_SQL["insert_total"], (book_id, tally_bytes({}), tally_bytes({})))
    return Book(book_id, nim, mode)


def books_named(connection: sqlite3.Connection, nim: str, mode: Mode) -> list[int]:
    """Ids of the books of exactly that NIM, of each taxpayer."""
    return [book_id for (book_id,) in connection.execute(_SQL["named"], (nim, mode))]


def all_books(connection: sqlite3.Connection) -> list[Book]:
    return list(read_as(Book, connection.execute(_SQL["all"])))


def books_of_taxpayer(connection: sqlite3.Connection, book: Book) -> list[Book]:
    """Those of its mode and taxpayer, itself included, and those of which the taxpayer is not known."""
    return list(read_as(Book, connection.execute(_SQL["of_taxpayer"], (book.id,))))


def books_perhaps_to_decide(connection: sqlite3.Connection) -> list[Book]:
    """All books with an open case, and few others."""
    return list(read_as(Book, connection.execute(_SQL["perhaps_to_decide"])))


def former_books(connection: sqlite3.Connection, book: Book) -> list[Book]:
    """Of the taxpayers that the machine had before."""
    short = short_nim(book.nim)
    return list(read_as(Book, connection.execute(_SQL["former"], (book.mode, short, f"{short}-*", book.id))))


def book_state(connection: sqlite3.Connection, book: Book) -> BookState:
    """Under the machine's name of now, whatever the caller's `book` remembers."""
    row = connection.execute(_SQL["state"], (book.id,)).fetchone()
    if row is None:
        raise NotFound(Text("the ledger has no book for {nim} ({mode})", nim=book.nim, mode=book.mode))
    tc, fvc, frc, nim, last_number, last_at, last_seq, rates, ifu, attention, unexplained, z_number, epoch, *rest = row
    needs_last_z, restored_at, last_code, lost, accepted_to, repairs, seen, in_use = rest
    return BookState(
        book=Book(book.id, nim, book.mode),
        counters=counters_of(tc, fvc, frc),
        last_number=last_number,
        last_at=last_at,
        last_seq=last_seq,
        rates=read_rates(rates),
        ifu=ifu,
        attention=attention,
        unexplained=unexplained,
        z_number=z_number,
        epoch=epoch,
        needs_last_z=bool(needs_last_z),
        is_restored=bool(restored_at),
        last_code=last_code,
        lost=lost,
        accepted_to=accepted_to,
        time_repairs=repairs,
        seen=read_seen(seen),
        in_use=bool(in_use),
    )


def read_head(connection: sqlite3.Connection, book_id: int) -> BookHead:
    return BookHead(*connection.execute(_SQL["head"], (book_id,)).fetchone())


def advance(connection: sqlite3.Connection, book_id: int, head: BookHead) -> None:
    connection.execute(_SQL["advance"], (*head, book_id))


def advance_certified(
    connection: sqlite3.Connection,
    book_id: int,
    head: BookHead,
    *,
    counters: FiscalCounters,
    seen: LastInvoice,
    unexplained: int,
) -> None:
    """`seen`: the invoice that was certified."""
    values = (counters.tc, counters.fvc, counters.frc, seen.number, seen_text(LastSeen(seen)))
    connection.execute(_SQL["advance_certified"], (*head, *values, unexplained, book_id))


def overwrite_state(connection: sqlite3.Connection, state: BookState) -> None:
    """The machine is known as in `state`, whatever an outcome that was entered late has made of it."""
    counters = (None, None, None) if state.counters is None else msgspec.structs.astuple(state.counters)
    connection.execute(_SQL["know"], (*counters, state.last_number, seen_text(state.seen), state.book.id))


def reconcile(connection: sqlite3.Connection, book: Book, state: MachineState, unexplained: int, at: int) -> None:
    """Takes over the machine's state. Writes only changes, so that a connection without news costs no fsync. A machine
    without a taxpayer (it is not activated) does not change the book's."""
    counters = state.counters
    *values, ifu, seen, restored_at = connection.execute(_SQL["reconciled_state"], (book.id,)).fetchone()
    values += (ifu, seen)
    now = (
        *msgspec.structs.astuple(counters),
        rates_text(state.rates),
        state.ifu or ifu,
        seen_text(LastSeen(state.last)),
    )
    if tuple(values) == now and not unexplained and not restored_at:
        return
    connection.execute(_SQL["reconcile"], (*now, unexplained, at, book.id))
    connection.execute(_SQL["raise_fvc"], (counters.fvc, book.id))


def attend(connection: sqlite3.Connection, book: Book, found: str, at: int) -> None:
    connection.execute(_SQL["attend"], (to_stored(found), at, book.id))


def accept_time(connection: sqlite3.Connection, upto: int) -> None:
    """Of every book: there is one clock."""
    connection.execute(_SQL["accept_time"], (upto,))


class BookStart(msgspec.Struct):
    """The beginning of a book: the state just before its first remaining record; times in ms. `byte_count`: size of the
    remaining records, closures and entries up to `counted_seq`, `counted_z` and `counted_id`."""

    seq: int = 0
    z_number: int = 0
    entry_id: int = 0
    at: int = 0
    hash: bytes = GENESIS
    running: Tally = msgspec.field(default_factory=dict)
    closed: Tally = msgspec.field(default_factory=dict)
    closed_seq: int = 0
    period_start: int = 0
    fvc_start: int = 0
    cash: CashTotal = NO_CASH
    counted_seq: int = 0
    counted_z: int = 0
    counted_id: int = 0
    byte_count: int = 0
    fvc_epoch: int = 0
    """The activation of `fvc_start`; not stored."""

    @property
    def is_whole(self) -> bool:
        """Nothing was let go of."""
        return (self.seq, self.z_number, self.entry_id) == (0, 0, 0)

    def pass_record(
        self, seq: int, at: int, link: bytes, tally: Tally, *, kind: str, fvc: int | None, epoch: int = 0
    ) -> None:
        """`fvc` is None for one that was not certified. A sale that was entered from paper may lie behind a later one."""
        accumulate(self.running, tally)
        self.seq, self.at, self.hash = seq, at, link
        if fvc is not None:
            self.period_start = self.period_start or at
            if kind not in CREDITS and (not self.fvc_start or epoch == self.fvc_epoch):
                self.fvc_start, self.fvc_epoch = min(fvc, self.fvc_start or fvc), epoch

    def pass_closure(self, z_number: int, at: int, link: bytes, period_end: int) -> None:
        self.z_number, self.at, self.hash = z_number, at, link
        self.closed, self.closed_seq = dict(self.running), self.seq
        self.period_start, self.fvc_start, self.cash = period_end, 0, NO_CASH

    def pass_entry(self, placed: Placed) -> None:
        self.entry_id, self.at, self.hash = placed.id, placed.at, placed.hash
        match placed.entry:
            case Gap() as gap:
                self.z_number = gap.last
            case CashMove() as move:
                self.cash = self.cash.plus(move)


def read_start(connection: sqlite3.Connection, book_id: int) -> BookStart:
    row = connection.execute(_SQL["read"], (book_id,)).fetchone()
    if row is None:
        return BookStart()
    place, (running, closed), period, cash, counted = row[:5], row[5:7], row[7:10], row[10:12], row[12:]
    values = (*place, read_tally(running), read_tally(closed), *period, CashTotal(*cash), *counted)
    return BookStart(*values)


def write_start(connection: sqlite3.Connection, book_id: int, start: BookStart) -> None:
    sums = {"running": tally_bytes(start.running), "closed": tally_bytes(start.closed)}
    connection.execute(_SQL["write"], asdict(start) | asdict(start.cash) | sums | {"book": book_id})


def lineage_of(connection: sqlite3.Connection, book_id: int) -> Lineage:
    """The lineage that headquarters knows the book by. The Z numbers of a machine's next taxpayer begin with 1 again
    (decision 33), and headquarters has one series of a machine and a ledger: so its book has a ledger id of its own,
    which its sandbox shares."""
    lineage = read_lineage(connection)
    first, own = connection.execute(_SQL["live_of_machine"], (book_id,)).fetchone()
    if first == own or not lineage.ledger_id:
        return lineage
    return msgspec.structs.replace(lineage, ledger_id=str(uuid.uuid5(uuid.UUID(lineage.ledger_id), str(own))))


def summary(connection: sqlite3.Connection, book: Book) -> BookSummary:
    """How it stands at this moment, for the box's presence."""
    lineage = lineage_of(connection, book.id)
    *heads, tc, fvc, frc, certified_at, question = connection.execute(_SQL["standing"], (book.id,)).fetchone()
    values = (lineage.ledger_id, lineage.epoch, *heads, counters_of(tc, fvc, frc), certified_at, question > 0)
    return BookSummary(*values)
