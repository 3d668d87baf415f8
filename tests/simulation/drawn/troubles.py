"""What goes wrong in a shop, and the operator who sets it right."""

import asyncio
import contextlib
import contextvars
import sqlite3
import uuid
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import msgspec
from simulation import exemptions as exempt
from simulation.box import Seat, Unreachable, state_of
from simulation.drawn.copies import calendar_reports, restored_at, stored_sales
from simulation.oracle import Expectations
from simulation.storage.disk import Process
from simulation.virtual_loop import PROCESS
from simulation.world import HALF

from daemon.core.audit import Actor, Call
from daemon.core.clock import zone
from daemon.core.errors import LedgerInUse, MachineError, NotFound, StorageError
from daemon.core.invoice.invoice import CREDITS
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.decision import Case, Decision, DecisionRefused
from daemon.core.ledger.deferred import NotWaiting
from daemon.core.ledger.paper import PaperInvoice
from daemon.core.ledger.take_over import TakeOverRefused
from daemon.store.maintenance.backup import backup, restore
from daemon.store.store import Store
from daemon.store.tables.book.books import book_state, open_book
from daemon.store.tables.book.deferred import open_sales
from daemon.store.tables.book.entries import hours_ahead, repair_time
from daemon.store.tables.events import DEFAULT_DESTINATIONS
from daemon.store.tables.meta import LEDGER_ID, write_meta
from daemon.usecases.deferred.accept import release, withdraw
from daemon.usecases.reports import inspect
from daemon.usecases.worker.machine_workers import former_workers
from simulator.machine.fiscal_memory import CertifiedInvoice, Snapshot
from simulator.machine.options import digits14
from simulator.machine.working_state import Stage

STILL_AT_WORK = 10.0
"""Seconds in which a machine that lost its line may come to the end of what it was sent."""


