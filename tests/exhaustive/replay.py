"""A history of the model on the real use cases: the same events in a shop in memory, and what there is to compare."""

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from exhaustive import real
from exhaustive.events import Event
from exhaustive.model import CREDITS, OTHER, OURS, STRANGER, Habit, World
from support.memory_shop import MemoryShop
from support.shop import IFU, NIM

from daemon.core.errors import McfdError
from daemon.core.ledger.attempt import was_not_sent
from daemon.core.ledger.decision import Case
from daemon.core.ledger.paper import PaperInvoice
from daemon.store.maintenance.backup import backup, restore
from simulator.line.session import LineSession
from simulator.machine.fiscal_memory import Snapshot
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions
from simulator.machine.working_state import Mode

LAST = 6
"""38h of an invoice with one item, counted from C3h."""
LONG = "x" * 60
TAXPAYERS = {"": "", OURS: IFU, OTHER: "00099999Z"}
Picture = dict[str, Any]
_BOOK = "SELECT nim, ifu, tc, fvc, frc, z_number, z_asked > 0, attention != '', id FROM book WHERE mode = 'live' ORDER BY in_use DESC LIMIT 1"
_ATTEMPTS = "SELECT number, type, state, coalesce(code, ''), coalesce(reason, '') FROM certification WHERE book_id = ?"


