"""What an open ledger is made of, and the three ways to use it: write, read, look."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Mapping
from datetime import tzinfo
from typing import TypeVar

import msgspec

from daemon.store.sqlite.connection import Job, SqliteConnection
from daemon.store.sqlite.faults import storage_error
from daemon.store.sqlite.free_space import FreeSpace
from daemon.store.sqlite.high_water import HighWater
from daemon.store.sqlite.writer import Writer
from daemon.store.tables.events import EventWriter

T = TypeVar("T")


class OpenLedger(msgspec.Struct, frozen=True):
    """`snapshot` is a connection for look-ups on the loop's own thread (it sees a commit before the writer's caller is told); `labels` name the payment methods in a Z."""

    writer: Writer
    reads: SqliteConnection
    snapshot: sqlite3.Connection
    free_space: FreeSpace
    event_writer: EventWriter
    zone: tzinfo
    labels: Mapping[str, str]
    high_water: HighWater | None = None
    """The numbers that are remembered beside the file; a command beside the daemon has none, and makes no Z."""


class LedgerAccess:
    def __init__(self, parts: OpenLedger) -> None:
        self._open = parts

    async def _write(self, job: Job[T], caller: Hashable = None) -> T:
        return await self._open.writer.submit(job, caller)

    async def _read(self, job: Job[T]) -> T:
        """On the readers' thread: for what may take more than a few look-ups."""
        return await self._open.reads.run(job)

    def _snapshot(self, job: Job[T]) -> T:
        """On this thread: a look-up takes a few microseconds, a hop to another thread and back a hundred."""
        try:
            return job(self._open.snapshot)
        except sqlite3.Error as error:
            raise (storage_error(error) or error) from error
