"""The ledger's disk: SQLite is real, on files in memory, and each access happens on the loop at a moment drawn from the seed.

A commit has three moments with room for others between them: handed over, durable, told. A disk may refuse what is written (read-only), refuse the
commit itself (full), or stand still. A process that is gone reads and writes nothing any more; a power cut
leaves what was durable (`durable`).
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from simulation.storage.durable import DurableFiles, the_vfs, unwatched, watched

from daemon.store.maintenance import renewal
from daemon.store.sqlite import connection as real
from daemon.store.sqlite import high_water
from daemon.store.sqlite.disk_failure import storage_error
from daemon.store.sqlite.file import STATEMENTS, Mode
from daemon.store.sqlite.lock import CommitMark, LedgerLock
from daemon.store.sqlite.migrations import migrations

MEMORY = Path("/dev/shm")  # noqa: S108  each history has a folder of its own in it


class Disk:
    """`pace`: seconds that an access takes at the most, usually; `alive` is asked of the process that is running."""

    def __init__(self, seed: int, pace: float, note: Callable[[str], None], folder: Path) -> None:
        self.draw = random.Random(f"disk {seed}")
        self.pace = pace
        self.note = note
        self.files = DurableFiles(folder, random.Random(f"power {seed}"))
        self.refuses_writes = False
        self.refuses_commits = False
        self.refuses_files = False
        """What is not SQLite's: the high-water file."""
        self.commits = 0
        self._moving = asyncio.Event()
        self._moving.set()

    @property
    def in_order(self) -> bool:
        return self._moving.is_set() and not (self.refuses_writes or self.refuses_commits or self.refuses_files)

    def ending(self, *, power_cut: bool) -> AbstractContextManager[None]:
        return self.files.ending(power_cut=power_cut)

    def stall(self) -> None:
        self._moving.clear()

    def heal(self) -> None:
        self.refuses_writes = self.refuses_commits = self.refuses_files = False
        self._moving.set()

    def moment(self) -> float:
        """How long until something on the disk has happened, seconds."""
        chance = self.draw.random()
        if chance < 0.4:
            return 0.0
        return self.pace * (self.draw.random() if chance < 0.95 else 20 * self.draw.random())

    async def wait(self) -> None:
        seconds = self.moment()
        if seconds:
            await asyncio.sleep(seconds)
        while not self._moving.is_set():
            await self._moving.wait()


class SimulatedConnection(sqlite3.Connection):
    """A connection to a disk that may not take the commit."""

    disk: Disk

    def __exit__(self, kind: object, error: object, trace: object) -> Literal[False]:
        if kind is None and self.disk.refuses_commits:
            self.rollback()
            raise _error(sqlite3.SQLITE_FULL, "database or disk is full")
        return super().__exit__(kind, error, trace)


class Access:
    """Stands for a connection with its thread (`store.sqlite.connection.Connection`)."""

    def __init__(self, disk: Disk, path: Path, pragmas: tuple[str, ...], *, writes: bool, process: Process) -> None:
        self._disk = disk
        self._writes = writes
        self._process = process
        process.connections.append(self)
        self.sqlite = opened(path, SimulatedConnection)
        self.sqlite.disk = disk
        real.configure(self.sqlite, pragmas)

    async def run(self, job: Callable[[sqlite3.Connection], Any]) -> Any:
        await self._disk.wait()
        self._process.must_live()
        try:
            result = self._do(job)
        except sqlite3.Error as error:
            raise (storage_error(error) or error) from error
        await self._disk.wait()
        self._process.must_live()
        return result

    def start(
        self, job: Callable[[sqlite3.Connection], Any], expected: Callable[[Any, Exception | None], None]
    ) -> None:
        async def work() -> None:
            try:
                result = await self.run(job)
            except Exception as error:  # noqa: BLE001  as the real one
                expected(None, error)
            else:
                expected(result, None)

        tasks = self._process.tasks
        task = asyncio.get_running_loop().create_task(work(), name="ledger")
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _do(self, job: Callable[[sqlite3.Connection], Any]) -> Any:
        if not self._writes:
            return job(self.sqlite)
        self._disk.commits += 1
        refuses = self._disk.refuses_writes
        if refuses:
            self.sqlite.execute("PRAGMA query_only = ON")
        try:
            return job(self.sqlite)
        finally:
            if refuses:
                self.sqlite.execute("PRAGMA query_only = OFF")

    async def close(self) -> None:
        self.sqlite.close()


