"""The event stream of a book, in the order of commits; a listener is woken and reads new events from the ledger.

So a listener that returns within a week misses nothing, and a slow one delays no other. The ledger's own transactions
store certifications, closures, attention and the tax server's alert; this module stores a machine's connections."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple

import msgspec
import structlog

from common.language.reasons import from_stored
from daemon.core import events as kinds
from daemon.core.clock import Clock, millis_text
from daemon.core.errors import StorageError, StorageFull, without_paths
from daemon.core.events import Event, MachineEvent, OutageEvent, RequestEvent
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.report.receipt import receipt
from daemon.store.journal import EventLog
from daemon.store.ledger import Ledger
from daemon.store.tables.book import deferred, outages
from daemon.store.tables.book.attempts import find_record
from daemon.store.tables.book.closures import find_closure
from daemon.store.tables.events import event_span, events_after
from daemon.usecases.worker.machine_worker import BookEvent

log = structlog.get_logger(__name__)

BATCH = 50

WRITTEN_HERE = frozenset({kinds.CONNECTED, kinds.DISCONNECTED, kinds.IN_DOUBT, kinds.PRINTER, kinds.SLOW})
LAST_EVENTS_SECONDS = 2.0
"""Seconds left at the stop to what was heard and is not written down yet."""


class SentEvent(msgspec.Struct, frozen=True):
    """One event with its `data` as JSON."""

    id: int
    type: str
    data: bytes


class EventNotifier:
    """Tells each listener that there is news in its book; what it is, the listener reads from the ledger."""

    def __init__(self) -> None:
        self._listeners: dict[int, set[asyncio.Event]] = {}

    def notify(self, book: Book) -> None:
        for news in self._listeners.get(book.id, ()):
            news.set()

    @contextmanager
    def listening(self, book: Book) -> Iterator[asyncio.Event]:
        """Set with each notification; the listener clears it before it reads."""
        news = asyncio.Event()
        listeners = self._listeners.setdefault(book.id, set())
        listeners.add(news)
        try:
            yield news
        finally:
            listeners.discard(news)


async def has_come(news: asyncio.Event, seconds: float) -> bool:
    """Whether it was set within that time."""
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return False
    return True


class LastEventId(NamedTuple):
    """What a listener has seen last: an id means something within its epoch only."""

    epoch: int
    id: int


class Start(NamedTuple):
    """The event after which a stream continues; `reset`: why not where the listener was, or empty."""

    after: int
    epoch: int
    reset: str = ""


async def starting_point(events: EventLog, last_seen: LastEventId | None) -> Start:
    """Without `last_seen`: from now on. If the ledger was restored since: from now on, with a reset. If the event is no
    longer stored: from the oldest one, with a reset."""
    span = events.peek(event_span)
    if last_seen is None:
        return Start(span.newest, span.epoch)
    if last_seen.epoch != span.epoch or last_seen.id > span.newest:
        return Start(span.newest, span.epoch, "restored")
    if last_seen.id + 1 < span.oldest:
        return Start(span.oldest - 1, span.epoch, "expired")
    return Start(last_seen.id, span.epoch)


def reset_event(book: Book, start: Start, at: int) -> SentEvent:
    event = MachineEvent(nim=book.nim, mode=book.mode, at=millis_text(at), reason=start.reset)
    return SentEvent(start.after, kinds.RESET, msgspec.json.encode(event))


async def events_for(events: EventLog, receipts: Ledger, book: Book, event_id: int) -> Sequence[SentEvent]:
    """The next events of the book, a bounded number of them."""
    found = events.peek(events_after, book, event_id, BATCH)
    return [SentEvent(event.id, event.type, await _data_or_null(receipts, book, event)) for event in found]


async def _data_or_null(receipts: Ledger, book: Book, event: Event) -> bytes:
    """One damaged record must not keep the listeners from what came after it."""
    try:
        return await data_of(receipts, book, event)
    except ValueError as error:
        log.error("event.unreadable", nim=book.nim, mode=book.mode, cause=str(error))  # noqa: TRY400  no trace needed
        return b"null"


async def data_of(receipts: Ledger, book: Book, event: Event) -> bytes:
    """The receipt of a certification, the report of a closure as the till got it, or a `MachineEvent`. ValueError if
    the ledger lacks the event's record or it is damaged."""
    try:
        return await _read(receipts, book, event)
    except StorageFull:
        raise  # of the disk, and over some day
    except Exception as error:  # whatever damage does to one record: no other event waits for it
        raise ValueError(f"what {event.type} of {event.ref_id} is about cannot be read: {error!r}") from error


