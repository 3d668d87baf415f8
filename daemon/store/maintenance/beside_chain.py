"""Verifies the tables outside a book's chain against it: the machine's state, open attempts, Idempotency-Keys, deferred
sales, take-overs, events and the outbox."""

import sqlite3
from collections import Counter
from collections.abc import Callable

import msgspec

from common.language import Counted, Text
from daemon.core.audit import key_hash_of
from daemon.core.events import CERTIFIED, CLOSURE
from daemon.core.invoice.number import number_key
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import SaleDeferred, TimeRepair, read_entry, repaired
from daemon.core.machine.state import short_nim
from daemon.store.maintenance.recompute_parts import is_number_year
from daemon.store.sqlite.file import load
from daemon.store.tables.book import deferred
from daemon.store.tables.book.codec import NUMBER, RECORD_COLUMNS, record_of, unpack
from daemon.store.tables.book.entries import losses
from daemon.store.tables.events import UPSTREAM

_SQL = load(__name__, columns=RECORD_COLUMNS)

Note = Callable[[str], None]


def check_beside_chain(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    has_lost = bool(losses(connection, book))
    _check_unended(connection, book, note)
    _check_keys(connection, book, note, has_lost=has_lost)
    if book.mode == "live":  # of a sandbox they are let go of with what they are about
        _check_deferred(connection, book, note, has_lost=has_lost)
        _check_take_overs(connection, book, note)
        _check_outbox(connection, book, note)
        _check_events(connection, book, note)


def _check_unended(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    """Of a begun or disputed attempt, which no chain holds yet, row and invoice say the same."""
    disputed = False
    for row in connection.execute(_SQL["unended"], (book.id,)).fetchall():
        *columns, number_year = row
        record, number = record_of(tuple(columns)), row[NUMBER]
        disputed = disputed or record.state == "disputed"
        invoice = record.invoice
        if (invoice.number, invoice.type, invoice.total_ttc) != (record.number, record.type, record.total_ttc):
            note(
                Text("the attempt {number!r}, which has not ended, is for another invoice than it holds", number=number)
            )
        if not is_number_year(record, number_year):
            note(
                Text(
                    "the attempt {number!r}, which has not ended, holds its number in another year than it was given for",
                    number=number,
                )
            )
    (attention,) = connection.execute(_SQL["attention"], (book.id,)).fetchone()
    if disputed and not attention:
        note(Text("an attempt is disputed, and its book is not in attention"))


def _check_keys(connection: sqlite3.Connection, book: Book, note: Note, *, has_lost: bool) -> None:
    (count,) = connection.execute(_SQL["dangling_keys"], (book.id, has_lost)).fetchone()
    if count:
        note(
            Counted(
                "{count} Idempotency-Key stands for nothing that is in the book",
                "{count} Idempotency-Keys stand for nothing that is in the book",
                count,
            )
        )


def _check_deferred(connection: sqlite3.Connection, book: Book, note: Note, *, has_lost: bool) -> None:
    """Deferred sales are those of the chain, and each state agrees with its attempt and the chain."""
    chained = {
        (sale.number, sale.kind, sale.total_ttc, sale.sold_at, sale.outage): sale
        for sale in _sold_later(connection, book)
    }
    gone, differing = set(chained), set[str]()
    for *columns, is_open, spelling, key, key_hash, fingerprint, payload in connection.execute(
        _SQL["sales"], (book.id,)
    ):
        number, sale = columns[0], chained.get(tuple(columns))
        gone.discard(tuple(columns))
        if sale is None or (
            is_open
            and not (
                payload is not None
                and (number_key(number), key_hash_of(key)) == (spelling, key_hash)
                and sale.digest in {"", deferred.digest_of(key, fingerprint, unpack(payload))}
            )
        ):
            differing.add(number)
    differing.update(chained[row].number for row in gone)
    for number in sorted(differing):
        note(Text("the sale {number!r}, to be certified later, is not the one of the chain", number=number))
    for number, state in connection.execute(_SQL["states_of_sales"], (book.id, has_lost)):
        note(
            Text(
                "the state of the sale {number!r}, to be certified later ({state}), is not that of the chain",
                number=number,
                state=state,
            )
        )


def _sold_later(connection: sqlite3.Connection, book: Book) -> list[SaleDeferred]:
    """As the chain has them, each with the time that later repairs make of its own."""
    sales: list[SaleDeferred] = []
    for at, body in connection.execute(_SQL["sold_later"], (book.id,)):
        entry = read_entry(body)
        if isinstance(entry, SaleDeferred):
            sales.append(entry)
        elif isinstance(entry, TimeRepair):
            sales = [
                msgspec.structs.replace(sale, sold_at=repaired(sale.sold_at, entry, at)) if sale.sold_at > at else sale
                for sale in sales
            ]
    return sales


def _check_take_overs(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    """Those of the machine, or by it, and their ends are the same in its chain. NIMs without activation; no reason for
    an end, which the table lacks; the time is 0 in the spare's book, since the table has those of the machine's chain."""
    ledger, chain = (
        Counter(
            (step, short_nim(nim), short_nim(spare), *rest)
            for step, nim, spare, *rest in connection.execute(_SQL[name], (book.id,))
        )
        for name in ("take_overs", "chained_take_overs")
    )
    for nim, spare in sorted({(nim, spare) for _, nim, spare, *_ in (ledger - chain) + (chain - ledger)}):
        note(Text("the take-overs of {nim} by {spare} are not those of the chain", nim=nim, spare=spare))
    (alone,) = connection.execute(_SQL["not_paired"], (book.id,)).fetchone()
    if alone:
        note(Text("a spare has stood for the machine, and is not paired with it any more"))


def _check_outbox(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    """Every closure has its row for ever, whether it was sent or not."""
    sent = {ref for (ref,) in connection.execute(_SQL["outbox"], (UPSTREAM, book.id, CLOSURE))}
    for (z_number,) in connection.execute(_SQL["closures"], (book.id,)):
        if z_number not in sent:
            note(Text("Z {z_number} is missing among what goes to headquarters", z_number=z_number))


def _check_events(connection: sqlite3.Connection, book: Book, note: Note) -> None:
    """Events are let go of from the oldest on: from the oldest certification that has one on, each has one."""
    rows = connection.execute(_SQL["unannounced"], (book.id, CERTIFIED)).fetchall()
    for seq, number in rows:
        note(Text("record {seq} (invoice {number!r}) has no event any more", seq=seq, number=number))