class Process:
    """One life of the daemon, from its start to its stop or its death."""

    def __init__(self) -> None:
        self.alive = True
        self.connections: list[Access] = []
        self.snapshots: list[sqlite3.Connection] = []
        self.locks: list[LedgerLock] = []
        self.marks: list[CommitMark] = []
        self.tasks: set[asyncio.Task[None]] = set()
        """What its connections are doing."""

    def must_live(self) -> None:
        if not self.alive:
            raise asyncio.CancelledError

    def die(self) -> None:
        """Nothing of it reaches the disk any more."""
        self.alive = False
        for connection in (*(access.sqlite for access in self.connections), *self.snapshots):
            the_vfs().close_as_killed(connection)
        for lock in self.locks:
            lock.release()
        for mark in self.marks:
            mark.close()


def opened(path: Path, factory: type[sqlite3.Connection] = sqlite3.Connection) -> Any:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rwc",
        uri=True,
        timeout=0,  # everything is on one thread: waiting would be for ever
        isolation_level=None,
        cached_statements=STATEMENTS,
        factory=factory,
    )


async def _copy(ledger: Path, copy: Path) -> None:
    """As the real one, on this thread."""
    with contextlib.closing(opened(ledger)) as old, contextlib.closing(opened(copy)) as new:
        new.execute("PRAGMA synchronous = OFF")
        new.execute("PRAGMA journal_mode = OFF")
        old.backup(new)
        the_vfs().close_as_killed(old)


_read_once = cache(migrations)
"""They are files, and the same ones in every history."""


@contextmanager
def simulated(disk: Disk, process: Callable[[], Process], *, cuts_power: bool = False) -> Iterator[None]:
    """Every store that is opened meanwhile works on `disk`, in the process of that moment. `cuts_power`: what is synced is kept account of."""
    write_marks = high_water.write_marks

    async def writer(path: Path, *, max_pages: int | None = None) -> Access:
        assert max_pages is None
        return Access(disk, path, real._WRITER_PRAGMAS, writes=True, process=process())

    async def reader(path: Path, mode: Mode) -> Access:
        assert mode == "rw"
        return Access(disk, path, real._READER_PRAGMAS, writes=False, process=process())

    def snapshot(path: Path, mode: Mode) -> sqlite3.Connection:
        assert mode == "rw"
        connection: sqlite3.Connection = opened(path)
        real.configure(connection, real._READER_PRAGMAS)
        process().snapshots.append(connection)
        return connection

    def write(ledger: Path, marks: high_water.Marks) -> None:
        process().must_live()
        if disk.refuses_files:
            raise high_water.StorageFull("the simulated disk is full")
        write_marks(ledger, marks)

    def commit_mark(ledger: Path, name: str) -> CommitMark:
        process().marks.append(mark := CommitMark(ledger, name))
        return mark

    class Locks(LedgerLock):
        @classmethod
        def acquire(cls, ledger: Path, *, control: Path | None = None, is_command: bool = False) -> LedgerLock:
            process().locks.append(lock := LedgerLock.acquire(ledger, control=control, is_command=is_command))
            return lock

    with pytest.MonkeyPatch.context() as patch, watched(disk.files) if cuts_power else unwatched():
        for module in ("store", "maintenance.verify", "maintenance.backup"):
            patch.setattr(f"daemon.store.{module}.migrations", _read_once)
        patch.setattr("daemon.store.store.LedgerLock", Locks)
        patch.setattr("daemon.store.store.CommitMark", commit_mark)
        patch.setattr("daemon.store.store.connect_writer", writer)
        patch.setattr("daemon.store.store.connect_reader", reader)
        patch.setattr("daemon.store.store.connect_snapshot", snapshot)
        patch.setattr(high_water, "write_marks", write)
        patch.setattr(renewal, "_copy", _copy)
        patch.setattr(renewal, "now_millis", int)  # the old file that is put aside has one name in each history
        yield


@contextmanager
def folder() -> Iterator[Path]:
    """In memory where there is such a place; gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="mcfd-simulation-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _error(code: int, text: str) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE"
    return error
