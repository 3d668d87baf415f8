"""What an operator decides when the ledger and the machine do not agree, each decision written down with its reason.

certified  the machine did certify the attempt: its evidence becomes the outcome
abandoned  it did not: number and key are free again
adopted    the ledger is behind the machine (a backup was put back): the machine's last invoice is entered as a certification
           known by its number, code and total alone, so that the number is never given out again
"""

from __future__ import annotations

import sqlite3
from typing import Literal, cast, get_args

import msgspec

from daemon.core.invoice.invoice import Customer, Invoice, InvoiceType
from daemon.core.ledger.attempt import Outcome, Record
from daemon.core.ledger.book import Book
from daemon.core.ledger.verdict import Evidence, went_down
from daemon.core.machine.nim import present_nim
from daemon.core.machine.state import Certified, LastInvoice, MachineState
from daemon.store.sqlite.queries import load, read_as
from daemon.store.tables.book import attempts, books
from daemon.store.tables.book.codec import invoice_bytes, pack
from daemon.store.tables.book.epochs import begin_epoch
from daemon.store.tables.meta import read_meta, write_meta

_SQL = load(__name__)

Decision = Literal["certified", "abandoned", "adopted"]


class Settlement(msgspec.Struct, frozen=True):
    """`attention` is what the machine's attention said; `attempt_id` is 0 where no attempt was concerned."""

    id: int
    at: int
    decision: Decision
    attempt_id: int
    attention: str
    reason: str


def settle_certified(connection: sqlite3.Connection, book: Book, attempt_id: int, outcome: Outcome) -> Record:
    record = attempts.certify(connection, book, attempt_id, outcome)
    _write_down(connection, book, "certified", attempt_id=attempt_id, reason=outcome.reason, at=outcome.at)
    return record


def settle_abandoned(connection: sqlite3.Connection, book: Book, attempt_id: int, reason: str, at: int) -> Record:
    record = attempts.end(connection, book, attempt_id, "abandoned", reason=reason, at=at)
    _write_down(connection, book, "abandoned", attempt_id=attempt_id, reason=reason, at=at)
    return record


def adopt(
    connection: sqlite3.Connection,
    book: Book,
    state: MachineState,
    *,
    unexplained: int,
    reason: str,
    at: int,
) -> Record | None:
    """Takes over the machine's counters and its last invoice; None when it has none, or its number is in the ledger already."""
    record = None
    last = state.last
    known = books.book_state(connection, book).known
    if known is not None and went_down(known, state.counters):
        nim = present_nim(state.nim, "", book.nim)
        book = begin_epoch(connection, book, state.counters, ifu=state.ifu, nim=nim, at=at)
        unexplained = 0  # the new epoch's are counted
    if last is not None and attempts.find_number(connection, book, last.number, include_begun=True) is None:
        record = _enter(connection, book, last, state=state, reason=reason, at=at)
    books.reconcile(connection, book, state, unexplained, at)
    _write_down(connection, book, "adopted", attempt_id=record.id if record else None, reason=reason, at=at)
    return record


def keep_evidence(connection: sqlite3.Connection, book: Book, evidence: Evidence) -> None:
    write_meta(connection, _evidence_name(book), msgspec.json.encode(evidence).decode())


def read_evidence(connection: sqlite3.Connection, book: Book) -> Evidence | None:
    text = read_meta(connection, _evidence_name(book))
    return msgspec.json.decode(text, type=Evidence) if text else None


def settlements(connection: sqlite3.Connection, book: Book) -> list[Settlement]:
    return list(read_as(Settlement, connection.execute(_SQL["list"], (book.id,))))


def _evidence_name(book: Book) -> str:
    return f"evidence {book.id}"


def _enter(
    connection: sqlite3.Connection,
    book: Book,
    last: LastInvoice,
    *,
    state: MachineState,
    reason: str,
    at: int,
) -> Record:
    counters = state.counters
    invoice = Invoice(
        number=last.number,
        type=cast("InvoiceType", last.type)
        if last.type in get_args(InvoiceType)
        else "FV",  # the row has the type as told
        price_mode="TTC",
        operator_id="",
        operator_name="",
        isf="",
        customer=Customer(),
        items=(),
        payments=(),
        taxes=(),
        total_ttc=last.total,
    )
    base = (counters.tc, counters.fvc, counters.frc)
    values = (book.id, last.number, last.type, last.total, at, *base, pack(invoice_bytes(invoice)))
    (attempt_id,) = connection.execute(_SQL["adopt"], values).fetchone()
    word = Certified(last.code, last.time, state.ifu, counters)
    outcome = Outcome(word, invoice, last.total, at, reason=reason)
    return attempts.certify(connection, book, attempt_id, outcome)


def _write_down(
    connection: sqlite3.Connection,
    book: Book,
    decision: Decision,
    *,
    attempt_id: int | None,
    reason: str,
    at: int,
) -> None:
    """The decision, and the end of the attention unless another attempt is still disputed."""
    connection.execute(_SQL["insert"], (book.id, at, decision, attempt_id, book.id, reason))
    other = connection.execute(_SQL["still_disputed"], (book.id,)).fetchone()
    books.attend(connection, book, other[0] if other else "", at)
