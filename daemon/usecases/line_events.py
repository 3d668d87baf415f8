"""What a worker does when its line comes up, beats and goes down."""

import asyncio
import contextlib

import structlog

from common.language import Text
from common.language.reasons import ACTIVATED_ANEW, COUNTERS_DECREASED, DECISION_NOT_APPLIED
from daemon.core.clock import DAY, HOUR
from daemon.core.errors import MachineBusy, MachineError, MachineNonsense, MachineRefused, StorageError
from daemon.core.events import TAX_SERVER
from daemon.core.ledger.verdict import went_down
from daemon.core.machine.state import MachineState
from daemon.core.report.machine_info import tax_server
from daemon.machines.adapter import ConnectedMachine
from daemon.store.tables.book.books import book_state
from daemon.store.tables.events import last_event_at
from daemon.usecases.certification.recover import is_activated, recover
from daemon.usecases.deferred.accept import refuse_former_sales
from daemon.usecases.reports.close_period import close_former_periods
from daemon.usecases.reports.inspect import read_taxpayer
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

SERVER_CHECK_SECONDS = 3600.0
ALERT_EVERY = DAY - HOUR // 2
"""Milliseconds; an hourly look that comes a little early must not put it off to the next one."""


class LineEvents:
    """Keeps one worker in step with its line (`daemon.machines.line.LineListener`)."""

    def __init__(self, worker: MachineWorker) -> None:
        self._worker = worker
        self._server_checked = float("-inf")

    async def connected(self, machine: ConnectedMachine, state: MachineState) -> None:
        """At the head of the queue: the attempt at the machine has left it, and nothing comes in between."""
        worker = self._worker
        worker.returning = True
        try:
            with worker.queue.join_first() as entry:
                await entry.wait_turn(asyncio.get_running_loop().time() + worker.limits.patience)
                is_first = not worker.attempts.met_machine
                book = worker.book
                await recover(worker, machine, state)
                if is_first or worker.book.id != book.id:
                    await refuse_former_sales(worker)
                    await close_former_periods(worker)
                await self._check_server(machine)
                if worker.compose_letterhead:
                    worker.taxpayer = ()  # it may have been changed while the machine was away; `stored_taxpayer` is kept
                worker.opened(machine)
        finally:
            worker.returning = False

    async def heartbeat(self) -> None:
        """A look at an idle machine (a busy one is looked at by its work), and at whether an operator has settled."""
        worker = self._worker
        await self._take_decisions()
        if worker.attention:
            await self._reconsider()
        if worker.waiting or not worker.connected:
            return  # the line may be lost in this very moment: a place in the queue would hold up its own return
        try:
            with worker.queue.join() as ticket:
                await ticket.wait_turn(asyncio.get_running_loop().time() + worker.limits.patience)
                machine = worker.present()
                state = await machine.state()
                if not worker.attention and went_down(worker.counters, state.counters):
                    worker.drop(machine, COUNTERS_DECREASED)  # `recover` tells an operator what was found
                    return
                if not worker.attention and is_activated(worker, state):
                    worker.drop(machine, ACTIVATED_ANEW)
                    return
                await self._notice(state)
                await self._check_server(machine)
                if not worker.taxpayer and worker.compose_letterhead:  # paper needs it, also where the machine dies
                    await read_taxpayer(worker, machine)
        except MachineBusy:
            return  # the worker is closing
        except (MachineError, StorageError) as error:
            log.debug("heartbeat.failed", nim=worker.book.nim, cause=str(error))

    async def look_now(self) -> None:
        """A heartbeat at once, the tax server included: the time of the book has been moved."""
        self._server_checked = float("-inf")
        await self.heartbeat()

    def lost(self, reason: Text) -> None:
        self._worker.lost(reason)

    async def _notice(self, state: MachineState) -> None:
        """What the machine did while the daemon was not at it: its own daily reports, invoices of another program, other
        rates. The ledger has the rates for sales that are deferred after a restart without the machine."""
        worker = self._worker
        worker.time.apply_machine(state.time)
        stored = worker.ledger.peek(book_state, worker.book).rates
        has_news = state.counters != worker.counters or state.rates != stored
        if not worker.attention and not worker.attempts.ending and has_news:
            moved = (state.counters.fvc - worker.counters.fvc) + (state.counters.frc - worker.counters.frc)
            if moved:
                log.warning("machine.unexplained", nim=worker.book.nim, mode=worker.book.mode, invoices=moved)
            if state.rates != stored:
                log.info("machine.rates_changed", nim=worker.book.nim, mode=worker.book.mode)
            await worker.ledger.reconcile(worker.book, state, unexplained=moved, at=worker.now())
            worker.apply_state(worker.ledger.peek(book_state, worker.book))
        worker.rates = dict(state.rates)

    async def _take_decisions(self) -> None:
        """An operator may have confirmed a clock meanwhile, or decided that a sale of a former taxpayer was not certified."""
        worker = self._worker
        with contextlib.suppress(StorageError):
            worker.time.apply_book(worker.ledger.peek(book_state, worker.book))
            await refuse_former_sales(worker)

    async def _reconsider(self) -> None:
        """`mcfd machine settle` writes to the ledger; the worker goes on from what it finds there."""
        worker = self._worker
        try:
            state = worker.ledger.peek(book_state, worker.book)
            if state.attention:
                worker.attempts.attention = state.attention  # what is left to decide may be another one
                return
            with worker.queue.join_first() as entry:
                await entry.wait_turn(asyncio.get_running_loop().time() + worker.limits.patience)
                machine = worker.present()
                try:
                    await recover(worker, machine, await machine.state())
                except (MachineError, StorageError) as error:
                    worker.drop(machine, DECISION_NOT_APPLIED(error=error))
                    raise
        except (MachineError, StorageError) as error:
            log.warning("settle.put_off", nim=worker.book.nim, cause=str(error))

    async def _check_server(self, machine: ConnectedMachine) -> None:
        clock = asyncio.get_running_loop().time
        if clock() - self._server_checked < SERVER_CHECK_SECONDS:
            return
        self._server_checked = clock()
        try:
            link = self._worker.server_link = await machine.server_link()
        except (MachineRefused, MachineNonsense) as error:  # no reason to leave the machine out of service
            log.warning("taxserver.unreadable", nim=self._worker.book.nim, cause=str(error))
            return
        server = tax_server(link, self._worker.now())
        if server.alert:
            await self._alert(server.days_since_contact)

    async def _alert(self, days: int | None) -> None:
        """The law wants a daily warning: once a day, also over restarts."""
        worker, now = self._worker, self._worker.now()
        try:
            if now - worker.events.peek(last_event_at, worker.book, TAX_SERVER) < ALERT_EVERY:
                return
            await worker.events.add(worker.book, TAX_SERVER, at=now, detail=str(days))
        except StorageError as error:
            log.warning("taxserver.alert_not_stored", nim=worker.book.nim, cause=str(error))
        log.warning("taxserver.alert", nim=worker.book.nim, mode=worker.book.mode, days=days)
        worker.publish(TAX_SERVER, detail=str(days))
