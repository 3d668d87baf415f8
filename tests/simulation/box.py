"""The box: its disk and clock, and the daemon on it, which may end at any moment and begins again.

Whatever happens is noted with its time; two histories of one seed have the same notes (`fingerprint`).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import random
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from simulation.drawn.events import Script
from simulation.lane import Lane
from simulation.storage.disk import Disk, Process
from simulation.virtual_loop import PROCESS, VirtualLoop
from support.memory_shop import DEFAULTS, MemoryShop

from bridge.link import Timers
from daemon.app.outward.calls import Calls
from daemon.app.runtime import end_without_pair
from daemon.core.clock import zone
from daemon.core.errors import StorageError
from daemon.core.invoice.number import NumberScope, Series
from daemon.core.ledger.book import BookState
from daemon.store.sqlite.disk_failure import ending_on_failure
from daemon.store.store import Store
from daemon.store.tables.book.books import book_state
from daemon.usecases.deferred.certify_waiting import SalesThatWait
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import Limits
from daemon.usecases.worker.machine_workers import MachineWorkers
from simulator.line.session import LineSession

T = TypeVar("T")

SYNCS_SOON = 3.0
"""Seconds in which a daemon that has something to do writes something."""
STOP_GRACE = 10.0
LAYOUTS = {"pair": (0, 1), "swapped": (1, 0), "first alone": (0,), "spare alone": (1,)}
"""Which machines the configuration has, a spare behind its machine."""
PAIRS = ("pair", "swapped")
OUTAGE_AFTER = 10.0
"""Seconds without a machine after which that is in the register of outages."""
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
STOP_PATIENCE = 90.0
"""Seconds until systemd kills what does not stop."""


class Unreachable(Exception):
    """No answer: the daemon is down, or died before it answered."""


class AtTheBox(Protocol):
    """A machine as the box sees it: its configured name, and its end of the line."""

    nim: str
    session: LineSession
    ends: list[float]
    """When lives of the daemon ended."""


class Seat(MemoryShop):
    """One machine in one life of the daemon."""

    def __init__(self, life: Life, machine: AtTheBox) -> None:
        self.life = life
        super().__init__(
            life.box.ledger,
            on=machine.session,
            nim=machine.nim,
            timers=Timers(),
            limits=Limits(outage=OUTAGE_AFTER),
            keeps_register=life.box.defers,
            defaults=life.box.defaults,
            box=life.box.clock,
            retry=1.0,
            heartbeat=1.5,
        )
        self._waiting: asyncio.Task[None] | None = None

    async def begin(self, store: Store) -> None:
        await super().begin(store)
        self.worker.defers = self.life.box.takes_on
        if self.life.box.defers:
            self._waiting = asyncio.get_running_loop().create_task(SalesThatWait(self.worker).run())

    async def end(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            await asyncio.wait([self._waiting])
        await super().end()


class Life:
    """One life of the daemon."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.process = Process()
        self.seats: dict[str, Seat] = {}
        self.boot = f"{box.starts + 1:08x}"
        self.calls: Calls | None = None
        """Where there is a relay."""
        self.accepts = False
        """Whether tills reach it."""
        self._context = contextvars.copy_context()
        self._context.run(PROCESS.set, self.process)

    async def begin(self) -> None:
        self.store = await Store.open(self.box.ledger, timezone=zone("UTC"), reserve_bytes=0)
        machines, is_pair = self.box.machines, self.box.has_spare and self.box.layout in PAIRS
        if self.box.has_spare:
            machines = [machines[at] for at in LAYOUTS[self.box.layout]]
            names = [machine.nim for machine in machines]
            await self.store.ledger.open_pairs([(names[0], names[1])] if is_pair else [], names)
        for machine in machines:
            seat = Seat(self, machine)
            await seat.begin(self.store)
            self.seats[machine.nim] = seat
        self.workers = MachineWorkers([seat.worker for seat in self.seats.values()])
        if is_pair:
            first, spare = self.workers.all()
            spare.join(first)
        if self.box.was_reconfigured:
            await end_without_pair(self.store, self.workers.all())
        if self.box.lane is not None:
            self.calls = await self.box.lane.open(self)

    def front(self, nim: str) -> Seat:
        """That of the machine whose path the tills of a machine use now: where that is its spare, or away, they were set up for the other one."""
        seat = self.seats.get(nim) or next(iter(self.seats.values()))
        first = seat.worker.first
        return seat if first is None else self.seats[first.configured_nim]

    async def stop(self) -> None:
        """As `app.serve` and `app.runtime` do it."""
        await asyncio.gather(*(seat.worker.close(STOP_GRACE) for seat in self.seats.values()))
        if self.calls is not None:
            await self.calls.stop()
        await asyncio.gather(*(seat.end() for seat in self.seats.values()))
        await self.store.close()

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(work, context=self._context)

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """An answer of this life; Unreachable when it ends before."""
        task = self.spawn(work)
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise Unreachable from None


async def state_of(seat: Seat) -> BookState:
    """In a task of its own, which ends with this life (`ask`)."""
    return seat.store.ledger.peek(book_state, seat.worker.book)


