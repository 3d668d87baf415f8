"""The audit log's table: only ever added to, each entry in the transaction of what it tells."""

import sqlite3
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from daemon.core.audit import DEEDS, GENESIS, Actor, AuditEntry, chain, first_broken
from daemon.core.ledger.book import Book
from daemon.store.sqlite.file import load
from daemon.store.tables.meta import read_meta, write_meta

_SQL = load(__name__)

BATCH = 500
HEAD = "audit_head"
"""In `meta`: the newest entry and its hash."""


def add(
    connection: sqlite3.Connection,
    action: str,
    subject: str,
    *,
    at: int,
    by: Actor,
    detail: Mapping[str, str] | None = None,
) -> None:
    if action not in DEEDS:
        raise ValueError(f"{action} is no action of the audit log")
    fields = dict(detail or {})
    last = connection.execute(_SQL["last"]).fetchone()
    last_id, previous = last or (0, GENESIS)
    digest = chain(previous, at=at, actor=by, action=action, subject=subject, detail=fields)
    text = msgspec.json.encode(fields, order="sorted", enc_hook=str).decode()
    connection.execute(_SQL["insert"], (last_id + 1, at, by.name, by.address, action, subject, text, digest))
    write_meta(connection, HEAD, _head(last_id + 1, digest))


def add_of_book(
    connection: sqlite3.Connection,
    book: Book,
    action: str,
    *,
    at: int,
    by: Actor,
    detail: Mapping[str, str] | None = None,
) -> None:
    """What was done in a live book; what a developer does in a sandbox is not noted."""
    if book.mode == "live":
        add(connection, action, f"{book.nim} live", at=at, by=by, detail=detail)


def is_cut_off(connection: sqlite3.Connection) -> bool:
    """Whether another entry is the newest than the one that was written last."""
    head, last = read_meta(connection, HEAD), connection.execute(_SQL["last"]).fetchone()
    return bool(head) and (last is None or _head(*last) != head)


def _head(entry_id: int, digest: bytes) -> str:
    return f"{entry_id} {digest.hex()}"


def broken_entry(connection: sqlite3.Connection) -> AuditEntry | None:
    """The first that does not follow from the one before it; None when the chain is whole."""
    previous, last_id = GENESIS, 0
    for entries in _batches(connection):
        if found := first_broken(entries, previous, last_id):
            return found
        previous, last_id = entries[-1].hash, entries[-1].id
    return None


def _batches(connection: sqlite3.Connection) -> Iterator[list[AuditEntry]]:
    after = 0
    while entries := [_entry(row) for row in connection.execute(_SQL["oldest_first"], (after, BATCH))]:
        yield entries
        after = entries[-1].id


def newest_entries(connection: sqlite3.Connection, limit: int, before: int = sys.maxsize) -> list[AuditEntry]:
    """Newest first; go on with `before` = the id of the last one."""
    return [_entry(row) for row in connection.execute(_SQL["newest_first"], (before, limit))]


def _entry(row: tuple[Any, ...]) -> AuditEntry:
    *who_and_what, detail, digest = row
    values = (*who_and_what, msgspec.json.decode(detail), digest)
    return AuditEntry(*values)
