"""What happened in a book, told in the order in which it became durable; whoever listens is woken and reads it from there.

So nobody misses anything who comes back within the week that events are kept, and a slow listener holds nothing up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import structlog

from daemon.core.clock import millis_text
from daemon.core.closure import Book
from daemon.core.errors import NotFound
from daemon.core.events import ATTENTION, CERTIFIED, CLOSURE, DISCONNECTED, TAX_SERVER, Event, MachineEvent
from daemon.core.receipt import receipt
from daemon.core.words import without_paths
from daemon.usecases.ports import Ledger

log = structlog.get_logger(__name__)

BATCH = 50


class Told(msgspec.Struct, frozen=True):
    """One event with its `data` as JSON."""

    id: int
    type: str
    data: bytes


class Bells:
    """One for each listener, rung when there is news in its book."""

    def __init__(self) -> None:
        self._bells: dict[int, set[asyncio.Event]] = {}

    def ring(self, book: Book) -> None:
        for bell in self._bells.get(book.id, ()):
            bell.set()

    @contextmanager
    def hung(self, book: Book) -> Iterator[asyncio.Event]:
        bell = asyncio.Event()
        bells = self._bells.setdefault(book.id, set())
        bells.add(bell)
        try:
            yield bell
        finally:
            bells.discard(bell)


async def starting_point(ledger: Ledger, last_seen: int | None) -> int:
    """After which event to go on. Without one: from now on. One that this ledger has not come to was of another (a backup was
    put back): from now on, too."""
    newest = await ledger.newest_event()
    return newest if last_seen is None else min(last_seen, newest)


async def told_after(ledger: Ledger, book: Book, event_id: int) -> Sequence[Told]:
    """The next events of the book, a bounded number of them."""
    events = await ledger.events_after(book, event_id, BATCH)
    return [Told(event.id, event.type, await _data_or_null(ledger, book, event)) for event in events]


async def _data_or_null(ledger: Ledger, book: Book, event: Event) -> bytes:
    """One damaged record must not keep the listeners from what came after it."""
    try:
        return await data_of(ledger, book, event)
    except ValueError as error:
        log.error("event.unreadable", nim=book.nim, mode=book.mode, cause=str(error))  # noqa: TRY400  no trace needed
        return b"null"


async def data_of(ledger: Ledger, book: Book, event: Event) -> bytes:
    """The receipt of a certification, the report of a closure as the till got it, or a `MachineEvent`. ValueError when the
    ledger does not have what the event is about."""
    try:
        if event.type == CERTIFIED:
            return msgspec.json.encode(receipt(await ledger.record(book, event.ref_id), book.nim))
        if event.type == CLOSURE:
            return (await ledger.closure(book, event.ref_id)).body
    except NotFound as error:
        raise ValueError(f"what event {event.id} is about is not in the ledger: {error}") from error
    return msgspec.json.encode(_machine_event(book, event))


def _machine_event(book: Book, event: Event) -> MachineEvent:
    days = event.detail if event.type == TAX_SERVER else ""
    return MachineEvent(
        nim=book.nim,
        mode=book.mode,
        at=millis_text(event.at),
        reason=without_paths(event.detail) if event.type == DISCONNECTED else None,
        found=event.detail if event.type == ATTENTION else None,
        days_since_contact=int(days) if days.isdigit() else None,
    )
