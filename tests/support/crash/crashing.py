"""The real daemon, killed where a test says. No hook for this is in the daemon: what the tests need is put around it here, in the
child of the nursery that becomes it.

**crash**: while that file exists, it holds `{"commit":N,"when":"before"|"after"}`: SIGKILL at the N-th commit that writes something from
when the daemon first saw the file, with everything written and not committed, or committed and not answered. The file is
removed first, so that the next start lives. With `"pid":P` another process dies there. `{"sync":N}`: the N-th sync of a file or folder from then on fails, once, with an error of
the disk.

**clock**: unless it is null, the box's clock is wrong by so many seconds, or by those in the file `PATH.clock` once there is one.
"""

import errno
import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from support import hurried
from support.nursery import First
from support.slow_disk import CountingDisk

DAY = 0.5


def armed(crash: Path, *, clock: float | None = None, hurry: Mapping[str, Any] | None = None) -> First:
    """`hurry`: as `support.hurried.arm` takes it."""
    return (__name__, "arm", {"crash": str(crash), "clock": clock, "hurry": hurry})


def arm(crash: str, clock: float | None, hurry: Mapping[str, Any] | None) -> None:
    arm_commits(Path(crash))
    FailingDisk(Path(crash)).install()
    if hurry is not None:
        hurried.arm(**hurry)
    if clock is not None:
        shift_clock(clock, Path(f"{crash}.clock"))


class FailingDisk(CountingDisk):
    """Of SQLite's syncs and of Python's own."""

    def __init__(self, orders: Path) -> None:
        super().__init__(orders.with_name("syncs"), 0)
        self._orders = orders
        self._count = 0
        self._turn = threading.Lock()

    def install(self) -> None:
        super().install()
        for name in ("fsync", "fdatasync"):
            setattr(os, name, partial(self._sync, getattr(os, name)))

    def _sync(self, sync: Callable[[int], None], descriptor: int) -> None:
        if self.syncing():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    def syncing(self) -> int:
        with self._turn:
            try:
                order = json.loads(self._orders.read_text())
            except FileNotFoundError:
                self._count = 0
                return 0
            self._count += 1
            if self._count != order.get("sync"):
                return 0
            self._orders.unlink()
            return sqlite3.SQLITE_IOERR_FSYNC


def arm_commits(orders: Path) -> None:
    """Around the writer's transactions."""
    from daemon.store.sqlite import writer  # noqa: PLC0415

    real = writer._transact
    count = 0

    def strike(when: str) -> None:
        nonlocal count
        try:
            order = json.loads(orders.read_text())
        except FileNotFoundError:
            count = 0
            return
        count += when == "before"
        if (count, when) == (order.get("commit"), order.get("when")):
            orders.unlink()
            os.kill(order.get("pid", os.getpid()), signal.SIGKILL)

    def transact(jobs: list[Any], connection: sqlite3.Connection, **more: Any) -> tuple[list[Any], bool]:
        begun = connection.total_changes

        def last(connection: sqlite3.Connection) -> None:
            if connection.total_changes != begun:
                strike("before")

        outcomes, wrote = real([*jobs, last], connection, **more)
        if wrote:
            strike("after")
        return outcomes[:-1], wrote

    writer._transact = transact


def shift_clock(seconds: float, orders: Path) -> None:
    """`time.time_ns` as the daemon sees it, without a time server; the monotonic clock stays what it is. What is done once a day is done
    every `DAY` seconds."""
    from daemon.app.upkeep import housekeeping  # noqa: PLC0415

    housekeeping.run_housekeeping.__defaults__ = (DAY, DAY)

    async def no_client() -> bool:
        return False

    housekeeping.is_synchronised = no_client
    real = time.time_ns

    def time_ns() -> int:
        shift = seconds
        with suppress(FileNotFoundError):
            shift = float(orders.read_text())
        return real() + int(shift * 1e9)

    time.time_ns = time_ns