class Box:
    """`machines` are there before the first start."""

    def __init__(self, script: Script, loop: VirtualLoop, folder: Path, *, show: bool = False) -> None:
        draw = random.Random(f"world {script.seed}")
        self.loop = loop
        self.folder = folder
        self.ledger = folder / "ledger"
        self.machines: Sequence[AtTheBox] = ()
        self.new = b""
        """An empty ledger."""
        self.began = datetime(2026, 3, 4, *draw.choice(((9, 30, 0), (23, 59, 50), (12, 0, 0))), tzinfo=UTC)
        self.defaults = DEFAULTS
        if script.is_new_year:
            self.began = NEW_YEAR - timedelta(seconds=draw.uniform(1.0, 20.0))
        if script.gives_numbers:
            numbers = NumberScope(UTC) if script.is_new_year else NumberScope()
            self.defaults = msgspec.structs.replace(DEFAULTS, series=Series(), numbers=numbers)
        self._looked_at, self._true_time = 0.0, self.began
        self.jump = 0.0
        """Seconds by which its clock is wrong."""
        self.synchronised = script.synchronised
        self.takes_on = any(event.how.get("else_later") for event in script.events)
        """Whether sales are certified later where the machine is out of order, without being asked."""
        self.defers = self.takes_on or any(event.what == "defer" or event.how.get("later") for event in script.events)
        """Whether sales are certified later."""
        self.has_spare = script.has_spare
        """The second machine is the spare of the first, as long as the configuration says so (`LAYOUTS`)."""
        self.layout = "pair"
        self.was_reconfigured = False
        self.clock = BoxClock(self.millis, lambda: self.synchronised)
        self.disk = Disk(script.seed, script.pace, self.note, folder)
        loop.delay = self.disk.moment
        self.life: Life | None = None
        self.down_until = 0.0
        self.starts = 0
        self.lane = None if script.lane is None else Lane(self, script)
        self._changed = asyncio.Event()
        self._hash = hashlib.sha256()
        self._place = f"{folder}/"
        """Another one each time."""
        self._show = show

    # -- notes and clocks -------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        line = f"{self.loop.now:10.4f}  {text.replace(self._place, '')}"
        self._hash.update(line.encode())
        if self._show:
            print(line)  # noqa: T201  a history that is looked at

    @property
    def fingerprint(self) -> str:
        return self._hash.hexdigest()

    def true_time(self) -> datetime:
        now = self.loop.now
        if now != self._looked_at:
            self._looked_at, self._true_time = now, self.began + timedelta(seconds=now)
        return self._true_time

    @property
    def is_another_day(self) -> bool:
        return self.true_time().date() != self.began.date()

    def true_seconds(self) -> float:
        return self.true_time().timestamp()

    def true_millis(self) -> int:
        return int(self.true_time().timestamp() * 1000)

    def millis(self) -> int:
        return self.true_millis() + int(self.jump * 1000)

    def renumber(self, pattern: str) -> None:
        """From the next start on the box gives numbers of that pattern; without one tills have to send them."""
        self.defaults = msgspec.structs.replace(self.defaults, series=Series(pattern) if pattern else None)

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

    async def started(self) -> None:
        """Begins a life of the daemon, with all its machines in service."""
        await self._start()
        while not all(seat.worker.connected for seat in self.serving().seats.values()):  # noqa: ASYNC110  it costs nothing here
            await asyncio.sleep(0.1)

    async def _start(self) -> None:
        life = self.life = Life(self)
        self.starts += 1
        self.note("start")
        try:
            await life.spawn(life.begin())
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

    async def _end(self, life: Life, *, power_cut: bool = False) -> None:
        life.accepts = False
        for machine in self.machines:
            machine.ends.append(self.loop.now)
        with self.disk.ending(power_cut=power_cut):
            life.process.die()
        if self.lane is not None:
            self.lane.server.ended(life.process)
        for seat in life.seats.values():
            for port in seat.ports:
                port.close()
        await self.loop.end(life.process)
        if self.life is life:
            self.life = None
        self._changed.set()

    async def kill(self, seconds: float, *, power_cut: bool = False) -> None:
        """SIGKILL, or a power cut of the box, which loses what was written and never synced."""
        self.down_until = max(self.down_until, self.loop.now + seconds)
        if self.life is not None:
            self.note("power cut" if power_cut else "killed")
            await self._end(self.life, power_cut=power_cut)

    async def fail_disk(self, what: str) -> None:
        """Until the daemon's next sync or write has failed, if one comes soon, and the daemon has ended for it."""
        life = self.life
        if life is None:
            return
        failed = asyncio.Event()

        def end(cause: str) -> None:
            self.note(f"the daemon ends: {cause}")
            self._strike(self.life or life)  # perhaps the next one already
            raise asyncio.CancelledError

        self.disk.files.fail_next(what, failed.set)
        with ending_on_failure(self.ledger, end), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SYNCS_SOON):
                await failed.wait()
        self.disk.files.fail_nothing()
        await self.kill(0.0)
        while self.life in (None, life):  # noqa: ASYNC110  it costs nothing here
            await asyncio.sleep(0.001)

    def _strike(self, life: Life) -> None:
        """Nothing of it reaches the disk, the machines or a till from here on."""
        life.accepts = life.process.alive = False
        for seat in life.seats.values():
            for port in seat.ports:
                port.close()

    async def cut_at(self, sync: int) -> None:
        """Until the power goes in the middle of what the daemon writes: before its so many-th sync from now, if that comes soon."""
        life = self.life
        if life is None or not sync:
            return
        gone = asyncio.Event()

        def strike() -> None:
            self._strike(life)
            gone.set()

        self.disk.files.cut_at(sync, strike)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SYNCS_SOON):
                await gone.wait()

    async def stop(self, seconds: float) -> None:
        """SIGTERM."""
        self.down_until = max(self.down_until, self.loop.now + seconds)
        life = self.life
        if life is None or not life.accepts:
            return
        life.accepts = False
        self.note("stopping")
        with contextlib.suppress(TimeoutError, asyncio.CancelledError, StorageError):
            async with asyncio.timeout(STOP_PATIENCE):
                await life.spawn(life.stop())
        await self._end(life)
        self.note("stopped")

    def serving(self) -> Life:
        if self.life is None or not self.life.accepts:
            raise Unreachable
        return self.life
