"""What goes wrong in a shop, and the operator who sets it right."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from simulation.oracle import Told
from simulation.world import Life, Unreachable, World

from daemon.core.audit import Actor
from daemon.core.call import Call
from daemon.core.errors import MachineError, StorageError
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.decision import Case, Decision
from daemon.store.maintenance.backup import backup, restore
from daemon.store.tables.events import DEFAULT_LANES
from daemon.usecases.reports import inspect
from simulator.machine.fiscal_memory import Snapshot


class Troubles:
    def __init__(self, world: World, told: Told) -> None:
        self.world = world
        self.told = told
        self._running = 0
        self._idle = asyncio.Event()

    async def ended(self) -> None:
        """Whatever is wrong is over."""
        while self._running:
            self._idle.clear()
            await self._idle.wait()
        world = self.world
        world.disk.heal()
        world.box_jump = world.machine_jump = 0.0
        world.session.plug()
        world.pump()

    @contextlib.asynccontextmanager
    async def lasting(self) -> Any:
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._idle.set()

    # -- the box ----------------------------------------------------------------------------------------------------------

    async def kill(self, seconds: float) -> None:
        await self.world.kill(seconds)

    async def stop(self, seconds: float) -> None:
        async with self.lasting():
            await self.world.stop(seconds)

    async def cut_all(self, seconds: float) -> None:
        self._cut(seconds / 2)
        await self.world.kill(seconds)

    async def disk(self, what: str, seconds: float) -> None:
        disk = self.world.disk
        async with self.lasting():
            if what == "stall":
                disk.stall()
            else:
                setattr(disk, f"refuses_{what}", True)
            await asyncio.sleep(seconds)
            disk.heal()

    async def box_clock(self, jump: float, seconds: float) -> None:
        world = self.world
        if world.synchronised:
            return
        async with self.lasting():
            world.box_was_wrong = True
            world.box_was_wrong_at_first |= not world.session.machine.fiscal.log
            world.box_jump = jump
            await asyncio.sleep(seconds)
            world.box_jump = 0.0

    async def reload(self) -> None:
        with contextlib.suppress(Unreachable):
            self.world.serving().store.send_to(DEFAULT_LANES, ())

    # -- the machine ------------------------------------------------------------------------------------------------------

    async def machine_clock(self, jump: float, seconds: float) -> None:
        async with self.lasting():
            self.world.machine_jump = jump
            await asyncio.sleep(seconds)
            self.world.machine_jump = 0.0

    async def cut_machine(self, seconds: float) -> None:
        self._cut(seconds)

    def _cut(self, seconds: float, nim: str = "") -> None:
        self.world.session.cut_power(self.world.loop.now, seconds, nim)
        self.world.pump()

    async def unplug(self, seconds: float) -> None:
        self.world.session.unplug(self.world.loop.now, seconds)
        self.world.pump()

    async def lose_invoice(self) -> None:
        self.world.session.machine.lose_invoice()

    async def foreign(self, kind: str, total: int) -> None:
        """Another program is at the machine."""
        self.world.blame("somebody else's invoice")
        is_alike = kind != "FA" and self.world.script.options.fvc_local
        # Before a new ledger has met its machine they are where it begins; and where exports move TC alone, one may be taken for the other.
        self.world.is_unsure_of_foreign |= is_alike or not self.world.has_met
        self.world.foreign += kind in ("FV", "FA") or not self.world.script.options.fvc_local
        self.world.session.machine.certify_foreign(invoice_type=kind, total=total)

    async def activate(self, resets: bool, cuts: bool) -> None:
        """The tax office activates the machine anew, with or without its memory; the line need not notice."""
        world = self.world
        machine = world.session.machine
        world.blame("another activation")
        if resets:
            self.told.lost |= self.told.pending()  # what it certified of them it does not know itself any more
        world.was_activated = True
        world.was_reset = world.was_reset or resets
        short, _, suffix = machine.options.nim.partition("-")
        nim = f"{short}-{int(suffix) + 1}"
        if cuts:
            self._cut(2.0, nim)
        else:
            machine.reboot(nim)
        if resets:
            machine.restore(Snapshot())

    async def rates(self) -> None:
        machine = self.world.session.machine
        self.told.may_be_nonsense = True
        rates = dict(machine.options.rates)
        rates["C"] = 500 if rates.get("C") != 500 else 1000
        machine.change(rates=rates)

    async def cancel(self) -> None:
        with contextlib.suppress(Unreachable, MachineError, StorageError):
            life = self.world.serving()
            await self.world.ask(inspect.cancel_pending(life.worker, Call("page")), life)

    async def look(self) -> None:
        with contextlib.suppress(Unreachable, MachineError, StorageError):
            life = self.world.serving()
            await self.world.ask(inspect.info(life.worker), life)

    # -- the ledger -------------------------------------------------------------------------------------------------------

    async def restore(self, age: float, vanishes: bool) -> None:
        """A backup is made, and put back some time later; or the ledger's file is gone altogether."""
        world = self.world
        saved = world.ledger.with_name(f"saved-{world.loop.now}")
        async with self.lasting():
            try:
                backup(world.ledger, saved, at=world.box_millis())
            except StorageError:
                return
            await asyncio.sleep(age)
            await self._down()
            if vanishes:
                for file in world.ledger.parent.glob("ledger*"):
                    if not file.name.endswith((".high-water", ".lock")):
                        file.unlink()
            else:
                restore(saved, world.ledger, at=world.box_millis())
            world.note(f"{'the ledger vanished' if vanishes else 'an older ledger was put back'}")
            kept, begun = (set(), set()) if vanishes else _kept(world.ledger)
            log = world.session.machine.fiscal.log
            settled = set(self.told.lost)
            self.told.lost |= ({entry.number for entry in log} - kept) | self.told.pending()
            # What a machine counts in TC alone cannot be told from its daily report.
            ours = [entry for entry in log if not entry.foreign]
            missing = {entry.number for entry in ours if entry.type in ("FV", "FT", "FA")} - kept - begun - settled
            self.told.owed_a_question = bool(missing)
            world.blame("an older ledger")
            world.was_restored = True
            world.down_until = world.loop.now
            world.wake()

    async def _down(self) -> None:
        world = self.world
        world.down_until = float("inf")
        await world.stop(float("inf"))
        if world.life is not None:
            await world.kill(float("inf"))

    # -- the operator -----------------------------------------------------------------------------------------------------

    async def operate(self) -> None:
        """Looks every few seconds whether mcfd asks for a decision, and takes it from the machine's own paper."""
        while True:
            await asyncio.sleep(3.0)
            with contextlib.suppress(Unreachable, MachineError, StorageError):
                await self._operate(self.world.serving())

    async def _operate(self, life: Life) -> None:
        world = self.world
        if life.worker.attention:
            found = life.worker.attention
            # An export and the machine's daily report both move TC alone there: which of them it was, nobody can tell.
            is_export_at_midnight = world.script.options.fvc_local and world.is_another_day and "(E" in found
            assert world.cause or is_export_at_midnight, f"attention without a cause: {found}"
            is_told = not world.script.options.short_nim
            assert "counters went down" not in found or not is_told, f"another activation was not recognised: {found}"
            case = await world.ask(life.store.decisions.case(life.worker.book), life)
            if case.state.attention and (decision := self._decision(case)):
                at, by = life.worker.now(), Actor("shell:root")
                await world.ask(life.store.decisions.carry_out(case, decision, reason="seen", at=at, by=by), life)
                world.decided += 1
                self.told.owed_a_question = False
                world.note(f"decided: {decision}")
        elif life.worker.time.question():
            world.note(f"asked: {life.worker.time.question()}")
            world.box_jump = world.machine_jump = 0.0

    def _decision(self, case: Case) -> Decision | None:
        if case.attempt is None:
            return None if case.obstacle("adopt") else "adopt"
        if self._is_on_machine(case.attempt):
            if not case.obstacle("certified"):
                return "certified"
            # The machine remembers its last invoice alone: what is on paper cannot be entered, and its number is not used again.
            self.told.lost.add(case.attempt.number)
        return None if case.obstacle("not-certified") else "not-certified"

    def _is_on_machine(self, record: Record) -> bool:
        return any(entry.total == record.total_ttc for entry in self.told.on_machine(record.number))


def _kept(ledger: Path) -> tuple[set[str], set[str]]:
    """The numbers that a ledger holds as certified, and as begun or disputed."""
    with contextlib.closing(sqlite3.connect(ledger)) as connection:
        rows = list(connection.execute("SELECT number, state FROM certification"))
    return {n for n, state in rows if state == "certified"}, {n for n, state in rows if state in ("begun", "disputed")}
