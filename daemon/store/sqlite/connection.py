"""Connections to the ledger's file: one that writes, one that reads beside it, one for look-ups (a snapshot) on the loop's own thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite

from common.language import Text
from daemon.core.errors import StorageFull
from daemon.store.sqlite.faults import storage_error

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]
Told = Callable[[T | None, Exception | None], None]

STATEMENTS = 256
"""Prepared statements kept by each connection; the store has about a hundred."""

BUSY_SECONDS = 5.0
"""How long to wait for another process (`mcfd machine settle`, `mcfd keys`) that is writing."""

_WRITER_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = OFF",  # Debian builds it in; it would write every pruned row once more
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -4096",  # KiB
    "PRAGMA wal_autocheckpoint = 4000",  # a backstop: the writer checkpoints between two batches
    "PRAGMA journal_size_limit = 16777216",
)
_READER_PRAGMAS = (
    "PRAGMA query_only = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -2048",
)


class SqliteConnection(aiosqlite.Connection):
    """One connection on a thread of its own."""

    stopped: asyncio.Future[Any] | None = None

    def stop(self) -> asyncio.Future[Any] | None:
        """A connection that cannot be opened is stopped by aiosqlite without waiting for its thread, whose last word then
        meets a loop that may be closed: `_connect` waits."""
        self.stopped = super().stop()
        return self.stopped

    async def run(self, job: Job[T]) -> T:
        """`job` on the connection's thread: many statements for one hop between threads.

        aiosqlite hops for each statement; `_execute` is what its own methods do that with, and no public method takes a
        function. StorageFull or LedgerUnusable instead of SQLite's own errors."""
        try:
            result: T = await self._execute(job, self._conn)  # type: ignore[no-untyped-call]  # not annotated there
        except sqlite3.Error as error:
            raise (storage_error(error) or error) from error
        return result

    def start(self, job: Job[T], told: Told[T]) -> None:
        """The same for the writer, without a task or a future in between: `told` is called on the loop, with the result or with the error."""
        loop = asyncio.get_running_loop()
        if not self._running or not self._connection:
            loop.call_soon(told, None, StorageFull(Text("the ledger is closed")))
            return
        connection = self._conn

        def work() -> None:
            result: T | None = None
            error: Exception | None = None
            try:
                result = job(connection)
            except sqlite3.Error as fault:
                error = storage_error(fault) or fault
            except Exception as fault:  # noqa: BLE001  whatever it is, those who wait must be told
                error = fault
            loop.call_soon_threadsafe(told, result, error)

        self._tx.put_nowait((None, work))


async def connect_writer(path: Path, *, max_pages: int | None = None) -> SqliteConnection:
    """`max_pages` limits the size of the file, in pages of 4 KiB."""
    limit = () if max_pages is None else (f"PRAGMA max_page_count = {max_pages}",)
    return await _connect(path, "rwc", (*_WRITER_PRAGMAS, *limit))


async def connect_reader(path: Path) -> SqliteConnection:
    return await _connect(path, "rw", _READER_PRAGMAS)


def connect_snapshot(path: Path) -> sqlite3.Connection:
    """A connection for look-ups of a few microseconds on the loop's own thread, where a hop would cost more than the answer."""
    connection = open_file(path, "rw")
    configure(connection, _READER_PRAGMAS)
    return connection


def open_file(path: Path, mode: str) -> sqlite3.Connection:
    """`mode` as in an SQLite URI: ro, rw, rwc."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions are begun and ended by name
        cached_statements=STATEMENTS,
    )


def open_to_read(path: Path) -> sqlite3.Connection:
    """Nothing is written through it; but a WAL that a crash has left is read, and brought into the file at the end."""
    connection = open_file(path, "rw")
    connection.execute("PRAGMA query_only = ON")
    return connection


def configure(connection: sqlite3.Connection, pragmas: tuple[str, ...]) -> None:
    for pragma in pragmas:
        connection.execute(pragma).fetchall()


async def _connect(path: Path, mode: str, pragmas: tuple[str, ...]) -> SqliteConnection:
    connection = SqliteConnection(partial(open_file, path, mode), iter_chunk_size=64)
    try:
        await connection
    except sqlite3.Error as error:
        if connection.stopped is not None:
            await connection.stopped
        raise (storage_error(error) or error) from error
    try:
        await connection.run(partial(configure, pragmas=pragmas))
    except BaseException:
        await connection.close()
        raise
    return connection
