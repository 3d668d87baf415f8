"""Events on their way to one webhook: its part of the ledger's outbox, with each row made into what is posted."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import structlog

from daemon.core.clock import millis_text
from daemon.core.delivery import Posting, WaitingEvent
from daemon.core.events import CERTIFIED, CLOSURE, Envelope, Event
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book
from daemon.store.journal import EventLog
from daemon.store.ledger import Ledger
from daemon.store.outbox import Outbox
from daemon.store.tables.book.books import all_books
from daemon.store.tables.events import find_event
from daemon.usecases.delivery.events import data_of

log = structlog.get_logger(__name__)

NAMESPACE = uuid.UUID("6f1d3c0e-8f5b-5a64-9d7e-2b1f0c9a4e77")
"""Of the ids of events: the same event has the same id at every webhook and at every try."""


@dataclass(frozen=True)
class WebhookEvents:
    """What waits in its outbox."""

    outbox: Outbox
    events: EventLog
    receipts: Ledger

    async def waiting(self, nim: str, mode: Mode, limit: int) -> Sequence[Posting]:
        """Of each taxpayer that the machine has had under that name."""
        books = [book for book in await self.events.read(all_books) if (book.nim, book.mode) == (nim, mode)]
        return [
            await self._posting(book, event)
            for book in books
            for event in await self.outbox.waiting_events(book, limit)
        ]

    async def _posting(self, book: Book, event: WaitingEvent) -> Posting:
        data = body = b""
        missing = ""
        try:
            data = await self._data(book, event)
            at, raw = millis_text(event.at), msgspec.Raw(data)
            body = msgspec.json.encode(Envelope(type=event.type, timestamp=at, nim=book.nim, mode=book.mode, data=raw))
        except ValueError as error:
            missing = str(error)
            log.warning("event.gone", nim=book.nim, mode=book.mode, type=event.type, cause=missing)
        return Posting(
            id=event.id,
            nim=book.nim,
            mode=book.mode,
            type=event.type,
            report_id=event_id(book, event, data),
            body=body,
            created_at=event.at,
            last_sent=event.last_sent,
            missing=missing,
        )

    async def _data(self, book: Book, event: WaitingEvent) -> bytes:
        if event.type in (CERTIFIED, CLOSURE):
            return await data_of(self.receipts, book, Event(0, book.id, event.type, event.ref_id, event.at))
        found = self.events.peek(find_event, book, event.ref_id)
        if found is None:
            raise ValueError("the event was let go of after a week")
        return await data_of(self.receipts, book, found)


def compose(posting: Posting) -> bytes:
    """ValueError when it could not be made."""
    if not posting.body:
        raise ValueError(posting.missing)
    return posting.body


def event_id(book: Book, event: WaitingEvent, data: bytes) -> str:
    """By what it says, not by numbers of rows, which a ledger put back from a backup gives again."""
    name = b"\n".join((event.type.encode(), book.nim.encode(), book.mode.encode(), b"%d" % event.at, data))
    return str(uuid.uuid5(NAMESPACE, name.decode()))
