"""One history: a script is played in the world, everything is healed, waiting tills are served, and the oracle looks."""

import asyncio
import functools
import random
import secrets
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
import structlog
from simulation import exemptions as exempt
from simulation.box import Box, Unreachable
from simulation.drawn.copies import calendar_reports
from simulation.drawn.events import Event, Script
from simulation.drawn.outside import TillsOutside
from simulation.drawn.script import drawn
from simulation.drawn.tills import Tills
from simulation.drawn.troubles import Troubles
from simulation.lane import with_lane
from simulation.oracle import (
    NOTED_WITHIN,
    Expectations,
    credits_fit,
    nothing_late,
    nothing_lost,
    nothing_twice,
    outages_are_right,
    sound,
)
from simulation.storage.disk import Disk, Process, folder, simulated
from simulation.virtual_loop import VirtualLoop
from simulation.world import World

from bridge.frame import MIN_SEQ
from daemon.core.clock import zone
from daemon.core.errors import MachineError, StorageError
from daemon.core.invoice.invoice import CREDITS
from daemon.core.invoice.number import PATTERN
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Closure
from daemon.store.store import Store
from daemon.store.tables.book import attempts, outages
from daemon.store.tables.book.books import book_state, former_books
from daemon.store.tables.book.closures import closures_between

T = TypeVar("T")

SERVED_WITHIN = 500.0
"""Seconds after the last trouble: a credit note alone may take two minutes and a half on a line that was cut under it."""
SERVED_OUTSIDE_WITHIN = 1200.0
"""The same for tills outside: what a relay had that was killed comes again after five minutes."""
LONGEST = 5000.0
SALES = ("sell", "close", "defer", "sell_outside")
NEAR = (8, 13)
"""On a day of late answers a link begins so many SEQ before that of the answer that is still on its way: so far it is to 38h of the first invoice."""


class Outcome(NamedTuple):
    """`failure` is empty when everything held."""

    seed: int
    fingerprint: str
    certified: int
    starts: int
    commits: int
    happened: tuple[str, ...]
    """What went wrong, by name; `faults of the line` and how the machine differs are in the script."""
    failure: str


