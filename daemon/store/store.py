"""Opening the ledger's file, and what is open then."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import tzinfo
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from common.language import Text
from common.language.system import reason
from daemon.core.errors import LedgerUnusable, StorageError
from daemon.core.invoice.invoice import PAYMENT_LABELS
from daemon.store.access import OpenLedger
from daemon.store.api_keys import ApiKeys
from daemon.store.audit_log import AuditLog
from daemon.store.decisions import OperatorDecisions
from daemon.store.event_log import EventLog
from daemon.store.journal import Journal
from daemon.store.ledger import Ledger, SandboxLedger
from daemon.store.maintenance import housekeeping
from daemon.store.maintenance.health import examine
from daemon.store.maintenance.lost_writes import count_commit, ledger_name, look_for_lost, note_lost
from daemon.store.maintenance.numbers import bring_back
from daemon.store.maintenance.renewal import renew_after_failure
from daemon.store.outbox import Outbox
from daemon.store.people import PeopleAccess
from daemon.store.retention import Retention
from daemon.store.sqlite.commit_mark import CommitMark, read_mark
from daemon.store.sqlite.connection import SqliteConnection, connect_reader, connect_snapshot, connect_writer
from daemon.store.sqlite.free_space import RESERVE_BYTES, FreeSpace
from daemon.store.sqlite.lock import LedgerLock
from daemon.store.sqlite.migrations import is_current, migrate, migrations
from daemon.store.sqlite.writer import Marking, Writer, bring_in
from daemon.store.standing import Standings
from daemon.store.tables.events import DEFAULT_LANES, UPSTREAM, EventWriter, Lanes
from daemon.store.tables.keys import ApiKeyRing
from daemon.store.tables.lineage import identify


class Store:
    """One open ledger: `ledger` is what a certification and a Z write, the others are what stands around it; `key_ring` looks up
    API keys for each request, `outbox` holds what goes upstream."""

    def __init__(self, parts: OpenLedger, cleanup: AsyncExitStack) -> None:
        self._open = parts
        self._cleanup = cleanup
        self.ledger = Ledger(parts)
        self.journal = Journal(parts)
        self.events = EventLog(parts)
        self.api_keys = ApiKeys(parts)
        self.decisions = OperatorDecisions(parts)
        self.retention = Retention(parts)
        self.key_ring = ApiKeyRing(parts.snapshot)
        self.people = PeopleAccess(parts)
        self.audit = AuditLog(parts)
        self.standing = Standings(parts)
        self.outbox = self.outbox_for(UPSTREAM)

    def sandbox_ledger(self, let_pass: Callable[[], Awaitable[None]]) -> SandboxLedger:
        """Its writes each wait for `let_pass` first."""
        return SandboxLedger(self._open, let_pass)

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        timezone: tzinfo,
        labels: Mapping[str, str] = PAYMENT_LABELS,
        lanes: Lanes = DEFAULT_LANES,
        live_only: Collection[str] = (),
        reserve_bytes: int = RESERVE_BYTES,
        max_pages: int | None = None,
        exclusive: bool = True,
    ) -> Store:
        """The daemon opens exclusively, a command beside it does not. A new file is made, an older one migrated.

        `lanes` says which events each destination of the outbox wants, `live_only` which get none of a sandbox; `max_pages` limits the file, in pages of 4 KiB.
        LedgerUnusable or StorageFull, naming the file and what to do, when it cannot be worked with."""
        async with AsyncExitStack() as stack:
            writes = await stack.enter_async_context(_opened(path, exclusive, max_pages))
            reads = await connect_reader(path)
            stack.push_async_callback(reads.close)
            snapshot = connect_snapshot(path)
            stack.callback(snapshot.close)
            mark = CommitMark(path, ledger_name(snapshot))
            stack.callback(mark.close)
            writer = Writer(writes, Marking(count_commit, mark.write))
            stack.push_async_callback(writer.close)
            free_space = FreeSpace(
                path,
                reserve_bytes=reserve_bytes,
                limit=max_pages or 0,
                connection=snapshot,
                probe=partial(writer.submit, housekeeping.probe),
            )
            writer.on_fault = free_space.note
            high_water = await writes.run(partial(bring_back, ledger=path)) if exclusive else None
            event_writer = EventWriter(lanes, live_only)
            parts = OpenLedger(writer, reads, snapshot, free_space, event_writer, timezone, labels, high_water)
            return cls(parts, stack.pop_all())

    def send_to(self, lanes: Lanes, live_only: Collection[str]) -> None:
        """Other destinations, from the next event on (see `open`)."""
        self._open.event_writer.take(lanes, live_only)

    def outbox_for(self, destination: str) -> Outbox:
        return Outbox(self._open.writer, self._open.reads, destination)

    async def close(self) -> None:
        """Everything submitted is written; then the file and its lock are let go."""
        await self._cleanup.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


@asynccontextmanager
async def _opened(path: Path, exclusive: bool, max_pages: int | None) -> AsyncIterator[SqliteConnection]:
    """The writing connection to a file that is locked, of the newest schema, and snapshot sound."""
    _add_free_space(path)
    lock = LedgerLock.acquire(path) if exclusive else None
    connection = None
    try:
        try:
            if lock is not None and await renew_after_failure(path):
                lock.release()
                lock = LedgerLock.acquire(path)  # of the new file
            mark = read_mark(path)
            connection = await connect_writer(path, max_pages=max_pages)
            lost = await connection.run(partial(look_for_lost, ledger=path, mark=mark, alone=exclusive))
            if exclusive:
                await _prepare(connection, path)
            elif not await connection.run(partial(is_current, steps=migrations())):
                lock = LedgerLock.acquire(path)  # never under a running daemon of another version
                await connection.run(partial(migrate, steps=migrations()))
                lock.unlock()
            if lost:
                await connection.run(partial(note_lost, found=lost))
        except StorageError as error:
            raise type(error)(f"{path}: {error}") from error
        yield connection
    finally:
        if connection is not None:
            await connection.close()
        if lock is not None:
            lock.release()


async def _prepare(connection: SqliteConnection, path: Path) -> None:
    await connection.run(
        partial(bring_in, ledger=path)
    )  # whatever a sync that failed has left of it on the disk is written anew
    await connection.run(partial(migrate, steps=migrations()))
    await connection.run(examine)
    await connection.run(identify)


def _add_free_space(path: Path) -> None:
    """A new ledger is for its owner and group alone; SQLite gives what lies beside it the same rights."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o640))
    except OSError as error:
        raise LedgerUnusable(Text("{path} cannot be made ({why})", path=path, why=reason(error))) from error
