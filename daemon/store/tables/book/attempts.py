"""Attempts, from the intent to the end; all functions run inside a transaction of the writer.

An attempt that ends gets the next seq of its book, a time not before any other in the book (decision 21), and its hash
in the chain. A disputed attempt has not ended: it reserves its number until an operator settles it."""

import sqlite3
import sys
from typing import Literal

import msgspec
from msgspec.structs import asdict

from common.language import Text
from common.language.reasons import INVOICE_IN_PROGRESS, to_stored
from daemon.core.audit import Call
from daemon.core.errors import KeyReused, MachineBusy, NotFound
from daemon.core.invoice.invoice import Invoice
from daemon.core.invoice.number import TakenFrom, number_key
from daemon.core.ledger import chain
from daemon.core.ledger.attempt import (
    OPEN,
    REASONS_NOT_CERTIFIED,
    Attempt,
    DuplicateInvoice,
    OpenState,
    Outcome,
    Record,
    marked,
)
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import NumberWaits
from daemon.core.ledger.tally import contribution
from daemon.core.ledger.verdict import LastComparison, compare_last, went_down
from daemon.core.machine.state import Certified, FiscalCounters, LastInvoice, short_nim
from daemon.core.report.journal import Page
from daemon.store.sqlite.file import load
from daemon.store.tables.book import deferred, epochs, take_overs
from daemon.store.tables.book.books import (
    BookHead,
    advance,
    advance_certified,
    book_state,
    books_of_taxpayer,
    former_books,
    read_head,
)
from daemon.store.tables.book.codec import PAYLOAD, RECORD_COLUMNS, invoice_bytes, pack, record_of, tally_bytes, unpack
from daemon.store.tables.book.epochs import Activation, begin_epoch, present_epoch
from daemon.store.tables.book.originals import check_agreed

_SQL = load(__name__, columns=RECORD_COLUMNS)
_NOT_UNDER_WAY = "there is no attempt {} under way"

FOR_EVER = TakenFrom()
FailedState = Literal["refused", "abandoned"]


def begin(connection: sqlite3.Connection, book: Book, attempt: Attempt) -> int:
    """Stores the intent and its key; returns the attempt's id. DuplicateInvoice, MachineBusy, NumberWaits or KeyReused
    if the number or key is taken here or in a book that shares numbers; NotWaiting if its deferred sale was withdrawn;
    MachineOffline if a spare certifies instead."""
    invoice, base = attempt.invoice, attempt.base
    key, payload = number_key(invoice.number), pack(invoice_bytes(invoice))
    values = asdict(invoice) | asdict(attempt) | asdict(base) | {"book": book.id, "number_key": key, "payload": payload}
    try:
        inserted = connection.execute(_SQL["insert"], values)
    except sqlite3.IntegrityError:
        taken = TakenFrom(attempt.invoice.number_year or 0)
        holder = find_number(connection, book, invoice.number, taken, include_begun=True)
        if holder is None:
            raise
        raise _taken(holder) from None
    attempt_id = inserted.lastrowid
    if attempt_id is None or not inserted.rowcount:
        raise _why_not(connection, book, attempt)
    if attempt.deferred_id:
        deferred.begin(connection, book, attempt.deferred_id, attempt_id)
    if attempt.key_hash:
        insert_key(connection, book, attempt.key_hash, attempt.fingerprint, at=attempt.begun_at, attempt_id=attempt_id)
    return attempt_id


def _why_not(
    connection: sqlite3.Connection, book: Book, attempt: Attempt
) -> DuplicateInvoice | MachineBusy | NumberWaits:
    """The reason why the intent was not inserted; raises MachineOffline if a spare certifies instead."""
    take_overs.check_in_use(connection, book)
    number = attempt.invoice.number
    holder = find_elsewhere(connection, book, number, TakenFrom(attempt.invoice.number_year or 0))
    return NumberWaits(number) if holder is None else _taken(holder)


def _taken(holder: Record) -> DuplicateInvoice | MachineBusy:
    if holder.state == "begun":
        return MachineBusy(INVOICE_IN_PROGRESS(number=holder.number))
    return DuplicateInvoice(holder)


def insert_key(
    connection: sqlite3.Connection,
    book: Book,
    key_hash: bytes,
    fingerprint: bytes,
    *,
    at: int,
    attempt_id: int | None = None,
    z_number: int | None = None,
    answer: bytes | None = None,
) -> None:
    """Stores what the key stands for; KeyReused if it stands for another request that has not failed."""
    values = (book.id, key_hash, fingerprint, at, attempt_id, z_number, answer)
    if connection.execute(_SQL["insert_key"], values).rowcount != 1:
        raise KeyReused


def insert_answer(
    connection: sqlite3.Connection,
    book: Book,
    call: Call,
    *,
    at: int,
    answer: bytes | None = None,
    z_number: int | None = None,
) -> None:
    """Stores the answer to a call under its key, if it has one; KeyReused as `insert_key`."""
    if call.key:
        insert_key(connection, book, call.key_hash, call.fingerprint, at=at, z_number=z_number, answer=answer)


