"""The events of a week, in the order in which they became durable."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.core.events import Event, EventSpan
from daemon.core.ledger.book import Book
from daemon.store.access import LedgerAccess
from daemon.store.tables import events


class EventLog(LedgerAccess):
    async def add(self, book: Book, kind: str, *, at: int, ref: int = 0, detail: str = "") -> None:
        """For what the ledger does not do itself: a machine that comes and goes, an alert."""
        write = self._open.event_writer.write
        await self.write(lambda connection: write(connection, book, kind, at, ref=ref, detail=detail))

    async def after(self, book: Book, event_id: int, limit: int = 100) -> Sequence[Event]:
        return self.peek(events.events_after, book=book, event_id=event_id, limit=limit)

    async def find(self, book: Book, event_id: int) -> Event | None:
        return self.peek(events.find_event, book=book, event_id=event_id)

    async def last_at(self, book: Book, kind: str) -> int:
        """When an event of that kind was last written (ms), 0 when none is kept."""
        return self.peek(events.last_event_at, book=book, type_=kind)

    async def span(self) -> EventSpan:
        return self.peek(events.event_span)
