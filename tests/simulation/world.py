"""The shop's world: the machine, the box with its disk and clock, and the daemon on it, which may end at any moment and begins again.

Whatever happens is noted with its time; two histories of one seed have the same notes (`fingerprint`).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import random
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from simulation.disk import Disk, Process
from simulation.script import Script
from simulation.virtual_loop import PROCESS, VirtualLoop
from support.memory_shop import MemoryShop

from bridge.link import Timers
from daemon.core.errors import StorageError
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import Limits
from simulator.line.faults import Plan
from simulator.line.session import Session
from simulator.machine.machine import Machine

T = TypeVar("T")

STOP_GRACE = 10.0
STOP_PATIENCE = 90.0
"""Seconds until systemd kills what does not stop."""
CALM = 5.0
"""Seconds without trouble after which the daemon has had its look at the machine."""


class Unreachable(Exception):
    """Nobody answers: the daemon is down, or died before it answered."""


class Life(MemoryShop):
    """One life of the daemon."""

    def __init__(self, world: World) -> None:
        super().__init__(
            world.ledger,
            on=world.session,
            timers=Timers(),
            limits=Limits(),
            box=BoxClock(world.box_millis, lambda: world.synchronised),
            retry=1.0,
            heartbeat=1.5,
        )
        self.process = Process()
        self.accepts = False
        """Whether tills reach it."""
        self._context = contextvars.copy_context()
        self._context.run(PROCESS.set, self.process)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(work, context=self._context)


class World:
    def __init__(self, script: Script, loop: VirtualLoop, folder: Path, *, show: bool = False) -> None:
        draw = random.Random(f"world {script.seed}")
        self.script = script
        self.loop = loop
        self.ledger = folder / "ledger"
        self.began = datetime(2026, 3, 4, *draw.choice(((9, 30, 0), (23, 59, 50), (12, 0, 0))), tzinfo=UTC)
        self.box_jump = self.machine_jump = 0.0
        self.synchronised = script.synchronised
        self.box_was_wrong = self.box_was_wrong_at_first = self.was_restored = self.was_reset = self.was_activated = (
            False
        )
        self.decided = 0
        """Decisions of the operator."""
        self.foreign = 0
        """Invoices of somebody else, that the machine counted as such."""
        self.is_unsure_of_foreign = False
        """Some were there before a new ledger met the machine: it begins with what it finds."""
        self.has_met = False
        self.disk = Disk(script.seed, script.pace, self.note)
        loop.delay = self.disk.moment
        machine = Machine(script.options, lambda: self.true_time() + timedelta(seconds=self.machine_jump))
        self.session = Session(machine, plan=Plan(script.faults, script.seed), think=script.think)
        self.life: Life | None = None
        self.starting: Process | None = None
        self.cause = ""
        """Why an operator may be asked."""
        self._calm_since = 0.0
        self.down_until = 0.0
        self.starts = 0
        self._changed = asyncio.Event()
        self._hash = hashlib.sha256()
        self._show = show

    # -- notes and clocks -------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        line = f"{self.loop.now:10.4f}  {text}"
        self._hash.update(line.encode())
        if self._show:
            print(line)  # noqa: T201  a history that is looked at

    @property
    def fingerprint(self) -> str:
        return self._hash.hexdigest()

    def true_time(self) -> datetime:
        return self.began + timedelta(seconds=self.loop.now)

    @property
    def is_another_day(self) -> bool:
        return self.true_time().date() != self.began.date()

    def true_millis(self) -> int:
        return int(self.true_time().timestamp() * 1000)

    def box_millis(self) -> int:
        return self.true_millis() + int(self.box_jump * 1000)

    # -- the daemon -------------------------------------------------------------------------------------------------------

    def process(self) -> Process:
        """Whose disk it is that is looked at now."""
        found = PROCESS.get()
        assert isinstance(found, Process), "a store was opened outside of any life of the daemon"
        return found

    async def keep_up(self) -> None:
        """systemd: what is down is started again."""
        while True:
            if self.life is None and self.loop.now >= self.down_until:
                await self._start()
                continue
            left = self.down_until - self.loop.now if self.life is None else None
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(None if left == float("inf") else left):
                    await self._changed.wait()

    async def started(self) -> Life:
        """A life of the daemon with its machine in service."""
        await self._start()
        life = self.serving()
        while not life.worker.connected:  # noqa: ASYNC110  it costs nothing here
            await asyncio.sleep(0.1)
        return life

    async def _start(self) -> None:
        life = self.life = Life(self)
        self.starts += 1
        self.note("start")
        try:
            await life.spawn(life.__aenter__())
        except StorageError as error:
            self.note(f"start refused: {error}")
            await self._end(life)
            self.down_until = self.loop.now + 1.0
        except asyncio.CancelledError:
            if life.process.alive:
                raise
        else:
            life.accepts = True

    def wake(self) -> None:
        """`down_until` was changed."""
        self._changed.set()

    async def _end(self, life: Life) -> None:
        life.accepts = False
        life.process.die()
        for port in life.ports:
            port.close()
        await self.loop.end(life.process)
        if self.life is life:
            self.life = None
        self._changed.set()

    async def kill(self, seconds: float) -> None:
        """SIGKILL, or a power cut of the box."""
        self.down_until = max(self.down_until, self.loop.now + seconds)
        if self.life is not None:
            self.note("killed")
            await self._end(self.life)

    async def stop(self, seconds: float) -> None:
        """SIGTERM, as `app.serve` and `app.runtime` do it."""
        self.down_until = max(self.down_until, self.loop.now + seconds)
        life = self.life
        if life is None or not life.accepts:
            return
        life.accepts = False
        self.note("stopping")
        with contextlib.suppress(TimeoutError, asyncio.CancelledError, StorageError):
            async with asyncio.timeout(STOP_PATIENCE):
                await life.spawn(life.worker.close(STOP_GRACE))
                await life.spawn(life.__aexit__(None, None, None))
        await self._end(life)
        self.note("stopped")

    async def ask(self, work: Coroutine[Any, Any, T], life: Life) -> T:
        """An answer of that life; Unreachable when it ends before."""
        task = life.spawn(work)
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise Unreachable from None

    def serving(self) -> Life:
        if self.life is None or not self.life.accepts:
            raise Unreachable
        return self.life

    def pump(self) -> None:
        """After something was done to the machine by hand."""
        port = self.life.ports[-1] if self.life is not None and self.life.ports else None
        if port is not None and port._usable:
            port.pump()
        else:
            self.session.poll(self.loop.now)

    def blame(self, cause: str) -> None:
        """From now on an operator may be asked, until the daemon has had time to look."""
        self.cause = cause
        self._calm_since = self.loop.now

    async def watch_for_calm(self) -> None:
        """Once nothing has been wrong for a while, the daemon knows all that happened at the machine: no operator is to be asked later."""
        while True:
            await asyncio.sleep(0.5)
            if not self._is_calm():
                self._calm_since = self.loop.now
            elif self.loop.now - self._calm_since > CALM:
                self.cause = ""

    def _is_calm(self) -> bool:
        if self.life is None or not self.life.accepts or not self.disk.in_order:
            return False
        worker = self.life.worker
        self.has_met = self.has_met or worker.attempts.met_machine
        return worker.connected and not worker.waiting and not worker.attention