class Troubles:
    """`everybody` are those at all machines of the box, also this one."""

    def __init__(self, expected: Expectations, everybody: Sequence[Expectations]) -> None:
        self.world = expected.world
        self.box = expected.world.box
        self.expected = expected
        self.everybody = everybody
        self._running = 0
        self._idle = asyncio.Event()

    async def ended(self) -> None:
        """Whatever is wrong is over."""
        while self._running:
            self._idle.clear()
            await self._idle.wait()
        self.box.disk.heal()
        self.box.jump = self.world.machine_jump = 0.0
        self.world.session.plug()
        self.world.pump()

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
        await self.box.kill(seconds)

    async def cut_box(self, seconds: float, sync: int = 0) -> None:
        """The power of the box alone."""
        async with self.lasting():
            await self.box.cut_at(sync)
        await self.box.kill(seconds, power_cut=True)

    async def fail_disk(self, what: str, sync: int) -> None:
        """The daemon's next sync, or write, fails, and it ends; perhaps the power goes in the middle of what it writes at its next start."""
        async with self.lasting():
            await self.box.fail_disk(what)
            if sync:
                await self.box.cut_at(sync)
                await self.box.kill(0.0, power_cut=True)

    async def stop(self, seconds: float) -> None:
        async with self.lasting():
            await self.box.stop(seconds)

    async def cut_all(self, seconds: float, sync: int = 0) -> None:
        async with self.lasting():
            await self.box.cut_at(sync)
        for expected in self.everybody:
            expected.world.session.cut_power(self.box.loop.now, seconds / 2, "")
            expected.world.pump()
        await self.box.kill(seconds, power_cut=True)

    async def disk(self, what: str, seconds: float) -> None:
        disk = self.box.disk
        async with self.lasting():
            if what == "stall":
                disk.stall()
            else:
                setattr(disk, f"refuses_{what}", True)
            began = self.box.loop.now
            for expected in self.everybody:
                expected.world.disk_faults.append((began, began + seconds))
            await asyncio.sleep(seconds)
            disk.heal()

    async def box_clock(self, jump: float, seconds: float) -> None:
        if self.box.synchronised:
            return
        async with self.lasting():
            for expected in self.everybody:
                world = expected.world
                world.wrong_box_times += 1
                world.clock_was_wrong = True
                machine = world.session.machine  # of another taxpayer, whose book may begin now (seed 9806579)
                world.box_was_wrong_at_first |= not machine.fiscal.log or machine.options.ifu != world.options.ifu
            self.box.jump = jump
            await asyncio.sleep(seconds)
            self.box.jump = 0.0

    async def reload(self) -> None:
        with contextlib.suppress(Unreachable):
            self.box.serving().store.send_to(DEFAULT_DESTINATIONS, ())

    # -- the way by the relay ---------------------------------------------------------------------------------------------

    async def kill_relay(self, relay: int, seconds: float) -> None:
        if (lane := self.box.lane) is not None:
            async with self.lasting():
                await lane.kill_relay(relay)
                await asyncio.sleep(seconds)
                if lane.relays[relay] is None:
                    lane.start_relay(relay)

    async def cut_lines(self) -> None:
        """Every connection to the server ends."""
        if (lane := self.box.lane) is not None:
            lane.server.cut_all()

    # -- the machine ------------------------------------------------------------------------------------------------------

    async def machine_clock(self, jump: float, seconds: float) -> None:
        async with self.lasting():
            self.world.machine_jump = jump
            self.world.wrong_machine_times += 1
            self.world.clock_was_wrong = True
            await asyncio.sleep(seconds)
            self.world.machine_jump = 0.0

    async def cut_machine(self, seconds: float) -> None:
        self._cut(seconds)

    def _cut(self, seconds: float, nim: str = "") -> None:
        self.world.session.cut_power(self.box.loop.now, seconds, nim)
        self.world.pump()

    async def unplug(self, seconds: float) -> None:
        self.world.session.unplug(self.box.loop.now, seconds)
        self.world.pump()

    async def lose_invoice(self) -> None:
        self.world.session.machine.lose_invoice()

    async def foreign(self, kind: str, total: int, number: str = "") -> None:
        """Another program is at the machine."""
        self.world.blame("somebody else's invoice")
        is_alike = kind != "FA" and self.world.options.fvc_local
        # Before a new ledger has met its machine they are where it begins; and where exports move TC alone, one may be taken for the other.
        self.world.is_unsure_of_foreign |= is_alike or not self.world.has_met
        self.world.foreign += kind in ("FV", "FA") or not self.world.options.fvc_local
        self.world.pump()  # what the machine was sent before
        self.world.session.machine.certify_foreign(number=number, invoice_type=kind, total=total)

    async def activate(self, resets: bool, cuts: bool) -> None:
        """The tax office activates the machine anew, with or without its memory; the line need not notice."""
        world = self.world
        machine = world.session.machine
        world.blame("another activation")
        if resets:
            self.expected.lost |= self.expected.pending()  # what it certified of them it does not know itself any more
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

    async def activate_for(self, ifu: str, resets: bool) -> None:
        """The tax office activates the machine for another taxpayer, or for the first one again; tills have other keys then."""
        world = self.world
        machine = world.session.machine
        if resets or not machine.fiscal.last or world.options.no_codes:  # which looks like a reset
            world.blame("another activation")
        if resets:
            self.expected.lost |= self.expected.pending()
            machine.restore(Snapshot())
        # Whose each invoice was is not told; a new book begins with what it finds.
        world.was_activated = world.was_reset = world.is_unsure_of_foreign = True
        short, _, suffix = machine.options.nim.partition("-")
        machine.reboot(f"{short}-{int(suffix) + 1}")
        machine.change(ifu=ifu or world.options.ifu)
        world.box_was_wrong_at_first |= self.box.jump != 0

    async def daily_report(self) -> None:
        """The machine writes its report of the day: TC moves alone."""
        self.world.session.machine.fiscal.tc += 1
        self.world.had_report = True

    async def rates(self) -> None:
        machine = self.world.session.machine
        self.expected.may_be_nonsense = True
        rates = dict(machine.options.rates)
        rates["C"] = 500 if rates.get("C") != 500 else 1000
        machine.change(rates=rates)

    async def cancel(self) -> None:
        with contextlib.suppress(Unreachable, MachineError, StorageError):
            seat = self.world.serving()
            await self.world.ask(inspect.cancel_pending(seat.worker, Call("page")), seat)

    async def look(self) -> None:
        with contextlib.suppress(Unreachable, MachineError, StorageError):
            seat = self.world.serving()
            await self.world.ask(inspect.info(seat.worker), seat)
            await self._as_command(self._write_beside())

    async def fail_job(self) -> None:
        """A job of the writer fails when it has written a part; what shares its commit is stored."""

        def job(connection: sqlite3.Connection) -> None:
            write_meta(connection, HALF, "written")
            raise NotFound("the rest")

        with contextlib.suppress(Unreachable, MachineError, StorageError, NotFound):
            seat = self.world.serving()
            await self.world.ask(seat.store.ledger.write(job), seat)

    # -- the spare --------------------------------------------------------------------------------------------------------

    async def take_over(self) -> None:
        """A person decides it, perhaps at a wrong moment: the machine may be alive, its spare away, or the daemon may die of it."""
        await self._decide_on_spare(is_over=True)

    async def take_back(self) -> None:
        await self._decide_on_spare(is_over=False)

    async def _decide_on_spare(self, *, is_over: bool) -> None:
        async def decide() -> None:
            decisions, workers = life.store.decisions, life.workers.all()
            first = next((worker for worker in workers if worker.spare), None)
            if first is None or (spare := first.spare) is None:
                return
            async with life.workers.at_rest(((first if is_over else spare).book,)):
                if is_over:
                    await decisions.take_over(first.book, spare.book, reason="broken", at=first.now())
                else:
                    await decisions.take_back(first.book, reason="repaired", at=first.now())

        with contextlib.suppress(Unreachable, MachineError, StorageError, TakeOverRefused):
            life = self.box.serving()
            await life.ask(decide())
            self.box.note("taken over" if is_over else "taken back")

    async def decide_doubt(self) -> None:
        """What is in doubt at the dead machine a person decides who has opened it: it has not certified. Not in the seconds in which it still may."""
        with contextlib.suppress(Unreachable, MachineError, StorageError, DecisionRefused):
            seat = self.world.serving()
            case = await self.world.ask(seat.store.decisions.case(seat.worker.book), seat)
            await asyncio.sleep(STILL_AT_WORK)
            self.world.pump()  # what it has done without a line
            attempt = case.attempt
            if attempt is None or seat.worker.attention:
                return
            sale = (attempt.number, attempt.total_ttc)
            if self.expected.on_machine(attempt.number) and not self.expected.is_time_for_error(*sale):
                return
            if self.world.session.machine.stage is Stage.CHECKING:
                return  # the tax server may still say yes

            async def decide() -> None:
                async with life.workers.at_rest((seat.worker.book,)):
                    await seat.store.decisions.carry_out(case, "not-certified", reason="no paper", at=seat.worker.now())

            life, seat = self.box.serving(), self.world.serving()  # perhaps not those that showed the case
            await life.ask(decide())
            self.box.note(f"{attempt.number}: not certified, says a person")

    # -- the ledger -------------------------------------------------------------------------------------------------------

    async def restore(self, age: float, vanishes: bool, sync: int = 0) -> None:
        """A backup is made, and put back some time later, perhaps with a power cut in the middle; or the ledger's file is gone altogether."""
        async with self.lasting():
            saved = await self._saved(age)
            if saved is None:
                return
            async with self._down():
                if vanishes:
                    self._lose_ledger(but=(".high-water", ".lock"))
                    self._was_put_back("the ledger vanished", vanished=True, anew=True)
                elif self._put_back(saved, sync):
                    self._was_put_back("an older ledger was put back")

    async def restore_twice(self, age: float, stays: float, first: str, then: str, kills: Sequence[int] = ()) -> None:
        """A copy is put back by mistake, perhaps that of another box, and some time later the ledger that gave way to it, or the box's own copy. `kills`:
        before which sync each of them is killed; it is begun again."""
        async with self.lasting():
            saved = await self._saved(age)
            if saved is None:
                return
            async with self._down():
                before = self._asides()
                self._put_back_at_last(saved if first == "own" else self._of_another_box(), kills)
                aside = min(self._asides() - before, default=saved)
                self._was_put_back("a ledger was put back by mistake")
            await asyncio.sleep(stays)
            async with self._down():
                right = aside if then == "aside" and aside.exists() else saved
                self._put_back_at_last(right, kills)
                self._was_put_back(f"the mistake is mended by {right.name}")

    def _asides(self) -> set[Path]:
        return {file for file in self.box.folder.glob("ledger.replaced-*") if not file.name.endswith(("-wal", "-shm"))}

    def _put_back_at_last(self, saved: Path, kills: Sequence[int]) -> None:
        for sync in kills:
            self._put_back(saved, sync, is_killed=True)
        self._put_back(saved, 0)

    def _of_another_box(self) -> Path:
        other = self.box.folder / "copy of another box"
        other.write_bytes(self.box.new)
        with contextlib.closing(sqlite3.connect(other)) as connection, connection:
            write_meta(connection, LEDGER_ID, f"{uuid.UUID(int=1)}")
        return other

    def _note_calendar(self, ledger: Path | None) -> None:
        if ledger is not None and ledger.exists():
            self.everybody[0].note_calendar(calendar_reports(ledger))

    async def new_disk(self, age: float, again: bool) -> None:
        """A backup is put back on a disk that has nothing else, perhaps twice; somebody has to say which was the last Z."""
        async with self.lasting():
            saved = await self._saved(age)
            if saved is None:
                return
            if any(exempt.machine_has_no_past(expected.world) for expected in self.everybody):
                return
            async with self._down():
                self._lose_ledger(but=(".lock",))
                for _ in range(1 + again):
                    restore(saved, self.box.ledger, at=self.box.millis())
                self._was_put_back("a backup was put back on a new disk", anew=True)

    async def _saved(self, age: float) -> Path | None:
        """A backup that was made so long ago; None where the disk did not take it, or the power went meanwhile."""
        saved = self.box.ledger.with_name(f"saved-{self.box.loop.now}")
        try:
            backup(self.box.ledger, saved, at=self.box.millis())
        except (StorageError, asyncio.CancelledError):  # the latter where the disk fails under it
            return None
        await asyncio.sleep(age)
        return saved if saved.exists() else None

    def _lose_ledger(self, but: tuple[str, ...]) -> None:
        for file in self.box.folder.glob("ledger*"):
            if not file.name.endswith(but):
                file.unlink()
        self.box.disk.files.synced_names()

    def _put_back(self, saved: Path, sync: int, *, is_killed: bool = False) -> bool:
        """Whether it is the older ledger that is there afterwards: where the power goes before the so many-th sync, or the command `is_killed`, it may be
        either, whole."""
        box = self.box
        box.disk.files.cut_at(sync, lambda: box.note("killed" if is_killed else "power cut"), is_killed=is_killed)
        aside = restore(saved, box.ledger, at=box.millis() + len(self._asides())).aside
        if not box.disk.files.is_cut:
            box.disk.files.cut_at(0, lambda: None)
            self._note_calendar(aside)
            return True
        before = restored_at(box.ledger)
        with box.disk.ending(power_cut=True):
            pass
        return restored_at(box.ledger) == before

    def _was_put_back(self, note: str, *, vanished: bool = False, anew: bool = False) -> None:
        """`anew`: what is there now has not met the machines on this disk."""
        self.box.note(note)
        under_way = set[str]().union(*(expected.pending() for expected in self.everybody))
        for expected in self.everybody:
            sales = {} if vanished else stored_sales(self.box.ledger, expected.world.nim)
            expected.was_put_back(sales, under_way, vanished=vanished)
            expected.world.box_was_wrong_at_first |= anew and self.box.jump != 0

    @contextlib.asynccontextmanager
    async def _down(self) -> Any:
        """Without a daemon until the end."""
        self.box.down_until = float("inf")
        await self.box.stop(float("inf"))
        if self.box.life is not None:
            await self.box.kill(float("inf"))
        yield
        self.box.down_until = self.box.loop.now
        self.box.wake()

    async def reconfigure(self, layout: str) -> None:
        """The daemon begins again with another configuration: its tills are set up for the machine that it names."""
        async with self.lasting(), self._down():
            self.box.layout = layout
            self.box.was_reconfigured = True

    async def renumber(self, pattern: str) -> None:
        """The same with another pattern of numbers, or with tills that send them."""
        async with self.lasting(), self._down():
            self.box.renumber(pattern)

    async def repair_time(self) -> None:
        """A person has seen that the book is ahead; on a full disk the command changes nothing."""
        if not (self.box.jump or self.world.machine_jump):
            with contextlib.suppress(StorageError):
                await self._repair_time()

    async def err(self) -> None:
        """Who decides on the next sale in doubt is wrong."""
        self.expected.errs += 1

    async def second_operator(self, seconds: float) -> None:
        """Looks at a case, is called away, and decides it when it may have been decided."""
        with contextlib.suppress(Unreachable, MachineError, StorageError, DecisionRefused):
            for _ in range(40):
                seat = self.world.serving()
                if seat.worker.attention:
                    break
                await asyncio.sleep(0.5)
            else:
                return
            case = await self.world.ask(seat.store.decisions.case(seat.worker.book), seat)
            decision, paper = self._decision(case)
            await asyncio.sleep(seconds)
            await self._carry_out(self.world.serving(), case, decision, paper, by="other")

    # -- the operator -----------------------------------------------------------------------------------------------------

    async def operate(self) -> None:
        """Looks every few seconds whether mcfd asks for a decision, and takes it from the machine's own paper."""
        while True:
            await asyncio.sleep(3.0)
            with contextlib.suppress(Unreachable, MachineError, StorageError, DecisionRefused, NotWaiting):
                await self._operate(self.world.serving())

    async def _operate(self, seat: Seat) -> None:
        world = self.world
        book = seat.worker.book
        if (await world.ask(state_of(seat), seat)).needs_last_z:
            await world.ask(seat.store.decisions.set_last_z(book, self.expected.last_z, at=seat.worker.now()), seat)
            world.note(f"said: the last Z is {self.expected.last_z}")
        worker = next((each for each in (seat.worker, *former_workers(seat.worker)) if each.attention), seat.worker)
        if found := worker.attention:
            has_cause = (
                worker is not seat.worker
                or world.cause
                or self.expected.wrong
                or exempt.export_may_be_a_report(world, found)
            )
            assert has_cause, f"attention without a cause: {found}"
            # A person who is wrong may enter counters that the machine has not reached (seed 9808795).
            is_named = "counters went down" not in found or exempt.reset_has_no_name(world) or self.expected.wrong
            assert is_named, f"another activation was not recognised: {found}"
            case = await world.ask(seat.store.decisions.case(worker.book), seat)
            decision, paper = self._decision(case)
            await self._carry_out(seat, case, decision, paper, by="root")
        elif self.box.defers and await self._decide_on_sales(seat):
            pass
        elif seat.worker.time.question():
            world.note(f"asked: {seat.worker.time.question()}")
            if self.box.jump or world.machine_jump:
                self.box.jump = world.machine_jump = 0.0
            else:
                await self._repair_time()

    async def _decide_on_sales(self, seat: Seat) -> bool:
        """Those that an older ledger does not know the end of: certified by what the machine's paper says, or to be certified still."""
        sales = await self.world.ask(seat.worker.ledger.read(open_sales, seat.worker.book, 0, 100), seat)
        for sale in (sale for sale in sales if sale.state == "doubtful"):
            name = self.expected.name_of(sale.number, sale.total_ttc)
            is_wrong = self.expected.is_time_for_error(sale.number, sale.total_ttc)
            is_certified = bool(self.expected.on_machine(name)) ^ is_wrong
            decide = withdraw if is_certified else release
            await self.world.ask(decide(seat.worker, sale, "seen", by=Actor("shell:root")), seat)
            self.world.note(f"{sale.number}: {decide.__name__}")
            return True
        return False

    async def _carry_out(
        self, seat: Seat, case: Case, decision: Decision | None, paper: PaperInvoice | None, *, by: str
    ) -> None:
        if not (case.state.attention and decision):
            return
        self.expected.begin_decision()  # also where the daemon dies before it says that the decision is written
        at, actor = seat.worker.now(), Actor(f"shell:{by}")
        carry_out = seat.store.decisions.carry_out(case, decision, reason="seen", at=at, by=actor, paper=paper)
        await self.world.ask(carry_out, seat)
        self.world.decided += 1
        self.world.note(f"decided by {by}: {decision}")

    async def _repair_time(self) -> None:
        """`mcfd time repair`, while the daemon stands: the box is right, and yet behind its book."""
        async with self.lasting(), self._down():
            await self._as_command(self._repair())

    async def _as_command(self, work: Coroutine[Any, Any, None]) -> None:
        """In a process of its own."""
        context = contextvars.copy_context()
        context.run(PROCESS.set, Process())
        await asyncio.get_running_loop().create_task(work, context=context)

    async def _write_beside(self) -> None:
        """A command that would write by itself beside a daemon."""
        self.box.serving()
        with contextlib.suppress(LedgerInUse):
            async with await Store.open(self.box.ledger, timezone=zone("UTC"), reserve_bytes=0, opening="command"):
                raise AssertionError("a command has the ledger open for writing beside the daemon")

    async def _repair(self) -> None:
        now = self.box.millis()
        async with await Store.open(self.box.ledger, timezone=zone("UTC"), reserve_bytes=0) as store:
            book = await store.ledger.write(open_book, self.world.nim, "live")
            ahead = hours_ahead((store.ledger.peek(book_state, book)).last_at, now)
            with contextlib.suppress(NotFound):
                await store.decisions.write(repair_time, book, now=now, ahead=ahead, reason="the box was ahead")
                self.world.time_was_repaired = True
                self.box.note(f"the time of {self.world.nim} was repaired")

    def _decision(self, case: Case) -> tuple[Decision | None, PaperInvoice | None]:
        """The true one, with what stands on the machine's paper where the machine remembers another invoice as its last."""
        if case.attempt is None:
            return (None if case.obstacle("adopt") else "adopt"), None
        if self.expected.errs and (wrong := self._wrong_decision(case, case.attempt)):
            self.expected.is_time_for_error(case.attempt.number, case.attempt.total_ttc)
            self.world.note(f"{case.attempt.number}: {wrong[0]}, says a person who is wrong")
            return wrong
        if entry := self._on_paper(case.attempt):
            if not case.obstacle("certified"):
                return "certified", None
            of_kind = entry.frc if entry.type in CREDITS else entry.fvc
            paper = PaperInvoice(entry.code, entry.time, (of_kind, entry.tc))
            obstacle = case.obstacle("certified", paper)
            is_odd = (obstacle, True) in {
                ("time not plausible", self.world.clock_was_wrong),
                ("counters not plausible", self.world.was_reset),
            }
            assert is_odd or obstacle in {None, "does not fit"}, f"{entry.number}: its paper is refused: {obstacle}"
            if is_odd:
                self.world.entered_as_printed = True
                self.world.note(f"{entry.number} is printed so: {obstacle}")
            return "certified", msgspec.structs.replace(paper, as_printed=is_odd)
        return (None if case.obstacle("not-certified") else "not-certified"), None

    def _wrong_decision(self, case: Case, attempt: Record) -> tuple[Decision, PaperInvoice | None] | None:
        """None where mcfd would not take it."""
        if self._on_paper(attempt):
            return None if case.obstacle("not-certified") else ("not-certified", None)
        tc = self.world.session.machine.fiscal.tc
        paper = PaperInvoice(f"TYPO{tc:020}", digits14(self.box.true_time()), (tc, tc), as_printed=True)
        return None if case.obstacle("certified", paper) else ("certified", paper)

    def _on_paper(self, record: Record) -> CertifiedInvoice | None:
        printed = self.world.session.machine.fiscal.log  # by this machine: its spare may have the number too
        wanted = (record.number, record.total_ttc, False)
        entries = [entry for entry in printed if (entry.number, entry.total, entry.foreign) == wanted]
        return entries[-1] if entries else None
