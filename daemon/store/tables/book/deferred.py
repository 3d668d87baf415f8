"""Deferred sales. Functions on a connection inside a transaction of the writer, or on a reader.

A sale ends with its attempt (`follow`, in the same transaction), by a refusal, or by withdrawal."""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from common.language.reasons import from_stored, to_stored
from daemon.core.audit import Actor, key_hash_of
from daemon.core.invoice.number import number_key
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import DeferredBacklog, DeferredSale, DeferredState, NotWaiting
from daemon.core.ledger.entries import SaleDecided
from daemon.core.machine.state import LastInvoice
from daemon.store.sqlite.file import load
from daemon.store.tables import audit
from daemon.store.tables.book import entries
from daemon.store.tables.book.codec import invoice_bytes, pack, read_invoice, unpack

COLUMNS = "id, key, fingerprint, request_id, number, type, total_ttc, sold_at, address, state, coalesce(attempt_id, 0), ended_at, why, outage, payload"
_SQL = load(__name__, columns=COLUMNS)


def insert(connection: sqlite3.Connection, book: Book, sale: DeferredSale) -> int:
    """Number and key are free: the caller has looked in the same transaction (`check_free`)."""
    payload = None if sale.invoice is None else pack(invoice_bytes(sale.invoice))
    keys = {"key_hash": key_hash_of(sale.key), "number_key": number_key(sale.number)}
    values = asdict(sale) | keys | {"book": book.id, "payload": payload}
    (sale_id,) = connection.execute(_SQL["insert"], values).fetchone()
    return int(sale_id)


def digest_of(key: str, fingerprint: bytes, invoice: bytes) -> str:
    """What the chain holds of it, beside number and total."""
    return hashlib.sha256(key_hash_of(key) + fingerprint + invoice).hexdigest()


def begin(connection: sqlite3.Connection, book: Book, sale_id: int, attempt_id: int) -> None:
    """NotWaiting where it was taken back meanwhile."""
    if connection.execute(_SQL["begin"], (attempt_id, sale_id, book.id)).rowcount != 1:
        raise NotWaiting


def find_of_machine(connection: sqlite3.Connection, book: Book, last: LastInvoice) -> DeferredSale | None:
    """The sale that the machine's last invoice is; None where a lost ledger has no such sale."""
    values = (book.id, number_key(last.number), last.type, last.total)
    return next(map(_sale, connection.execute(_SQL["find_of_machine"], values)), None)


def adopt(connection: sqlite3.Connection, sale: DeferredSale, record: Record) -> None:
    """Ends a sale that the machine had certified for a lost ledger."""
    connection.execute(_SQL["adopt"], (record.id, record.ended_at, sale.id))


def follow(connection: sqlite3.Connection, record: Record) -> None:
    """Its attempt has ended."""
    connection.execute(_SQL["follow"], (record.state == "certified", record.ended_at, record.id))


def end(connection: sqlite3.Connection, book: Book, sale_id: int, state: DeferredState, *, why: str, at: int) -> None:
    """NotWaiting where it has ended, or an attempt is under way."""
    if connection.execute(_SQL["end"], (state, at, to_stored(why), sale_id, book.id)).rowcount != 1:
        raise NotWaiting


def withdraw(
    connection: sqlite3.Connection, book: Book, sale: DeferredSale, reason: str, *, at: int, by: Actor
) -> None:
    """NotWaiting where it has ended, or an attempt is under way."""
    end(connection, book, sale.id, "withdrawn", why=reason, at=at)
    _note(connection, book, sale, SaleDecided(sale.number, "withdrawn", to_stored(reason)), at=at, by=by)


def release(connection: sqlite3.Connection, book: Book, sale: DeferredSale, reason: str, *, at: int, by: Actor) -> None:
    """A doubtful one was not certified: it waits again."""
    if connection.execute(_SQL["release"], (sale.id, book.id)).rowcount != 1:
        raise NotWaiting
    _note(connection, book, sale, SaleDecided(sale.number, "released", to_stored(reason)), at=at, by=by)


def _note(
    connection: sqlite3.Connection, book: Book, sale: DeferredSale, decided: SaleDecided, *, at: int, by: Actor
) -> None:
    placed = entries.append(connection, book, decided, at)
    detail = {"number": sale.number, "total_ttc": str(sale.total_ttc), "reason": str(from_stored(decided.reason))}
    action = "sale.withdrawn" if decided.decision == "withdrawn" else "sale.released"
    audit.add_of_book(connection, book, action, at=placed.at, by=by, detail=detail)


def doubt(connection: sqlite3.Connection, book: Book, why: str) -> None:
    """Whatever waits may have been certified: the ledger is behind its machine."""
    connection.execute(_SQL["doubt"], (to_stored(why), book.id))


def next_waiting(connection: sqlite3.Connection, book: Book, without: Collection[int]) -> DeferredSale | None:
    return next(map(_sale, connection.execute(_SQL["next"], (book.id, json.dumps(list(without))))), None)


def by_key(connection: sqlite3.Connection, book: Book, key_hash: bytes) -> DeferredSale | None:
    return next(map(_sale, connection.execute(_SQL["by_key"], (book.id, key_hash))), None)


def by_id(connection: sqlite3.Connection, book: Book, sale_id: int) -> DeferredSale | None:
    return next(map(_sale, connection.execute(_SQL["by_id"], (sale_id, book.id))), None)


def by_address(connection: sqlite3.Connection, address: str) -> tuple[int, DeferredSale] | None:
    """With the id of its book."""
    row = connection.execute(_SQL["by_address"], (address,)).fetchone()
    return None if row is None else (row[0], _sale(row[1:]))


def open_sales(connection: sqlite3.Connection, book: Book, after: int, limit: int) -> Sequence[DeferredSale]:
    return [_sale(row) for row in connection.execute(_SQL["open"], (book.id, after, limit))]


def waiting_sales(connection: sqlite3.Connection, book: Book) -> Sequence[DeferredSale]:
    """Of the book itself."""
    return [_sale(row) for row in connection.execute(_SQL["waiting"], (book.id,))]


def backlog(connection: sqlite3.Connection, book: Book) -> DeferredBacklog:
    return DeferredBacklog(*connection.execute(_SQL["backlog"], (book.id,)).fetchone())


def numbers_in_use(connection: sqlite3.Connection, book: Book, prefix: str, digits: int) -> tuple[int, int]:
    """As `uniqueness.count_numbers`, of those that have no attempt under way."""
    count, highest = connection.execute(_SQL["highest_number"], (book.id, prefix, prefix + "[0-9]" * digits)).fetchone()
    return count, int(highest[len(prefix) :] or 0)


def is_number_in_use(connection: sqlite3.Connection, book: Book, number: str) -> bool:
    return bool(connection.execute(_SQL["is_number_held"], (book.id, number_key(number))).fetchone()[0])


def _sale(row: tuple[Any, ...]) -> DeferredSale:
    payload = row[-1]
    sale = DeferredSale(*row[:-1])
    if payload is None:
        return sale
    invoice = read_invoice(unpack(payload))
    if invoice.deferred is not None:  # the row has the time that a repair made of it (`entries.repair_time`)
        deferred = msgspec.structs.replace(invoice.deferred, sold_at=sale.sold_at)
        invoice = msgspec.structs.replace(invoice, deferred=deferred)
    return msgspec.structs.replace(sale, invoice=invoice)
