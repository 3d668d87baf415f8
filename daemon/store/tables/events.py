"""Events in the order of commits: small rows that point at their record, kept for a week for screens that reconnect.

An event for a destination enters its outbox in the same transaction."""

import sqlite3
from collections.abc import Collection, Mapping

from common.language.reasons import to_stored
from daemon.core.events import CERTIFIED, CLOSURE, Event, EventSpan
from daemon.core.ledger.book import Book
from daemon.store.sqlite.file import OUTBOX, load, read_as
from daemon.store.tables.meta import read_lineage

_SQL = load(__name__)
_OUTBOX = load(OUTBOX)

Destinations = Mapping[str, frozenset[str]]
"""Which event types each destination wants."""

UPSTREAM = "upstream"
DEFAULT_DESTINATIONS: Destinations = {UPSTREAM: frozenset({CLOSURE})}

CALENDAR = "calendar.closed"
"""Of a row of the outbox that goes to headquarters alone."""

OF_A_RECORD = frozenset({CERTIFIED, CLOSURE})
"""Their outbox row refers to the attempt or the Z, which stay for ever; the row of any other refers to the event."""


class EventWriter:
    """Writes events, and their outbox rows; the destinations in `live_only` get none of a sandbox."""

    def __init__(self, destinations: Destinations, live_only: Collection[str] = ()) -> None:
        self.configure(destinations, live_only)

    def configure(self, destinations: Destinations, live_only: Collection[str]) -> None:
        """From the next event on."""
        self._live_only = frozenset(live_only)
        types = {type_ for wanted in destinations.values() for type_ in wanted}
        self._destinations = {type_: [name for name in destinations if type_ in destinations[name]] for type_ in types}

    def write(
        self, connection: sqlite3.Connection, book: Book, type_: str, at: int, *, ref: int = 0, detail: str = ""
    ) -> None:
        event_id = connection.execute(_SQL["insert"], (book.id, type_, ref, at, to_stored(detail))).lastrowid
        about = ref if type_ in OF_A_RECORD else event_id
        for destination in self._destinations.get(type_, ()):
            if book.mode == "live" or destination not in self._live_only:
                connection.execute(_OUTBOX["insert"], (destination, book.id, type_, about, at))

    def send_upstream(self, connection: sqlite3.Connection, book: Book, entry_id: int, at: int) -> None:
        """The closure of a month or year (the entry of that id) goes where Zs go, and is no event of its own."""
        if UPSTREAM in self._destinations.get(CLOSURE, ()):
            connection.execute(_OUTBOX["insert"], (UPSTREAM, book.id, CALENDAR, entry_id, at))


def events_after(connection: sqlite3.Connection, book: Book, event_id: int, limit: int) -> list[Event]:
    return list(read_as(Event, connection.execute(_SQL["after"], (event_id, book.id, limit))))


def find_event(connection: sqlite3.Connection, book: Book, event_id: int) -> Event | None:
    """None when it is not this book's, or was let go of (`housekeeping`)."""
    return next(read_as(Event, connection.execute(_SQL["by_id"], (event_id, book.id))), None)


def last_event_at(connection: sqlite3.Connection, book: Book, type_: str) -> int:
    """When an event of that type was last written (ms), 0 when there is none."""
    at: int = connection.execute(_SQL["last_told"], (book.id, type_)).fetchone()[0]
    return at


def event_span(connection: sqlite3.Connection) -> EventSpan:
    oldest, newest = connection.execute(_SQL["span"]).fetchone()
    return EventSpan(oldest, newest, read_lineage(connection).epoch)
