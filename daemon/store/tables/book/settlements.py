"""Decisions of an operator when ledger and machine disagree, each stored with its reason.

certified  the machine certified the attempt: the evidence becomes the outcome
abandoned  it did not: number and key are free again
adopted    the ledger is behind the machine (a restore): the machine's last invoice is entered as a certification, so that
           the number is never given again: a deferred sale with its lines, any other with number, code and total only
"""

import sqlite3
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import asdict

from daemon.core.audit import key_hash_of
from daemon.core.invoice.invoice import invoice_without_lines
from daemon.core.invoice.number import TakenFrom, number_key
from daemon.core.ledger.attempt import Outcome, Record
from daemon.core.ledger.book import Book, BookState
from daemon.core.ledger.decision import adoption
from daemon.core.ledger.verdict import Disputed, Evidence, Verdict, foreign_count, not_certified, went_down
from daemon.core.machine.state import (
    NO_COUNTERS,
    Certified,
    FiscalCounters,
    LastInvoice,
    MachineState,
    present_nim,
)
from daemon.store.sqlite.file import load, value_of
from daemon.store.tables.book import attempts, books, deferred
from daemon.store.tables.book.codec import invoice_bytes, pack
from daemon.store.tables.book.epochs import begin_epoch
from daemon.store.tables.meta import read_meta, write_meta

_SQL = load(__name__)

Decision = Literal["certified", "abandoned", "adopted"]


def settle_certified(
    connection: sqlite3.Connection, book: Book, attempt_id: int, outcome: Outcome, book_after: BookState | None = None
) -> Record:
    """`book_after`: the machine's state afterwards, if entered from paper and not its last invoice."""
    record = attempts.certify(connection, book, attempt_id, outcome, is_late=book_after is not None)
    if book_after is not None:
        books.overwrite_state(connection, book_after)
    write_down(connection, book, "certified", attempt_id=attempt_id, reason=outcome.reason, at=outcome.at)
    return record


def settle_abandoned(connection: sqlite3.Connection, book: Book, attempt_id: int, reason: str, at: int) -> Record:
    record = attempts.end(connection, book, attempt_id, "abandoned", reason=reason, at=at)
    write_down(connection, book, "abandoned", attempt_id=attempt_id, reason=reason, at=at)
    return record


class Adopted(msgspec.Struct, frozen=True):
    """`record`: the machine's last invoice, if entered; `found`: our attempts and deferred sales that the machine had
    certified."""

    record: Record | None
    found: tuple[Record, ...]


def adopt(
    connection: sqlite3.Connection,
    book: Book,
    state: MachineState,
    begun: Sequence[Record],
    *,
    unexplained: int,
    reason: str,
    at: int,
) -> Adopted:
    """Takes over the machine's counters, and its last invoice unless the ledger has it or its number. Settles the
    doubts in `begun` first."""
    last, before = state.last, books.book_state(connection, book)
    plan = adoption(
        before,
        state,
        attempts.compare_with_ledger(connection, book, last),
        begun,
        is_number_taken=last is not None and _is_taken(connection, book, last),
        in_ledger=last is not None and attempts.has_code(connection, book, last.code),
        unexplained=unexplained,
    )
    settled = [_settle(connection, book, *pair, reason=reason, at=at) for pair in plan.settled]
    found = tuple(record for record in settled if record is not None)
    unexplained, record = plan.unexplained, None
    own = books.book_state(connection, book).counters
    if own is not None and went_down(own, state.counters):
        nim = present_nim(state.nim, "", book.nim)
        book = begin_epoch(connection, book, state.counters, ifu=state.ifu, nim=nim, at=at)
    if books.book_state(connection, book).epoch != before.epoch:
        unexplained = 0  # the new epoch's are counted
    if last is not None and plan.enters:
        # Of an older ledger it is not known what came before it (`uniqueness.highest_missing`).
        base = state.counters if before.is_restored else before.counters or state.counters
        record = _enter(connection, book, last, base, state=state, reason=reason, at=at)
        if record.invoice.items:
            found = (*found, record)
            start = before.counters or NO_COUNTERS
            unexplained = min(unexplained, foreign_count(record.invoice, start, state.counters))
    books.reconcile(connection, book, state, unexplained, at)
    entered = record or next(iter(found), None)
    write_down(connection, book, "adopted", attempt_id=entered.id if entered else None, reason=reason, at=at)
    return Adopted(record, found)