def amend(connection: sqlite3.Connection, book: Book, attempt_id: int, invoice: Invoice) -> None:
    """Replaces the invoice of a begun attempt by the agreed one; CreditExceedsOriginal if too high."""
    if invoice.is_credit:
        check_agreed(connection, attempt_id, invoice)
    values = (invoice.total_ttc, pack(invoice_bytes(invoice)), attempt_id, book.id)
    if connection.execute(_SQL["amend"], values).rowcount != 1:
        raise NotFound(_NOT_UNDER_WAY.format(attempt_id))


def certify(
    connection: sqlite3.Connection, book: Book, attempt_id: int, outcome: Outcome, *, is_late: bool = False
) -> Record:
    """Ends the attempt as certified. Idempotent: returns an existing record. `is_late`: the machine has done other work
    since, so these counters tell nothing of its present activation."""
    record, stored = _read(connection, book, attempt_id)
    if record.state == "certified" and record.code == outcome.certified.code:
        return record
    _must_be_open(record)
    word = outcome.certified
    present = present_epoch(connection, book)
    epoch = present if is_late else _take_epoch(connection, book, outcome, present)
    ended = msgspec.structs.replace(
        record,
        nim=epoch.nim,
        state="certified",
        invoice=marked(outcome.invoice, word.code, book.mode),
        total_ttc=outcome.total_ttc,
        ended_at=outcome.at,
        code=word.code,
        machine_time=word.time,
        ifu=word.ifu,
        counters=word.counters,
        line_ms=outcome.line_ms,
        duration_ms=outcome.duration_ms,
        reason=outcome.reason,
        fc=_counter(connection, book, record.type, word, epoch.number),
    )
    sealed, head = _seal(connection, book, ended, stored, epoch.number)
    advance_certified(
        connection,
        book.id,
        head,
        counters=word.counters,
        seen=LastInvoice(record.number, word.code, word.time, record.type, ended.total_ttc),
        unexplained=outcome.unexplained,
    )
    return sealed


def _counter(connection: sqlite3.Connection, book: Book, type_: str, word: Certified, epoch: int) -> int:
    """FC in the reply to 38h; if C1h found the outcome, derived from the ledger."""
    if word.fc is not None:
        return word.fc
    seq = read_head(connection, book.id).seq + 1
    return epochs.derived_counter(connection, book.id, seq=seq, epoch=epoch, type_=type_, now=word.counters)


def _take_epoch(connection: sqlite3.Connection, book: Book, outcome: Outcome, present: Activation) -> Activation:
    """The epoch of the outcome. If the outcome is the first sign of another activation, or of counters that restarted,
    its epoch begins here."""
    word = outcome.certified
    is_renamed = word.nim not in ("", present.nim)
    if not is_renamed and not (present.counters and went_down(present.counters, word.counters)):
        return present
    begin_epoch(
        connection,
        book,
        word.counters,
        ifu=word.ifu,
        nim=word.nim or present.nim,
        at=outcome.at,
        began_again=is_renamed and present.counters is not None and word.counters.tc <= present.counters.tc,
        ours=int((word.counters.frc if outcome.invoice.is_credit else word.counters.fvc) > 0),
    )
    return present_epoch(connection, book)


def end(
    connection: sqlite3.Connection,
    book: Book,
    attempt_id: int,
    state: FailedState,
    reason: str,
    *,
    at: int,
) -> Record:
    """Ends the attempt as not certified: its number and key are free again."""
    record, stored = _read(connection, book, attempt_id)
    if record.state == state:
        return record
    _must_be_open(record)
    ended = msgspec.structs.replace(record, state=state, reason=to_stored(reason), ended_at=at)
    sealed, head = _seal(connection, book, ended, stored)
    advance(connection, book.id, head)
    return sealed


def dispute(connection: sqlite3.Connection, book: Book, attempt_id: int, found: str) -> None:
    if connection.execute(_SQL["dispute"], (to_stored(found), attempt_id, book.id)).rowcount != 1:
        raise NotFound(_NOT_UNDER_WAY.format(attempt_id))


def find_record(connection: sqlite3.Connection, book: Book, attempt_id: int) -> Record:
    """The attempt of this book, or of one that shares its numbers; NotFound."""
    return _read(connection, book, attempt_id)[0]


def _read(connection: sqlite3.Connection, book: Book, attempt_id: int) -> tuple[Record, bytes]:
    """The record and its invoice's stored bytes."""
    row = connection.execute(_SQL["by_id"], (attempt_id, book.id)).fetchone()
    if row is None:
        raise NotFound(Text("there is no attempt {attempt_id}", attempt_id=attempt_id))
    content = unpack(row[PAYLOAD])
    return record_of(row, content), content


def find_number(
    connection: sqlite3.Connection, book: Book, number: str, taken: TakenFrom = FOR_EVER, *, include_begun: bool = False
) -> Record | None:
    """The newest attempt that reserves that number, or an equal one (decision 37)."""
    row = connection.execute(_SQL["holder"], (book.id, number, number_key(number), *taken)).fetchone()
    if row is None or (row[3] == "begun" and not include_begun):
        return None
    return record_of(row)