class History:
    def __init__(self, script: Script, loop: VirtualLoop, path: Path, *, show: bool = False) -> None:
        self.script = script
        self.box = Box(script, loop, path, show=show)
        worlds = [World(self.box, part, f"{script.seed} {at}") for at, part in enumerate(script.machines)]
        self.box.machines = worlds
        self.expected = [Expectations(world) for world in worlds]
        if script.has_spare:
            first, spare = self.expected
            first.other, spare.other = spare.world, first.world
            spare.lost, spare.wrong, spare.unnumbered = (
                first.lost,
                first.wrong,
                first.unnumbered,
            )  # a number is one at both
        self.tills = [Tills(expected) for expected in self.expected]
        self.outside = [TillsOutside(expected) for expected in self.expected]
        self.troubles = [Troubles(expected, self.expected) for expected in self.expected]

    @property
    def late_seq(self) -> int:
        """Of the last answer that some machine has still to give."""
        later = [late for expected in self.expected for late in expected.world.session._later]
        return max(later)[2][2] if later else MIN_SEQ

    async def play(self) -> None:
        box = self.box
        beside = [asyncio.create_task(box.keep_up())]
        if box.lane is not None:
            box.lane.begin()
        for troubles in self.troubles:
            beside += [asyncio.create_task(troubles.world.watch_for_calm()), asyncio.create_task(troubles.operate())]
        try:
            async with asyncio.timeout(LONGEST):
                await _unless_one_fails(self._play(), beside)
                records = [
                    record
                    for expected in self.expected
                    for record in await _unless_one_fails(self._look(expected), beside)
                ]
        except TimeoutError:
            raise AssertionError("a history without an end") from None
        finally:
            if box.life is not None:
                await box.kill(0.0)
            if box.lane is not None:
                await box.lane.end()
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)
        for expected in self.expected:
            nothing_twice(expected)
            nothing_late(expected)
        if not any(exempt.sales_are_named_alike(expected.world) for expected in self.expected):
            credits_fit(records)
        sound(box, self.expected)
        self.expected[0].note_calendar(calendar_reports(box.ledger))

    async def _play(self) -> None:
        tasks = [asyncio.create_task(self._happen(event)) for event in self.script.events]
        ends = max((event.at for event in self.script.events), default=0.0)
        try:
            await asyncio.sleep(ends + 0.001)
            for troubles in self.troubles:
                await troubles.ended()
            if self.box.layout != "pair":
                await self.troubles[0].reconfigure("pair")
            if self.script.gives_numbers:
                await self._renumber(PATTERN)
            self.box.note("everything is healed")
            if self.box.lane is not None:
                self.box.lane.server.heal()
            for tills in self.tills:
                tills.world.session.plan.clear()
                tills.over = True
            try:
                async with asyncio.timeout(self._served_within):
                    await asyncio.gather(*tasks)
                    await self._end_day()
            except TimeoutError:
                raise AssertionError(
                    f"somebody waits for an answer {self._served_within:g} s after the last trouble"
                ) from None
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _end_day(self) -> None:
        """Of a shop in which all waiting tills were served."""
        await self._nothing_is_under_way()
        for tills in self.tills:
            await tills.no_sale_waits()
            for pattern in self._patterns:
                await self._renumber(pattern)
                await tills.fill_series()
        for tills in self.tills:
            await tills.close(key=f"the last Z of {tills.world.nim}", twin=False, pause=0.1, own=True)
        if any(event.what == "activate_for" for event in self.script.events):
            for tills in self.tills:
                await self._former_books_are_decided(tills.world)
            await self.box.stop(0.0)  # what was decided in a former book is closed at the next start
        # An outage that is over now is so in the register at the next look; a machine that was off may be back only now (seed 9731178).
        back = max((event.at + event.how.get("seconds", 0.0) for event in self.script.events), default=0.0)
        await asyncio.sleep(max(back - self.box.loop.now, 0.0) + NOTED_WITHIN)

    @property
    def _patterns(self) -> list[str]:
        """Of the numbers that the box has given."""
        others = {str(event.how["pattern"]) for event in self.script.events if event.what == "renumber"}
        return [*sorted(others - {"", PATTERN}), PATTERN] if self.script.gives_numbers else []

    async def _renumber(self, pattern: str) -> None:
        series = self.box.defaults.series
        if series is None or series.pattern != pattern:
            await self.troubles[0].renumber(pattern)

    @property
    def _served_within(self) -> float:
        return SERVED_WITHIN if self.box.lane is None else SERVED_OUTSIDE_WITHIN

    async def _nothing_is_under_way(self) -> None:
        """Calls that come late have come, and no sale waits for the box."""
        lane = self.box.lane
        while lane is not None and (lane.server.on_their_way or lane.server.waiting):  # noqa: ASYNC110  it costs nothing here
            await asyncio.sleep(1.0)

    async def _former_books_are_decided(self, world: World) -> None:
        """A person decides there too, at some time (seed 9806364)."""
        while True:
            with suppress(Unreachable, MachineError, StorageError):
                seat = world.serving()
                books = seat.store.ledger.peek(former_books, seat.worker.book)
                if not any(seat.store.ledger.peek(book_state, each).attention for each in books):
                    return
            await asyncio.sleep(0.5)

    async def _happen(self, event: Event) -> None:
        await asyncio.sleep(event.at)
        if event.what == "sell_outside":
            await self.outside[event.machine].sell_outside(**event.how)
        elif event.what in SALES:
            await getattr(self.tills[event.machine], event.what)(**event.how)
        else:
            self.box.note(str(event))
            await getattr(self.troubles[event.machine], event.what)(**event.how)

    async def _look(self, expected: Expectations) -> list[Record]:
        world = expected.world
        while True:
            with suppress(Unreachable, MachineError, StorageError):
                seat = world.serving()
                assert not seat.worker.attention, f"attention at the end: {seat.worker.attention}"
                ledger, book = seat.store.ledger, seat.worker.book
                records, closures = list[Record](), list[Closure]()
                for each in (book, *ledger.peek(former_books, book)):
                    reading = ledger.read(closures_between, each, start=0, end=1 << 60)
                    closures += await world.ask(reading, seat)
                    records += await world.ask(seat.certified(each), seat)
                    assert not ledger.peek(attempts.unfinished, each)
                nothing_lost(expected, records, closures)
                if self.box.defers:
                    register = ledger.peek(outages.outages_between, book, start=0, end=1 << 60, after=0, limit=1000)
                    # The register is a taxpayer's: while one has an outage the machine may certify for another.
                    outages_are_right(expected, register, await world.ask(seat.certified(book), seat))
                return [
                    record
                    for record in records
                    if record.type not in CREDITS
                    or not expected.is_abandoned(expected.name_of(record.number, record.total_ttc))
                ]
            await asyncio.sleep(0.5)


