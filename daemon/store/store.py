"""Opens the ledger's file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import tzinfo
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from common.language import Text
from common.language.system import reason
from daemon.core.errors import LedgerInUse, LedgerUnusable, StorageError
from daemon.core.invoice.invoice import PAYMENT_LABELS
from daemon.store.access import OpenLedger
from daemon.store.decisions import OperatorDecisions
from daemon.store.journal import EventLog, Journal
from daemon.store.ledger import Ledger, SandboxLedger
from daemon.store.maintenance import housekeeping
from daemon.store.maintenance.health import examine
from daemon.store.maintenance.lost_writes import count_commit, find_lost, ledger_name, note_lost
from daemon.store.maintenance.numbers import restore_numbers
from daemon.store.maintenance.renewal import renew_after_failure
from daemon.store.outbox import Outbox
from daemon.store.retention import Retention
from daemon.store.sqlite.connection import SqliteConnection, connect_reader, connect_snapshot, connect_writer
from daemon.store.sqlite.disk_failure import storage_error
from daemon.store.sqlite.file import Mode, check_is_file, open_to_read
from daemon.store.sqlite.free_space import RESERVE_BYTES, FreeSpace
from daemon.store.sqlite.lock import CommitMark, LedgerLock, read_mark
from daemon.store.sqlite.migrations import is_current, migrate, migrations
from daemon.store.sqlite.writer import Marking, Writer, checkpoint_all
from daemon.store.tables.events import DEFAULT_DESTINATIONS, UPSTREAM, Destinations, EventWriter
from daemon.store.tables.keys import ApiKeyRing
from daemon.store.tables.meta import identify

Opening: TypeAlias = Literal["daemon", "command", "read"]
"""
daemon   exclusive: the ledger is migrated and examined, and has its high-water file
command  exclusive, for one change while no daemon runs: the ledger is migrated and not examined
read     read-only, beside the process that writes
"""


class Store:
    """One open ledger. `ledger` writes certifications and closures; `key_ring` looks up the API key of each request;
    `outbox` has the messages for upstream."""

    def __init__(self, parts: OpenLedger, cleanup: AsyncExitStack) -> None:
        self._open = parts
        self._cleanup = cleanup
        self.ledger = Ledger(parts)
        self.journal = Journal(parts)
        self.events = EventLog(parts)
        self.decisions = OperatorDecisions(parts)
        self.retention = Retention(parts)
        self.key_ring = ApiKeyRing(parts.snapshot)
        self.outbox = self.outbox_for(UPSTREAM)

    def sandbox_ledger(self, yield_to_tills: Callable[[], Awaitable[None]]) -> SandboxLedger:
        """A ledger for the sandbox: each write waits for `yield_to_tills` first."""
        return SandboxLedger(self._open, yield_to_tills)

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        timezone: tzinfo,
        labels: Mapping[str, str] = PAYMENT_LABELS,
        destinations: Destinations = DEFAULT_DESTINATIONS,
        live_only: Collection[str] = (),
        reserve_bytes: int = RESERVE_BYTES,
        max_pages: int | None = None,
        opening: Opening = "daemon",
        control: Path | None = None,
    ) -> Store:
        """Creates a new file or migrates an older one, except for `read`. `control`: the socket of a running daemon.

        `destinations`: the events for each receiver of the outbox; `live_only`: receivers without events of a sandbox;
        `max_pages`: greatest size of the file in pages of 4 KiB. LedgerUnusable or StorageFull names the file and what
        to do."""
        async with AsyncExitStack() as stack:
            reads_only = opening == "read"
            if reads_only:
                await _bring_up_to_date(path)
                writes = await stack.enter_async_context(_reading(path))
            else:
                writes = await stack.enter_async_context(_opened(path, opening, max_pages, control))
            mode: Mode = "ro" if reads_only else "rw"
            reads = writes if reads_only else await stack.enter_async_context(_reading(path, mode))
            snapshot = connect_snapshot(path, mode)
            stack.callback(snapshot.close)
            marking = None
            if not reads_only:
                mark = CommitMark(path, ledger_name(snapshot))
                stack.callback(mark.close)
                marking = Marking(count_commit, mark.write)
            writer = Writer(writes, marking)
            stack.push_async_callback(writer.close)
            free_space = FreeSpace(
                path,
                reserve_bytes=reserve_bytes,
                limit=max_pages or 0,
                connection=snapshot,
                probe=partial(writer.submit, housekeeping.probe),
            )
            writer.on_fault = free_space.note
            high_water = await writes.run(partial(restore_numbers, ledger=path)) if opening == "daemon" else None
            event_writer = EventWriter(destinations, live_only)
            parts = OpenLedger(writer, reads, snapshot, free_space, event_writer, timezone, labels, high_water)
            return cls(parts, stack.pop_all())

    def send_to(self, destinations: Destinations, live_only: Collection[str]) -> None:
        """Sets other destinations from the next event on (see `open`)."""
        self._open.event_writer.configure(destinations, live_only)

    def outbox_for(self, destination: str) -> Outbox:
        return Outbox(self._open.writer, self._open.reads, destination)

    async def close(self) -> None:
        """Completes all submitted writes, then releases the file and its lock."""
        await self._cleanup.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


@asynccontextmanager
async def _opened(
    path: Path, opening: Opening, max_pages: int | None, control: Path | None
) -> AsyncIterator[SqliteConnection]:
    """The writing connection to a file that is locked, migrated and examined."""
    _create_file(path)
    is_command = opening == "command"
    lock = LedgerLock.acquire(path, control=control, is_command=is_command)
    connection = None
    try:
        try:
            if await renew_after_failure(path):
                lock.release()
                lock = LedgerLock.acquire(path, control=control, is_command=is_command)  # of the new file
            mark = read_mark(path)
            connection = await connect_writer(path, max_pages=max_pages)
            lost = await connection.run(partial(find_lost, ledger=path, mark=mark, alone=True))
            await _prepare(connection, path, is_examined=not is_command)
            if lost:
                await connection.run(partial(note_lost, found=lost, mark=mark))
        except LedgerInUse:
            raise
        except StorageError as error:
            raise type(error)(Text("{path}: {why}", path=path, why=error)) from error
        yield connection
    finally:
        if connection is not None:
            await connection.close()
        lock.release()


@asynccontextmanager
async def _reading(path: Path, mode: Mode = "ro") -> AsyncIterator[SqliteConnection]:
    connection = await connect_reader(path, mode)
    try:
        yield connection
    finally:
        await connection.close()


async def _bring_up_to_date(path: Path) -> None:
    """Migrates the file before it is read; never beside a running daemon of another version."""
    try:
        with closing(open_to_read(path)) as connection:
            if is_current(connection, migrations()):
                return
    except sqlite3.Error as error:
        fault = storage_error(error)
        raise (type(fault)(Text("{path}: {why}", path=path, why=fault)) if fault else error) from error
    except StorageError as error:
        raise type(error)(Text("{path}: {why}", path=path, why=error)) from error
    async with _opened(path, "command", None, None):
        pass


async def _prepare(connection: SqliteConnection, path: Path, *, is_examined: bool) -> None:
    # A failed sync may have left part of the file unwritten: it is written again.
    await connection.run(partial(checkpoint_all, ledger=path))
    await connection.run(partial(migrate, steps=migrations()))
    if is_examined:
        await connection.run(examine)
    await connection.run(identify)


def _create_file(path: Path) -> None:
    """A new ledger is readable by owner and group only; SQLite gives its companion files the same mode."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_is_file(path)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o640))
    except OSError as error:
        raise LedgerUnusable(Text("{path} cannot be made ({why})", path=path, why=reason(error))) from error
