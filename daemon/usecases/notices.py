"""Events on their way to one webhook: its lane of the ledger's outbox, with each row made into what is posted."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec
import structlog

from daemon.core.certification import Mode
from daemon.core.clock import millis_text
from daemon.core.closure import Book
from daemon.core.delivery import Backlog, Posting
from daemon.core.events import CERTIFIED, CLOSURE, Envelope, Event
from daemon.usecases.events import data_of
from daemon.usecases.ports import Ledger

log = structlog.get_logger(__name__)

NAMESPACE = uuid.UUID("6f1d3c0e-8f5b-5a64-9d7e-2b1f0c9a4e77")
"""Of the ids of events: the same event has the same id at every webhook and at every try."""


class Notice(Protocol):
    """A row of the lane; `ref_id` is the attempt or the Z number, for every other type the event itself; `at` in ms."""

    @property
    def id(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def ref_id(self) -> int: ...
    @property
    def at(self) -> int: ...


class Lane(Protocol):
    async def backlog(self) -> Sequence[Backlog]: ...
    async def waiting_events(self, book: Book, limit: int) -> Sequence[Notice]: ...
    async def mark_sent(self, outgoing_id: int, *, at: int) -> None: ...
    async def mark_failed(self, outgoing_id: int, error: str, *, at: int, next_at: int) -> None: ...
    async def park(self, outgoing_id: int, error: str, *, at: int) -> None: ...


class Notices:
    """The `Outbox` of `usecases.replicate` over a lane."""

    def __init__(self, lane: Lane, ledger: Ledger, books: Callable[[], Awaitable[Sequence[Book]]]) -> None:
        self._lane = lane
        self._ledger = ledger
        self._books = books
        self.backlog = lane.backlog
        self.mark_sent = lane.mark_sent
        self.mark_failed = lane.mark_failed
        self.park = lane.park

    async def waiting(self, nim: str, mode: Mode, limit: int) -> Sequence[Posting]:
        book = next(book for book in await self._books() if (book.nim, book.mode) == (nim, mode))
        return [await self._posting(book, notice) for notice in await self._lane.waiting_events(book, limit)]

    async def _posting(self, book: Book, notice: Notice) -> Posting:
        try:
            data = await self._data(book, notice)
            body = msgspec.json.encode(_envelope(book, notice, data))
        except ValueError as error:
            log.warning("event.gone", nim=book.nim, mode=book.mode, type=notice.type, cause=str(error))
            data = body = b""
        return Posting(notice.id, book.nim, book.mode, notice.type, event_id(book, notice, data), body)

    async def _data(self, book: Book, notice: Notice) -> bytes:
        if notice.type in (CERTIFIED, CLOSURE):
            return await data_of(self._ledger, book, Event(0, book.id, notice.type, notice.ref_id, notice.at))
        event = await self._ledger.find_event(book, notice.ref_id)
        if event is None:
            raise ValueError("the event was let go of after a week")
        return await data_of(self._ledger, book, event)


def compose(posting: Posting) -> bytes:
    """ValueError when it could not be made."""
    if not posting.body:
        raise ValueError("what it was about is no longer in the ledger")
    return posting.body


def event_id(book: Book, notice: Notice, data: bytes) -> str:
    """By what it says, not by numbers of rows, which a ledger put back from a backup gives again."""
    name = b"\n".join((notice.type.encode(), book.nim.encode(), book.mode.encode(), b"%d" % notice.at, data))
    return str(uuid.uuid5(NAMESPACE, name.decode()))


def _envelope(book: Book, notice: Notice, data: bytes) -> Envelope:
    return Envelope(
        type=notice.type,
        timestamp=millis_text(notice.at),
        nim=book.nim,
        mode=book.mode,
        data=msgspec.Raw(data),
    )
