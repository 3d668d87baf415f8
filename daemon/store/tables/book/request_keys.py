"""What the Idempotency-Keys of requests stand for. Functions on a connection."""

from __future__ import annotations

import sqlite3

from daemon.core.ledger.book import Book
from daemon.core.ledger.closure import KeyUse
from daemon.store.sqlite.queries import load
from daemon.store.tables.book import attempts, closures

_SQL = load(__name__)


def find_key(connection: sqlite3.Connection, book: Book, key_hash: bytes, *, failed: bool = False) -> KeyUse | None:
    """None, unless `failed`, also when what the key stood for failed without changing anything (decision 6)."""
    row = connection.execute(_SQL["find_key"], (book.id, key_hash)).fetchone()
    if row is None:
        return None
    fingerprint, attempt_id, z_number, answer = row
    if attempt_id is not None:
        record = attempts.find_record(connection, book, attempt_id)
        return None if record.state in attempts.FAILED and not failed else KeyUse(fingerprint, record=record)
    if z_number is not None:
        return KeyUse(fingerprint, closure=closures.find_closure(connection, book, z_number))
    return KeyUse(fingerprint, answer=answer or b"")
