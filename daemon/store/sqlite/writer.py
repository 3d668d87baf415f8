"""The one writer: callers that wait at the same moment share one commit, and get their result only after it.

A job is a function on the connection. Each runs in a savepoint of its own, so that its exception undoes and fails only
itself; a commit that fails, fails every job of its batch. A job that was submitted runs, whether or not its caller is
still there.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from common.files import real_path, sync_path
from common.language import Text
from common.language.system import reason
from daemon.core.errors import StorageError, StorageFull
from daemon.store.sqlite.connection import Job, SqliteConnection
from daemon.store.sqlite.disk_failure import file_failed, storage_error
from daemon.store.sqlite.file import BUSY_SECONDS

T = TypeVar("T")

JOBS_PER_CHECKPOINT = 200
"""About 1 000 pages of WAL. Brought into the file between two batches, when every caller has its result."""


class _Submitted(NamedTuple):
    job: Job[Any]
    future: asyncio.Future[Any]


class _Outcome(NamedTuple):
    result: Any
    error: Exception | None


class Marking(NamedTuple):
    """`count` numbers a commit within its transaction; `report` stores the number once durable, before any answer."""

    count: Callable[[sqlite3.Connection], int]
    report: Callable[[int], None]


class Writer:
    """The writer: jobs that arrive together share one commit. `commits` counts commits that wrote something, each one
    fsync; `on_fault` gets the result of each.

    It has no task: a batch starts when the previous one ends, or with the first job, so a single commit needs few turns
    of the loop."""

    def __init__(self, connection: SqliteConnection, marking: Marking | None = None) -> None:
        self.commits = 0
        self._marking = marking
        self.on_fault: Callable[[StorageError | None], None] = lambda _: None
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._queue: list[_Submitted] = []
        self._busy = False
        self._due = False
        self._closing = False
        self._ended = asyncio.Event()
        self._since_checkpoint = 0

    @property
    def is_closing(self) -> bool:
        """Nothing new is taken."""
        return self._closing

    def submit(self, job: Job[T]) -> asyncio.Future[T]:
        """The job's result, once it is durable; StorageFull if nothing new is taken."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closing:
            future.set_exception(StorageFull(Text("the ledger is closed")))
            return future
        self._queue.append(_Submitted(job, future))
        if not self._busy and not self._due:
            self._due = True
            self._loop.call_soon(self._begin)  # a job that comes in the same moment shares the commit
        return future

    async def close(self) -> None:
        """Ends after everything submitted so far."""
        self._closing = True
        self._write_next()
        await self._ended.wait()

    def _write_next(self) -> None:
        """The next batch, unless one is under way or everything is written."""
        if self._queue:
            self._begin()
        elif self._closing and not self._busy:
            self._ended.set()

    def _begin(self) -> None:
        self._due = False
        if self._busy or not self._queue:
            return
        batch, self._queue = self._queue, []
        self._busy = True
        self._connection.start(
            partial(_transact, [submitted.job for submitted in batch], marking=self._marking),
            partial(self._committed, batch),
        )

    def _committed(
        self, batch: list[_Submitted], done: tuple[list[_Outcome], bool] | None, error: Exception | None
    ) -> None:
        self._busy = False
        if done is None:
            self._fail(batch, error or StorageFull(Text("the ledger is closed")))
        else:
            outcomes, wrote = done
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if future.cancelled():
                    continue  # the caller went away; its write is done all the same
                if outcome.error is not None:
                    future.set_exception(outcome.error)
                else:
                    future.set_result(outcome.result)
            if wrote:
                self.commits += 1
                self.on_fault(None)
                self._checkpoint(len(batch))
        self._write_next()

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
        if error is not None:
            _log().warning("ledger.checkpoint_failed", cause=str(error))
        if isinstance(error, StorageError):
            self.on_fault(error)
        self._write_next()


def checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def checkpoint_all(connection: sqlite3.Connection, ledger: Path) -> None:
    """Checkpoints the whole write-ahead log and empties it durably: the disk may lack its end, and its beginning alone
    would corrupt the file. Does not wait for readers of an older view."""
    real = real_path(ledger)
    log = real.with_name(f"{real.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return
    connection.execute("PRAGMA busy_timeout = 0").fetchall()
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000)}").fetchall()
    if log.exists():
        try:
            sync_path(log)
        except OSError as error:
            file_failed(error)
            raise StorageFull(Text("{path} cannot be written ({why})", path=log, why=reason(error))) from error


def _transact(
    jobs: list[Job[Any]], connection: sqlite3.Connection, marking: Marking | None = None
) -> tuple[list[_Outcome], bool]:
    """One transaction; what came of each job, and whether anything was written."""
    before, number = connection.total_changes, 0
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if len(jobs) == 1:
            outcomes = [_Outcome(jobs[0](connection), None)]
        else:
            outcomes = [_attempt(job, connection) for job in jobs]
        wrote = connection.total_changes != before
        if wrote and marking is not None:
            number = marking.count(connection)
    if wrote and marking is not None:
        marking.report(number)
    return outcomes, wrote


def _attempt(job: Job[Any], connection: sqlite3.Connection) -> _Outcome:
    connection.execute("SAVEPOINT job")
    try:
        outcome = _Outcome(job(connection), None)
    except Exception as error:
        if isinstance(error, sqlite3.Error) and storage_error(error) is not None:
            raise  # the disk, not the job: nothing of this transaction can stay
        connection.execute("ROLLBACK TO job")
        outcome = _Outcome(None, error)
    connection.execute("RELEASE job")
    return outcome


def _log() -> Any:
    import structlog  # noqa: PLC0415  a command that only reads has nothing to log, and starts without it

    return structlog.get_logger(__name__)
