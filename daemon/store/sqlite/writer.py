"""The one writer: callers that wait at the same moment share one commit, and are told only after it.

A job is a function on the connection. Each runs in a savepoint of its own, so that its exception undoes and fails only
itself; a commit that fails, fails every job of its batch. A job that was submitted runs, whether or not its caller is
still there.

**Gathering.** With a fast disk a commit is over before the next caller comes, and each would pay for an fsync of its own.
So while many callers come and go (`SIBLINGS` of them within `WINDOW`), the writer waits up to `DELAY` for those
that were here a moment ago and are not back yet, as PostgreSQL does with commit_delay and commit_siblings. A lone caller is
never delayed.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from daemon.core.errors import StorageError, StorageFull
from daemon.store.sqlite.connection import Connection, Job
from daemon.store.sqlite.faults import storage_error

T = TypeVar("T")

SIBLINGS = 4
WINDOW = 0.02
DELAY = 0.004
"""Seconds; about one fsync of a good SSD, and a fifteenth of the shortest invoice on a real line."""

JOBS_PER_CHECKPOINT = 200
"""About 1 000 pages of WAL. Brought into the file between two batches, when everybody has been told."""


class _Submitted(NamedTuple):
    job: Job[Any]
    future: asyncio.Future[Any]


class _Outcome(NamedTuple):
    result: Any
    error: Exception | None


class Writer:
    """`commits` counts the commits that wrote something, each one fsync; `on_fault` hears what became of each."""

    def __init__(self, connection: Connection) -> None:
        self.commits = 0
        self.on_fault: Callable[[StorageError | None], None] = lambda _: None
        self._connection = connection
        self._queue: list[_Submitted] = []
        self._callers: set[Hashable] = set()
        self._seen: dict[Hashable, float] = {}
        self._awaited: set[Hashable] = set()
        self._arrived = asyncio.Event()
        self._complete = asyncio.Event()
        self._closing = False
        self._since_checkpoint = 0
        self._task = asyncio.get_running_loop().create_task(self._work(), name="ledger writer")

    async def submit(self, job: Job[T], caller: Hashable = None) -> T:
        """The job's result, once it is durable. `caller` names one who does such jobs again and again."""
        if self._closing:
            raise StorageFull("the ledger is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.append(_Submitted(job, future))
        self._arrived.set()
        if caller is not None:
            self._seen[caller] = loop.time()
            self._callers.add(caller)
            self._awaited.discard(caller)
            if not self._awaited:
                self._complete.set()
        return await future

    async def close(self) -> None:
        """Ends after everything submitted so far."""
        self._closing = True
        self._arrived.set()
        await self._task

    async def _work(self) -> None:
        while self._queue or not self._closing:
            if not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            if not self._closing:
                await self._gather()
            batch, self._queue = self._queue, []
            self._callers.clear()
            await self._commit(batch)

    async def _gather(self) -> None:
        """Waits for the callers of the last moments that are not back yet, if there are enough of them to be worth it."""
        loop = asyncio.get_running_loop()
        since = loop.time() - WINDOW
        self._seen = {caller: at for caller, at in self._seen.items() if at >= since}
        self._awaited = set(self._seen) - self._callers
        if len(self._seen) < SIBLINGS or not self._awaited:
            return
        self._complete.clear()
        try:
            async with asyncio.timeout(DELAY):
                await self._complete.wait()
        except TimeoutError:
            self._awaited.clear()

    async def _commit(self, batch: list[_Submitted]) -> None:
        try:
            outcomes, wrote = await self._connection.run(partial(_transact, [job for job, _ in batch]))
        except Exception as error:  # noqa: BLE001  # whatever it is, those who wait must be told
            self._fail(batch, error)
            return
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            if future.cancelled():
                continue  # the caller went away; what it asked for is done all the same
            if outcome.error is not None:
                future.set_exception(outcome.error)
            else:
                future.set_result(outcome.result)
        if wrote:
            self.commits += 1
            self.on_fault(None)
            await self._checkpoint(len(batch))

    def _fail(self, batch: list[_Submitted], error: Exception) -> None:
        if isinstance(error, StorageError):
            _log().error("ledger.write_failed", jobs=len(batch), cause=str(error))
            self.on_fault(error)
        for _, future in batch:
            if not future.cancelled():
                future.set_exception(error)

    async def _checkpoint(self, jobs: int) -> None:
        self._since_checkpoint += jobs
        if self._since_checkpoint < JOBS_PER_CHECKPOINT:
            return
        self._since_checkpoint = 0
        try:
            await self._connection.run(checkpoint)
        except StorageError as error:
            _log().warning("ledger.checkpoint_failed", cause=str(error))
            self.on_fault(error)


def checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _transact(jobs: list[Job[Any]], connection: sqlite3.Connection) -> tuple[list[_Outcome], bool]:
    """One transaction; what came of each job, and whether anything was written."""
    before = connection.total_changes
    connection.execute("BEGIN IMMEDIATE")
    try:
        if len(jobs) == 1:
            outcomes = [_Outcome(jobs[0](connection), None)]
        else:
            outcomes = [_attempt(job, connection) for job in jobs]
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself has ended it after some faults
            connection.execute("ROLLBACK")
        raise
    return outcomes, connection.total_changes != before


def _attempt(job: Job[Any], connection: sqlite3.Connection) -> _Outcome:
    connection.execute("SAVEPOINT job")
    try:
        outcome = _Outcome(job(connection), None)
    except Exception as error:
        if isinstance(error, sqlite3.Error) and storage_error(error) is not None:
            raise  # the disk, not the job: nothing of this transaction can be kept
        connection.execute("ROLLBACK TO job")
        outcome = _Outcome(None, error)
    connection.execute("RELEASE job")
    return outcome


def _log() -> Any:
    import structlog  # noqa: PLC0415  a command that only reads has nothing to log, and starts without it

    return structlog.get_logger(__name__)
