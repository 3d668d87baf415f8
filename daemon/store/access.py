"""The parts of an open ledger, and the three ways to use it: `write`, `read`, `peek`."""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Concatenate, ParamSpec, TypeVar

import msgspec

from common.language import Text
from daemon.core.errors import StorageFull
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book
from daemon.store.sqlite.connection import SqliteConnection
from daemon.store.sqlite.disk_failure import as_storage_error
from daemon.store.sqlite.free_space import FreeSpace
from daemon.store.sqlite.high_water import HighWater
from daemon.store.sqlite.writer import Writer
from daemon.store.tables.events import EventWriter

T = TypeVar("T")
P = ParamSpec("P")


class OpenLedger(msgspec.Struct, frozen=True):
    """`snapshot`: connection for look-ups on the loop's thread, which sees a commit before the writer's caller does.
    `labels`: names of the payment methods in a Z."""

    writer: Writer
    reads: SqliteConnection
    snapshot: sqlite3.Connection
    free_space: FreeSpace
    event_writer: EventWriter
    zone: tzinfo
    labels: Mapping[str, str]
    high_water: HighWater | None = None
    """The high-water file; None for a command beside the daemon, which closes no Z."""
    under_way: dict[int, Callable[[Record], bool]] = msgspec.field(default_factory=dict)
    """By book id: whether this process will end an attempt itself, so that an operator cannot decide on it. Called on
    the writer's thread."""


class LedgerAccess:
    """Runs functions of `store.tables` on an open ledger, in one of three ways."""

    def __init__(self, parts: OpenLedger) -> None:
        self._open = parts

    def leave_to(self, book: Book, is_under_way: Callable[[Record], bool]) -> None:
        """Registers the process that works on that book (`OpenLedger.under_way`)."""
        self._open.under_way[book.id] = is_under_way

    async def write(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **named: P.kwargs
    ) -> T:
        """Its result, once durable; StorageFull if it cannot be. Concurrent calls may share a commit."""
        return await self.submit(function, *args, **named)

    def submit(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **named: P.kwargs
    ) -> asyncio.Future[T]:
        """As `write`; its place is fixed when this returns."""
        return self._open.writer.submit(lambda connection: function(connection, *args, **named))

    async def read(
        self, function: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **named: P.kwargs
    ) -> T:
        """Runs on the readers' thread: for more than a few look-ups."""
        return await self._open.reads.run(lambda connection: function(connection, *args, **named))

    def peek(self, function: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **named: P.kwargs) -> T:
        """Runs on this thread: a look-up takes a few microseconds, a change of threads a hundred."""
        try:
            return function(self._open.snapshot, *args, **named)
        except sqlite3.Error as error:
            if self._open.writer.is_closing and isinstance(error, sqlite3.ProgrammingError):
                raise StorageFull(Text("the ledger is closed")) from error
            raise as_storage_error(error) from error
