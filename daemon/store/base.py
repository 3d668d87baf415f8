"""What an open ledger is made of, and the three ways to use it: write, read, look."""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import TypeVar

from daemon.store.connection import Connection, Job
from daemon.store.events import Teller
from daemon.store.faults import storage_error
from daemon.store.room import Room
from daemon.store.writer import Writer

T = TypeVar("T")


@dataclass(frozen=True)
class Parts:
    """`glance` is a connection for the loop's own thread; `labels` name the payment methods in a Z."""

    writer: Writer
    reads: Connection
    glance: sqlite3.Connection
    room: Room
    teller: Teller
    zone: tzinfo
    labels: Mapping[str, str]


class Base:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def _write(self, job: Job[T], caller: Hashable = None) -> T:
        return await self._parts.writer.submit(job, caller)

    async def _read(self, job: Job[T]) -> T:
        """On the readers' thread: for what may take more than a few look-ups."""
        return await self._parts.reads.run(job)

    def _look(self, job: Job[T]) -> T:
        """On this thread: a look-up takes a few microseconds, a hop to another thread and back a hundred."""
        try:
            return job(self._parts.glance)
        except sqlite3.Error as error:
            raise (storage_error(error) or error) from error