async def _read(receipts: Ledger, book: Book, event: Event) -> bytes:
    if event.type == kinds.CERTIFIED:
        return msgspec.json.encode(receipt(receipts.peek(find_record, book, event.ref_id)))
    if event.type == kinds.CLOSURE:
        body = (await receipts.read(find_closure, book, event.ref_id)).body
        msgspec.json.decode(body)  # goes into other JSON as it is
        return body
    if event.type == kinds.DEFERRED or (event.type == kinds.REFUSED and event.detail):
        sale = receipts.peek(deferred.by_id, book, event.ref_id)
        if sale is None:
            raise ValueError("the sale is not in the ledger")
        due = millis_text(sale.due_at) if event.type == kinds.DEFERRED else None
        why = without_paths(from_stored(event.detail)) or None
        return msgspec.json.encode(_request_event(book, event, sale, reason=why, regularise_before=due))
    if event.type in (kinds.REFUSED, kinds.IN_DOUBT):
        record = receipts.peek(find_record, book, event.ref_id)
        # What a doubt became changes its record: the event has its own words, as it has one id at every try.
        why = record.reason if event.type == kinds.REFUSED else event.detail
        return msgspec.json.encode(_request_event(book, event, record, reason=without_paths(from_stored(why)) or None))
    if event.type in (kinds.OUTAGE, kinds.BACK):
        return msgspec.json.encode(_outage_event(receipts, book, event))
    return msgspec.json.encode(_machine_event(book, event))


def _request_event(
    book: Book,
    event: Event,
    about: Record | DeferredSale,
    *,
    reason: str | None = None,
    regularise_before: str | None = None,
) -> RequestEvent:
    return RequestEvent(
        nim=book.nim,
        mode=book.mode,
        at=millis_text(event.at),
        invoice_number=about.number,
        invoice_type=about.type,
        total_ttc=about.total_ttc,
        request_id=about.request_id,
        reason=reason,
        regularise_before=regularise_before,
    )


def _outage_event(receipts: Ledger, book: Book, event: Event) -> OutageEvent:
    """Nothing that may still change: the same event has the same id at every try."""
    outage = receipts.peek(outages.find_outage, book, event.ref_id)
    return OutageEvent(
        nim=outage.nim,
        mode=book.mode,
        at=millis_text(event.at),
        outage=outage.number,
        from_=millis_text(outage.since),
        to=millis_text(outage.until) if event.type == kinds.BACK else None,
        reason=outage.reason,
    )


def _machine_event(book: Book, event: Event) -> MachineEvent:
    days = event.detail if event.type == kinds.TAX_SERVER else ""
    has_reason = event.type in (kinds.DISCONNECTED, kinds.PRINTER, kinds.SLOW)
    return MachineEvent(
        nim=book.nim,
        mode=book.mode,
        at=millis_text(event.at),
        reason=without_paths(from_stored(event.detail)) if has_reason else None,
        found=str(from_stored(event.detail)) if event.type == kinds.ATTENTION else None,
        days_since_contact=int(days) if days.isdigit() else None,
    )


class EventBus:
    """`listeners` are called once an event can be read from the ledger."""

    def __init__(self, events: EventLog, clock: Clock) -> None:
        self.notifier = EventNotifier()
        self.listeners: list[Callable[[BookEvent], None]] = []
        self._events = events
        self._clock = clock
        self._unwritten: asyncio.Queue[tuple[BookEvent, int]] = asyncio.Queue()

    def on_event(self, event: BookEvent) -> None:
        if event.type in WRITTEN_HERE:
            self._unwritten.put_nowait((event, self._clock()))
        else:
            self._pass_on(event)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Until what was heard is written down."""
        task = asyncio.get_running_loop().create_task(self._write(), name="events")
        try:
            yield
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_EVENTS_SECONDS):
                    await self._unwritten.join()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _write(self) -> None:
        while True:
            event, at = await self._unwritten.get()
            try:
                await self._events.add(event.book, event.type, at=at, ref=event.ref, detail=event.detail)
                self._pass_on(event)
            except StorageError as error:
                log.warning("event.not_stored", nim=event.book.nim, type=event.type, cause=str(error))
            finally:
                self._unwritten.task_done()

    def _pass_on(self, event: BookEvent) -> None:
        self.notifier.notify(event.book)
        for listener in self.listeners:
            listener(event)
