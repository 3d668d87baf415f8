"""Connections to the ledger's file: a writer, a reader, and a snapshot for look-ups on the loop's thread."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from common.language import Text
from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.store.sqlite.disk_failure import DAMAGED, storage_error
from daemon.store.sqlite.file import Mode, open_file

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]
Callback = Callable[[T | None, Exception | None], None]

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


class SqliteConnection:
    """One connection on its own thread, which runs functions on it: many statements for one change of threads, where
    aiosqlite's methods need one for each. The thread is a daemon thread."""

    def __init__(self, path: Path, mode: Mode) -> None:
        self._open = partial(open_file, path, mode)
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._work, name=f"ledger {mode}", daemon=True)

    async def open(self) -> None:
        """StorageFull or LedgerUnusable instead of SQLite's own errors, here and in `run`."""
        self._thread.start()
        try:
            self._connection = await self._call(self._open)
        except BaseException:
            await self.close()
            raise

    async def run(self, job: Job[T]) -> T:
        if (connection := self._connection) is None:
            raise StorageFull(Text("the ledger is closed"))
        return await self._call(partial(job, connection))

    def start(self, job: Job[T], deliver: Callback[T]) -> None:
        """As `run`, without a task or future: `deliver` is called on the loop with the result or error."""
        loop = asyncio.get_running_loop()
        if (connection := self._connection) is None:
            loop.call_soon(deliver, None, StorageFull(Text("the ledger is closed")))
        else:
            self._jobs.put(partial(_deliver, loop, partial(job, connection), deliver))

    async def close(self) -> None:
        """After what was begun."""
        connection, self._connection = self._connection, None
        try:
            if connection is not None:
                await self._call(connection.close)
        finally:
            await self._call(self._end)
            self._thread.join()  # which has nothing else to do

    async def _call(self, work: Callable[[], T]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def deliver(result: Any, error: Exception | None) -> None:
            if done.cancelled():
                return  # the caller went away
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

        self._jobs.put(partial(_deliver, asyncio.get_running_loop(), work, deliver))
        return await done

    def _work(self) -> None:
        while not self._is_over:
            self._jobs.get()()

    def _end(self) -> None:
        self._is_over = True


def _deliver(loop: asyncio.AbstractEventLoop, work: Callable[[], T], deliver: Callback[T]) -> None:
    """On the connection's thread."""
    result: T | None = None
    error: Exception | None = None
    try:
        result = work()
    except sqlite3.Error as fault:
        error = fault
        if (translated := storage_error(fault)) is not None:
            translated.__cause__ = fault
            error = translated
    except Exception as fault:  # noqa: BLE001  any error goes to those who wait
        error = fault
    with contextlib.suppress(RuntimeError):  # the loop is closed: no caller waits
        loop.call_soon_threadsafe(deliver, result, error)


async def connect_writer(path: Path, *, max_pages: int | None = None) -> SqliteConnection:
    """`max_pages` limits the size of the file, in pages of 4 KiB."""
    limit = () if max_pages is None else (f"PRAGMA max_page_count = {max_pages}",)
    return await _connect(path, "rwc", (*_WRITER_PRAGMAS, *limit))


async def connect_reader(path: Path, mode: Mode = "rw") -> SqliteConnection:
    return await _connect(path, mode, _READER_PRAGMAS)


def connect_snapshot(path: Path, mode: Mode = "rw") -> sqlite3.Connection:
    """A connection for look-ups of a few microseconds on the loop's thread; a change of threads would cost more."""
    connection = open_file(path, mode)
    configure(connection, _READER_PRAGMAS)
    return connection


def configure(connection: sqlite3.Connection, pragmas: tuple[str, ...]) -> None:
    try:
        for pragma in pragmas:
            connection.execute(pragma).fetchall()
    except UnicodeDecodeError as error:  # in SQLite's message, which quotes a damaged schema
        raise LedgerUnusable(DAMAGED) from error


async def _connect(path: Path, mode: Mode, pragmas: tuple[str, ...]) -> SqliteConnection:
    connection = SqliteConnection(path, mode)
    await connection.open()
    try:
        await connection.run(partial(configure, pragmas=pragmas))
    except BaseException:
        await connection.close()
        raise
    return connection