class Replay:
    """`shop` is None while no daemon runs."""

    def __init__(self, folder: Path, habit: Habit) -> None:
        self.ledger, self.copy = folder / "ledger", folder / "copy"
        texts: Any = "capitals" if habit.capitals else "plain"
        habits: dict[str, Any] = {
            "fvc_local": habit.local == "EV",
            "odd_types": habit.words,
            "no_codes": habit.no_codes,
        }
        self.session = LineSession(
            SimulatedMachine(SimulatorOptions(nim=NIM, ifu=IFU, texts=texts, name_most=40, **habits))
        )
        self.shop: MemoryShop | None = None
        self.case: Case | None = None
        self.waiting: list[asyncio.Future[Any]] = []

    @property
    def machine(self) -> SimulatedMachine:
        return self.session.machine

    @property
    def at_work(self) -> MemoryShop:
        assert self.shop is not None
        return self.shop

    async def happen(self, event: Event, after: World) -> None:
        """`after` is what the model makes of it."""
        if event.what == "last_z":
            await self.at_work.store.decisions.set_last_z(self.at_work.worker.book, after.book.z_number)
        else:
            await getattr(self, event.what)(event)
        if self.shop is not None and after.is_up:
            await self.shop.connected()  # what ends a connection is followed by the next one
        elif (shop := self.shop) is not None and self.session.is_plugged(asyncio.get_running_loop().time()):
            if event.what in ("look", "restart"):
                await shop.until(lambda: "not activated" in shop.worker.offline_reason, "why it is not in service")
            await self._unplug()  # or the daemon would look again by itself

    async def start(self) -> None:
        self.session.plug()
        if self.shop is None:
            self.shop = await MemoryShop(self.ledger, on=self.session, heartbeat=3600.0).__aenter__()

    async def _unplug(self) -> None:
        self.session.unplug(asyncio.get_running_loop().time(), 1e9)
        if (shop := self.shop) is not None:
            for port in shop.ports[-1:]:
                port.pump()
            await shop.until(lambda: not shop.worker.connected, "the loss of the line")

    async def die(self) -> None:
        if self.shop is not None:
            shop, self.shop = self.shop, None
            await shop.__aexit__(None, None, None)
            await asyncio.gather(*self.waiting, return_exceptions=True)
            self.waiting.clear()

    def _sale(self, event: Event, number: str = "", name: str = "Riz") -> Any:
        item = {"name": name, "taxGroup": "B", "unitPrice": 1000, "quantity": 1}
        more: dict[str, Any] = {"creditNoteRef": "RRR", "credit": True} if event.type in CREDITS else {}
        return self.at_work.certify(number or event.number, 1000, items=[item], invoiceType=event.type, **more)

    async def sale(self, event: Event) -> None:
        with suppress(McfdError):
            await self._sale(event)

    async def refused(self, event: Event) -> None:
        with suppress(McfdError):
            await self._sale(event, name=LONG)

    async def lost(self, event: Event) -> None:
        shop = self.at_work
        self.waiting.append(asyncio.ensure_future(self._sale(event)))
        fiscal, counters = self.machine.fiscal, shop.worker.counters
        counter = counters.frc if event.type in CREDITS else counters.fvc
        has_question = (fiscal.tc, fiscal.counter_of(event.type)) != (counters.tc, counter)  # C1h before 38h
        await shop.stop_at(LAST + has_question, "after" if event.executed else "before")
        if event.then:
            self.waiting.append(asyncio.ensure_future(self._sale(event, event.then)))
        await shop.intents(1 + bool(event.then))
        if event.then:
            await shop.disk(writable=False)  # as killed: nothing is written any more
            await self.die()
        self.session.cut_power(asyncio.get_running_loop().time(), 0.0)
        await self._unplug()

    async def stranger(self, event: Event) -> None:
        self.machine.certify_foreign(number=STRANGER, invoice_type=event.type)

    async def daily_report(self, _: Event) -> None:
        self.machine.fiscal.tc += 1

    async def look(self, _: Event) -> None:
        if self.shop is None or not self.shop.worker.connected:
            await self.start()
        else:
            await self.shop.keeper.heartbeat()

    async def restart(self, _: Event) -> None:
        await self.die()
        await self.start()

    async def backup(self, _: Event) -> None:
        self.copy.unlink(missing_ok=True)
        await asyncio.to_thread(backup, self.ledger, self.copy, at=1)

    async def restore(self, _: Event) -> None:
        await self.die()
        await asyncio.to_thread(restore, self.copy, self.ledger, at=2)

    async def upgrade(self, _: Event) -> None:
        await self.die()
        with closing(sqlite3.connect(self.ledger)) as ledger, ledger:
            ledger.execute("UPDATE book SET seen = NULL")

    async def new_disk(self, _: Event) -> None:
        await self.die()
        for file in self.ledger.parent.glob("ledger*"):
            file.unlink()

    async def vanish(self, _: Event) -> None:
        await self.die()
        self.ledger.unlink()

    async def reset(self, _: Event) -> None:
        self.machine.restore(Snapshot())
        self.machine.change(ifu="000000000")  # as firmware says that it has none
        self.machine.mode = Mode.NOT_ACTIVATED

    async def activation(self, _: Event, taxpayer: str = OURS) -> None:
        short, _dash, suffix = self.machine.options.nim.partition("-")
        self.machine.reboot(f"{short}-{int(suffix) + 1}")
        self.machine.change(ifu=TAXPAYERS[taxpayer])
        self.machine.mode = Mode.ACTIVE

    async def other_taxpayer(self, event: Event) -> None:
        await self.activation(event, OTHER)

    async def close(self, _: Event) -> None:
        with suppress(McfdError):
            await self.at_work.close_period()

    async def settle(self, _: Event) -> None:
        await self._decide(await self.at_work.store.decisions.case(self.at_work.worker.book))

    async def read_case(self, _: Event) -> None:
        self.case = await self.at_work.store.decisions.case(self.at_work.worker.book)

    async def settle_as_read(self, _: Event) -> None:
        assert self.case is not None
        await self._decide(self.case)

    async def _decide(self, case: Case) -> None:
        """As it is, with what stands on the machine's paper where that is needed."""
        shop, paper = self.at_work, None
        decision: Any = "adopt"
        if (attempt := case.attempt) is not None:
            entered = {record.code for record in await shop.certified()}
            ours = [one for one in shop.on_machine if (one.number, one.type) == (attempt.number, attempt.type)]
            entry = next((one for one in ours if one.code not in entered), None)
            decision = "certified" if entry else "not-certified"
            paper = PaperInvoice(entry.code, entry.time) if entry and not case.is_last else None
        with suppress(ValueError):
            await shop.store.decisions.carry_out(case, decision, reason="seen", at=1, paper=paper)
        await shop.keeper.heartbeat()

    def picture(self) -> Picture:
        fiscal = self.machine.fiscal
        codes = {entry.code: f"C{at}" for at, entry in enumerate(fiscal.log, 1)}
        is_up = self.shop is not None and self.shop.worker.connected
        picture: Picture = {"machine": (fiscal.tc, fiscal.fvc, fiscal.frc), "up": is_up}
        if not self.ledger.exists():
            return picture
        with closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)) as ledger:
            *book, book_id = ledger.execute(_BOOK).fetchone()
            rows = ledger.execute(_ATTEMPTS, (book_id,)).fetchall()
        failed = ("refused", "abandoned")
        picture["book"] = tuple(book)
        picture["attempts"] = sorted((*one, codes.get(code, "")) for *one, code, _ in rows if one[2] not in failed)
        picture["tried"] = sorted(
            {(*one[:2],) for *one, _, reason in rows if one[2] in failed and not was_not_sent(reason)}
        )
        return picture


def expected(world: World) -> Picture:
    """The same of the model."""
    book = world.book
    picture: Picture = {"machine": world.machine.counters, "up": world.is_up}
    if world.ledger.books:
        counters = book.counters or (None, None, None)
        named = (real.name(book.activation), TAXPAYERS[book.ifu])
        picture["book"] = (*named, *counters, book.z_number, int(book.question > 0), int(bool(book.attention)))
        picture["attempts"] = sorted((one.number, one.type, one.state, one.code) for one in book.attempts)
        picture["tried"] = sorted(book.tried)
    return picture