def _is_taken(connection: sqlite3.Connection, book: Book, last: LastInvoice) -> bool:
    """Where numbers are taken for a year, that of another year is another invoice's."""
    year = int(last.time[:4]) if last.time[:4].isdecimal() else 0
    taken = TakenFrom(year, start=0)
    return attempts.find_number(connection, book, last.number, taken, include_begun=True) is not None


def _settle(
    connection: sqlite3.Connection, book: Book, attempt: Record, verdict: Verdict, *, reason: str, at: int
) -> Record | None:
    """The record of an attempt that was certified."""
    if isinstance(verdict, Certified):
        outcome = Outcome(verdict, attempt.invoice, attempt.total_ttc, at, reason=reason)
        return attempts.certify(connection, book, attempt.id, outcome)
    if isinstance(verdict, Disputed):
        attempts.dispute(connection, book, attempt.id, verdict.found)
    else:
        attempts.end(connection, book, attempt.id, "abandoned", reason=not_certified(verdict), at=at)
    return None


def decided(connection: sqlite3.Connection, book: Book) -> int:
    """Grows with each decision."""
    return int(connection.execute(_SQL["decided"], (book.id,)).fetchone()[0])


def has_code(connection: sqlite3.Connection, code: str) -> bool:
    return bool(connection.execute(_SQL["has_code"], (code,)).fetchone()[0])


def store_evidence(connection: sqlite3.Connection, book: Book, evidence: Evidence) -> None:
    write_meta(connection, _evidence_name(book), msgspec.json.encode(evidence).decode())


def read_evidence(connection: sqlite3.Connection, book: Book) -> Evidence | None:
    text = read_meta(connection, _evidence_name(book))
    return msgspec.json.decode(text, type=Evidence) if text else None


def _evidence_name(book: Book) -> str:
    return f"evidence {book.id}"


def _enter(
    connection: sqlite3.Connection,
    book: Book,
    last: LastInvoice,
    base: FiscalCounters,
    *,
    state: MachineState,
    reason: str,
    at: int,
) -> Record:
    sale = deferred.find_of_machine(connection, book, last)
    invoice = sale.invoice if sale else None
    if invoice is None:
        invoice = invoice_without_lines(last.number, last.type, last.total)  # the row has the type as reported
    beside = {"book": book.id, "at": at, "number_key": number_key(last.number), "payload": pack(invoice_bytes(invoice))}
    (attempt_id,) = connection.execute(_SQL["adopt"], asdict(last) | asdict(base) | beside).fetchone()
    word = Certified(last.code, last.time, state.ifu, state.counters)
    record = attempts.certify(connection, book, attempt_id, Outcome(word, invoice, last.total, at, reason=reason))
    if sale:
        deferred.adopt(connection, sale, record)
        key_hash = key_hash_of(sale.key)
        attempts.insert_key(connection, book, key_hash, sale.fingerprint, at=at, attempt_id=attempt_id)
    return record


def write_down(
    connection: sqlite3.Connection,
    book: Book,
    decision: Decision,
    *,
    attempt_id: int | None = None,
    reason: str,
    at: int,
) -> None:
    """The decision, and the end of the attention unless another attempt is still disputed."""
    connection.execute(_SQL["insert"], (book.id, at, decision, attempt_id, book.id, reason))
    other = value_of(connection.execute(_SQL["still_disputed"], (book.id,)), "")
    books.attend(connection, book, other, at)
