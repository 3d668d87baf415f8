"""Desks, lines and the ledger of every configured machine, put together and taken apart."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from bridge.link import Counters, Port, Timers
from bridge.port import open_port
from daemon.app.bus import Bus
from daemon.app.sandbox import sandbox_port
from daemon.core.certification import Mode
from daemon.core.clock import zone
from daemon.core.intake import Defaults
from daemon.machines.line import LineSettings, keep_line
from daemon.settings import Machine, Settings
from daemon.store.store import Store
from daemon.usecases.aggregate import tick
from daemon.usecases.desk import Desk, DeskEvent, Limits
from daemon.usecases.keep import DeskKeeper

PAGES_PER_MB = 256


@dataclass
class House:
    """What runs: the desks with their lines, and who is told of what happens at them. `listeners` are told at once, those of
    the bus once an event is in the ledger."""

    settings: Settings
    store: Store
    desks: list[Desk] = field(default_factory=list)
    lines: list[asyncio.Task[None]] = field(default_factory=list)
    listeners: list[Callable[[DeskEvent], None]] = field(default_factory=list)

    counters: dict[int, Counters] = field(default_factory=dict)
    """Of each line, by its book."""

    def __post_init__(self) -> None:
        self.bus = Bus(self.store, now_millis)
        self.listeners.append(self.bus.hear)

    def tell(self, event: DeskEvent) -> None:
        for listener in self.listeners:
            listener(event)


def now_millis() -> int:
    return time.time_ns() // 1_000_000


@asynccontextmanager
async def build(settings: Settings) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        store = await Store.open(
            settings.storage.path,
            timezone=zone(settings.reports.timezone),
            labels=settings.payment_labels(),
            reserve_bytes=settings.storage.reserve_mb * 1024 * 1024,
            max_pages=None if settings.storage.max_size_mb is None else settings.storage.max_size_mb * PAGES_PER_MB,
            lanes=settings.lanes(),
            live_only=settings.live_only(),
        )
        stack.push_async_callback(store.close)
        house = House(settings, store)
        await stack.enter_async_context(house.bus.running())
        stack.push_async_callback(_take_down, house)
        for machine in settings.machine:
            await _open_desks(house, machine)
        yield house


async def _take_down(house: House) -> None:
    for task in house.lines:
        task.cancel()
    await asyncio.gather(*house.lines, return_exceptions=True)
    await asyncio.gather(*(desk.close(0) for desk in house.desks))


async def _open_desks(house: House, machine: Machine) -> None:
    live = await _desk(house, machine, "live")
    if machine.enabled:
        port = partial(open_port, str(machine.port), machine.baudrate)
        _keep(house, live, port, _timers(machine))
    else:
        live.offline_reason = "this machine is switched off in the configuration"
    if house.settings.sandbox.enabled:
        test = await _desk(house, machine, "test")
        _keep(house, test, await sandbox_port(house.store, test.book, live.ifu), Timers())


async def _desk(house: House, machine: Machine, mode: Mode) -> Desk:
    book = await house.store.open_book(machine.nim, mode)
    desk = Desk(
        book=book,
        ledger=house.store,
        clock=now_millis,
        defaults=Defaults(machine.operator_id, machine.operator_name, machine.isf, machine.nim),
        limits=Limits(
            queue=machine.queue_limit,
            patience=machine.queue_patience,
            aggregation_delay=house.settings.reports.aggregation_delay,
        ),
        labels=house.settings.payment_labels(),
        on_event=house.tell,
    )
    desk.take_state(await house.store.state(book))
    await tick(desk)  # what ended before a kill enters the totals without waiting for the machine
    house.desks.append(desk)
    return desk


def _timers(machine: Machine) -> Timers:
    """As configured; what bounds a whole exchange leaves room for all its tries."""
    usual = Timers()
    tries = machine.tries + 1
    return replace(
        usual,
        tries=machine.tries,
        first_byte=machine.reply_timeout,
        first_byte_close=machine.certify_timeout,
        first_byte_credit=machine.credit_timeout,
        pending_credit=machine.credit_timeout,
        overall=max(usual.overall, tries * machine.reply_timeout, tries * machine.certify_timeout),
        overall_credit=machine.credit_timeout + usual.overall,
    )


def _keep(house: House, desk: Desk, port: Callable[[], Port], timers: Timers) -> None:
    line_settings = LineSettings(desk.book.nim, port, timers)
    house.counters[desk.book.id] = line_settings.counters
    line = keep_line(line_settings, DeskKeeper(desk))
    name = f"line {desk.book.nim} {desk.book.mode}"
    house.lines.append(asyncio.get_running_loop().create_task(line, name=name))