def find_elsewhere(connection: sqlite3.Connection, book: Book, number: str, taken: TakenFrom) -> Record | None:
    """The attempt that reserves that number in another book that shares it; a begun one may be in doubt."""
    others = take_overs.sharing(connection, book)
    found = (find_number(connection, other, number, taken, include_begun=True) for other in others)
    return next((holder for holder in found if holder is not None), None)


def book_of(connection: sqlite3.Connection, attempt_id: int) -> int:
    """The id of the book of an attempt."""
    (book_id,) = connection.execute(_SQL["book_of"], (attempt_id,)).fetchone()
    return int(book_id)


def sales_of_number(connection: sqlite3.Connection, book: Book, number: str) -> list[Record]:
    """The certified sales of that number, at any machine of the book's taxpayer and in any year; without one, those of
    the taxpayers that the machine had before."""
    for books in (books_of_taxpayer(connection, book), former_books(connection, book)):
        found = [sale for each in books for sale in certified_numbers(connection, each, number)]
        if sales := [sale for sale in found if not sale.invoice.is_credit]:
            return sales
    return []


def certified_numbers(connection: sqlite3.Connection, book: Book, number: str) -> list[Record]:
    """The certified invoices of that number or an equal one, newest first; several if unique by year."""
    rows = connection.execute(_SQL["spelled"], (book.id, number)).fetchall()
    rows = rows or connection.execute(_SQL["equal"], (book.id, number_key(number))).fetchall()
    return [record_of(row) for row in rows]


def failed_attempts(connection: sqlite3.Connection, book: Book, page: Page) -> list[Record]:
    """Those of the page's number that ended refused or abandoned, newest first."""
    before = page.before_seq or sys.maxsize
    values = (book.id, page.number, before, page.start, page.end, *search_parameters(page), page.limit)
    return [record_of(row) for row in connection.execute(_SQL["failed"], values)]


def search_parameters(page: Page) -> tuple[object, ...]:
    """Parameters for state, type and amount, each twice: the query tests first whether it is set."""
    state = page.state or ""
    return (state, state, page.type, page.type, page.amount, page.amount)


def was_at_the_machine(connection: sqlite3.Connection, book: Book, invoice: Invoice) -> bool:
    """Whether an earlier attempt with an equal number, that type and total was taken for not certified although its 38h
    may have been sent. A refusal, or a line lost before 38h, is certain and does not count."""
    values = (book.id, number_key(invoice.number), invoice.type, invoice.total_ttc, *REASONS_NOT_CERTIFIED)
    return bool(connection.execute(_SQL["was_at_the_machine"], values).fetchone()[0])


def has_code(connection: sqlite3.Connection, book: Book, code: str) -> bool:
    """Whether a certification of the book has that code."""
    return bool(code and connection.execute(_SQL["has_code"], (book.id, code)).fetchone()[0])


def is_of_earlier_activation(connection: sqlite3.Connection, book: Book, code: str) -> bool:
    """Whether this machine gave that code in an earlier activation, also for another taxpayer."""
    short = short_nim(book.nim)
    values = (code, book.mode, short, f"{short}-*", book.id)
    return bool(code and connection.execute(_SQL["is_of_earlier_activation"], values).fetchone()[0])


def compare_with_ledger(connection: sqlite3.Connection, book: Book, last: LastInvoice | None) -> LastComparison:
    """The standing of the machine's last invoice against the ledger."""
    seen = book_state(connection, book).seen
    return compare_last(last, seen, in_ledger=last is not None and has_code(connection, book, last.code))


def unfinished(connection: sqlite3.Connection, book: Book, state: OpenState = "begun") -> list[Record]:
    return [record_of(row) for row in connection.execute(_SQL["unfinished"], (book.id, state))]


def _must_be_open(record: Record) -> None:
    if record.state not in OPEN:
        raise NotFound(Text("attempt {number} has already ended {state}", number=record.id, state=record.state))


def _seal(
    connection: sqlite3.Connection, book: Book, record: Record, stored: bytes, epoch: int | None = None
) -> tuple[Record, BookHead]:
    """Gives an ended attempt its place in the chain; the caller advances the book to the returned head. `stored`: the
    bytes of its invoice in the row, compressed again only if changed. `epoch`: that of the outcome, if an activation
    came after the intent."""
    before = read_head(connection, book.id)
    content = invoice_bytes(record.invoice)
    placed = msgspec.structs.replace(
        record, seq=before.seq + 1, ended_at=max(record.ended_at, record.begun_at, before.at)
    )
    sealed = msgspec.structs.replace(placed, hash=chain.record_hash(before.hash, placed, content))
    counters = dict.fromkeys(FiscalCounters.__struct_fields__) if sealed.counters is None else asdict(sealed.counters)
    payload = None if content == stored else pack(content)
    beside = {"tally": tally_bytes(contribution(sealed)), "payload": payload, "epoch": epoch}
    connection.execute(_SQL["seal"], asdict(sealed) | counters | beside)
    if sealed.invoice.deferred:
        deferred.follow(connection, sealed)
    return sealed, BookHead(sealed.seq, sealed.ended_at, sealed.hash)
