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
from daemon.language import Text
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
    """`commits` counts the commits that wrote something, each one fsync; `on_fault` hears what became of each.

    No task of its own: a batch is begun where the one before it is told, or where the first job comes, so a lone caller's commit costs as few
    turns of the loop as can be."""

    def __init__(self, connection: Connection) -> None:
        self.commits = 0
        self.on_fault: Callable[[StorageError | None], None] = lambda _: None
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._queue: list[_Submitted] = []
        self._callers: set[Hashable] = set()
        self._seen: dict[Hashable, float] = {}
        self._awaited: set[Hashable] = set()
        self._alone: Hashable = None
        """The only caller of the last batch: should it be the next one too, nobody is waited for, not even for a turn of the loop."""
        self._busy = False
        self._due = False
        self._gathering: asyncio.TimerHandle | None = None
        self._closing = False
        self._ended = asyncio.Event()
        self._since_checkpoint = 0

    async def submit(self, job: Job[T], caller: Hashable = None) -> T:
        """The job's result, once it is durable. `caller` names one who does such jobs again and again."""
        if self._closing:
            raise StorageFull(Text("the ledger is closed"))
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(_Submitted(job, future))
        if caller is not None:
            self._seen[caller] = self._loop.time()
            self._callers.add(caller)
            self._awaited.discard(caller)
        if self._gathering is not None:
            if not self._awaited:
                self._start()
        elif not self._busy and not self._due:
            if caller is not None and caller == self._alone:
                self._begin()
            else:  # whoever comes in the same moment shares the commit
                self._due = True
                self._loop.call_soon(self._begin)
        return await future

    async def close(self) -> None:
        """Ends after everything submitted so far."""
        self._closing = True
        self._go_on()
        await self._ended.wait()

    def _go_on(self) -> None:
        """The next batch, unless one is under way or everything is written."""
        if self._queue:
            self._begin()
        elif self._closing and not self._busy:
            self._ended.set()

    def _begin(self) -> None:
        self._due = False
        if self._busy or not self._queue:
            return
        if self._closing or not self._has_siblings():
            self._start()
        elif self._gathering is None:
            self._gathering = self._loop.call_later(DELAY, self._start)

    def _has_siblings(self) -> bool:
        """Whether callers of the last moments are not back yet, and enough of them to be worth waiting for."""
        since = self._loop.time() - WINDOW
        self._seen = {caller: at for caller, at in self._seen.items() if at >= since}
        self._awaited = set(self._seen) - self._callers
        return len(self._seen) >= SIBLINGS and bool(self._awaited)

    def _start(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        self._awaited.clear()
        self._alone = next(iter(self._callers)) if len(self._callers) == len(self._queue) == 1 else None
        batch, self._queue = self._queue, []
        self._callers.clear()
        self._busy = True
        self._connection.start(partial(_transact, [job for job, _ in batch]), partial(self._committed, batch))

    def _committed(
        self, batch: list[_Submitted], done: tuple[list[_Outcome], bool] | None, error: Exception | None
    ) -> None:
        self._busy = False
        if done is None:
            self._fail(batch, error or StorageFull(Text("the ledger is closed")))
        else:
            self._tell(batch, *done)
        if not self._busy:
            self._go_on()

    def _tell(self, batch: list[_Submitted], outcomes: list[_Outcome], wrote: bool) -> None:
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
            self._checkpoint(len(batch))

    def _fail(self, batch: list[_Submitted], error: Exception) -> None:
        if isinstance(error, StorageError):
            _log().error("ledger.write_failed", jobs=len(batch), cause=str(error))
            self.on_fault(error)
        for _, future in batch:
            if not future.cancelled():
                future.set_exception(error)

    def _checkpoint(self, jobs: int) -> None:
        self._since_checkpoint += jobs
        if self._since_checkpoint < JOBS_PER_CHECKPOINT:
            return
        self._since_checkpoint = 0
        self._busy = True
        self._connection.start(checkpoint, self._checkpointed)

    def _checkpointed(self, _: None, error: Exception | None) -> None:
        self._busy = False
        if isinstance(error, StorageError):
            _log().warning("ledger.checkpoint_failed", cause=str(error))
            self.on_fault(error)
        self._go_on()


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
