"""What is to be sent where, as the ledger keeps it. A row is written in the transaction of what it is about, and kept when sent."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from functools import partial

import msgspec

from daemon.core.certification import Mode
from daemon.core.closure import Book
from daemon.core.delivery import Backlog, Outgoing
from daemon.store.connection import Connection
from daemon.store.events import UPSTREAM
from daemon.store.queries import load
from daemon.store.writer import Writer

_SQL = load("outbox")


class Notice(msgspec.Struct, frozen=True):
    """An event on its way to a webhook; `ref_id` is the attempt or the z_number that it is about, for other types the event's
    id; `at` in ms."""

    id: int
    book_id: int
    type: str
    ref_id: int
    at: int
    tries: int


class Outbox:
    """One destination's rows: the port of `usecases.replicate`, and the same for events."""

    def __init__(self, writer: Writer, reads: Connection, destination: str = UPSTREAM) -> None:
        self._writer = writer
        self._reads = reads
        self._destination = destination

    async def backlog(self) -> Sequence[Backlog]:
        return await self._reads.run(partial(_backlog, destination=self._destination))

    async def waiting(self, nim: str, mode: Mode, limit: int) -> Sequence[Outgoing]:
        """Closures that are neither sent nor parked, by z_number."""
        values = (self._destination, nim, mode, limit)
        return await self._reads.run(
            lambda connection: [Outgoing(*row) for row in connection.execute(_SQL["waiting_closures"], values)]
        )

    async def waiting_events(self, book: Book, limit: int) -> Sequence[Notice]:
        values = (self._destination, book.id, limit)
        return await self._reads.run(
            lambda connection: [Notice(*row) for row in connection.execute(_SQL["waiting_events"], values)]
        )

    async def mark_sent(self, outgoing_id: int, *, at: int) -> None:
        await self._write("mark_sent", at, outgoing_id)

    async def mark_failed(self, outgoing_id: int, error: str, *, at: int, next_at: int) -> None:
        await self._write("mark_failed", error, at, next_at, outgoing_id)

    async def park(self, outgoing_id: int, error: str, *, at: int) -> None:
        await self._write("park", error, at, outgoing_id)

    async def replay(self, *, nim: str | None, from_z: int | None) -> int:
        """Parked closures, or all from a Z number on, wait again; how many."""
        if from_z is None:
            return await self._write("replay_parked", self._destination, nim, nim)
        return await self._write("replay_from", self._destination, from_z, nim, nim)

    async def _write(self, name: str, *values: object) -> int:
        return await self._writer.submit(
            lambda connection: connection.execute(_SQL[name], values).rowcount,
        )


def forget_destinations(connection: sqlite3.Connection, but: Collection[str]) -> int:
    known = [row[0] for row in connection.execute(_SQL["destinations"])]
    gone = [destination for destination in known if destination not in {UPSTREAM, *but}]
    unsent = sum(connection.execute(_SQL["forget_unsent"], (destination,)).rowcount for destination in gone)
    for destination in gone:
        connection.execute(_SQL["forget_sent"], (destination,))
    return unsent


def _backlog(connection: sqlite3.Connection, destination: str) -> list[Backlog]:
    return [
        Backlog(
            nim=nim,
            mode=mode,
            waiting=waiting,
            parked=parked,
            oldest_at=oldest_at,
            last_error=_last_error(connection, destination, book_id, error_at),
            last_error_at=error_at,
            last_sent_at=sent_at,
        )
        for nim, mode, waiting, parked, oldest_at, error_at, sent_at, book_id in connection.execute(
            _SQL["backlog"], (destination,)
        ).fetchall()
    ]


def _last_error(connection: sqlite3.Connection, destination: str, book_id: int, at: int) -> str:
    if not at:
        return ""
    row = connection.execute(_SQL["last_error"], (destination, book_id, at)).fetchone()
    return str(row[0]) if row else ""
