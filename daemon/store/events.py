"""What happened, in the order it became durable: small rows that point at the record, kept a week for screens that come back.

Events that some destination wants are put into its outbox lane in the same transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import msgspec

from daemon.core.closure import Book
from daemon.store.queries import load

_SQL = load("events")
_OUTBOX = load("outbox")

Lanes = Mapping[str, frozenset[str]]
"""Which event types each destination wants."""

CERTIFIED = "cert.issued"
CLOSURE = "closure.created"
ATTENTION = "mcf.attention"
UPSTREAM = "upstream"
DEFAULT_LANES: Lanes = {UPSTREAM: frozenset({CLOSURE})}


class Event(msgspec.Struct, frozen=True):
    """`ref_id` is the attempt of `cert.issued`, the z_number of `closure.created`, else 0; `at` in ms."""

    id: int
    book_id: int
    type: str
    ref_id: int
    at: int
    detail: str = ""


class Teller:
    """Writes events, and their outbox rows."""

    def __init__(self, lanes: Lanes) -> None:
        types = {type_ for wanted in lanes.values() for type_ in wanted}
        self._lanes = {type_: [lane for lane in lanes if type_ in lanes[lane]] for type_ in types}

    def tell(
        self, connection: sqlite3.Connection, book: Book, type_: str, at: int, *, ref: int = 0, detail: str = ""
    ) -> None:
        connection.execute(_SQL["insert"], (book.id, type_, ref, at, detail))
        for lane in self._lanes.get(type_, ()):
            connection.execute(_OUTBOX["insert"], (lane, book.id, type_, ref, at))


def events_after(connection: sqlite3.Connection, book: Book, event_id: int, limit: int) -> list[Event]:
    return [Event(*row) for row in connection.execute(_SQL["after"], (event_id, book.id, limit))]


def newest_event(connection: sqlite3.Connection) -> int:
    newest: int = connection.execute(_SQL["newest"]).fetchone()[0]
    return newest


def prune_events(connection: sqlite3.Connection, before: int, limit: int) -> int:
    """The newest row stays whatever its age, so that an id is never given twice."""
    return connection.execute(_SQL["prune"], (before, limit)).rowcount
