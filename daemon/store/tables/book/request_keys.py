"""What the Idempotency-Keys of requests stand for. Functions on a connection."""

from __future__ import annotations

import sqlite3

from daemon.core.ledger.book import Book, KeyUse
from daemon.store.sqlite.queries import load
from daemon.store.tables.book import attempts, closures, take_overs

_SQL = load(__name__)


def find_key(connection: sqlite3.Connection, book: Book, key_hash: bytes, *, failed: bool = False) -> KeyUse | None:
    """In this book, or in one that shares its keys. None, unless `failed`, also when what the key stood for failed without changing anything
    (decision 6)."""
    found = [_find(connection, each, key_hash) for each in (book, *take_overs.sharing(connection, book))]
    uses = [use for use in found if use is not None]
    valid = (use for use in uses if use.record is None or use.record.state not in attempts.FAILED)
    return next(valid, uses[0] if uses and failed else None)


def _find(connection: sqlite3.Connection, book: Book, key_hash: bytes) -> KeyUse | None:
    row = connection.execute(_SQL["find_key"], (book.id, key_hash)).fetchone()
    if row is None:
        return None
    fingerprint, attempt_id, z_number, answer = row
    if attempt_id is not None:
        return KeyUse(fingerprint, record=attempts.find_record(connection, book, attempt_id))
    if z_number is not None:
        return KeyUse(fingerprint, closure=closures.find_closure(connection, book, z_number))
    return KeyUse(fingerprint, answer=answer or b"")