async def _unless_one_fails(work: Coroutine[Any, Any, T], beside: list[asyncio.Task[None]]) -> T:
    """`work` to its end; what breaks beside it is told at once."""
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait([task, *beside], return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
    for ended in done - {task}:
        ended.result()
    return task.result()


def play(script: Script, *, show: bool = False) -> Outcome:
    """Plays it to its end; what did not hold is in the outcome."""
    loop = VirtualLoop(script.seed)
    failure = ""
    late = (lambda: history.late_seq) if script.is_late else None
    with folder() as path, seeded(script.seed, late), logging_to(lambda: history.box):
        (path / "ledger").write_bytes(new_ledger())
        history = History(script, loop, path, show=show)
        box = history.box
        box.new = new_ledger()
        box.disk.files.settle()
        with simulated(box.disk, box.process, cuts_power=script.cuts_power), with_lane(script, box.millis):
            try:
                loop.run_until_complete(history.play())
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"
                if show:
                    raise
            finally:
                loop.close_coroutines()
                loop.close()
    sessions = [expected.world.session for expected in history.expected]
    happened = [event.what for event in script.events if event.what not in SALES]
    happened += [f"line: {kind}" for session in sessions for kind, n in session.plan.struck.items() for _ in range(n)]
    happened += ["several machines"] * (len(sessions) > 1) + ["tills outside"] * (script.lane is not None)
    certified = sum(len(session.machine.fiscal.log) for session in sessions)
    return Outcome(script.seed, box.fingerprint, certified, box.starts, box.disk.commits, tuple(happened), failure)


def played(seed: int) -> Outcome:
    return play(drawn(seed))


@contextmanager
def seeded(seed: int, late: Callable[[], int] | None = None) -> Iterator[None]:
    """What the daemon draws itself: names of closures, the first SEQ of a link, where `late` is given a little before that."""
    draw = random.Random(f"daemon {seed}")

    def below(most: int) -> int:
        return draw.randrange(most) if late is None else (late() - MIN_SEQ - draw.randrange(*NEAR)) % most

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=draw.getrandbits(128), version=4))
        patch.setattr(secrets, "randbelow", below)
        yield


@contextmanager
def logging_to(world: Any) -> Iterator[None]:
    """The daemon's log is part of the notes."""

    def note(_logger: Any, _method: str, event: dict[str, Any]) -> Any:
        world().note(" ".join(map(str, event.values())))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[note], wrapper_class=structlog.make_filtering_bound_logger(0), cache_logger_on_first_use=False
    )
    try:
        yield
    finally:
        structlog.configure(**before)


@functools.cache
def new_ledger() -> bytes:
    """An empty ledger of the newest schema, made once."""

    async def make(path: Path) -> None:
        store = await Store.open(path, timezone=zone("UTC"), reserve_bytes=0)
        await store.close()

    loop = VirtualLoop(0)
    with folder() as path, seeded(0):
        process = Process()
        with simulated(Disk(0, 0.0, lambda _: None, path), lambda: process):
            loop.run_until_complete(make(path / "ledger"))
        loop.close()
        process.die()
        return (path / "ledger").read_bytes()
