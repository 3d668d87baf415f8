"""What a desk does when its line comes up, beats and goes down."""

from __future__ import annotations

import asyncio

import structlog

from daemon.core.certification import MachineState
from daemon.core.clock import DAY, HOUR
from daemon.core.errors import MachineBusy, MachineError, MachineNonsense, MachineRefused, StorageError
from daemon.core.events import TAX_SERVER
from daemon.core.machine_info import tax_server
from daemon.core.settlement import went_down
from daemon.usecases.desk import COUNTERS_WENT_DOWN, Desk
from daemon.usecases.ports import FiscalMachine
from daemon.usecases.recover import recover

log = structlog.get_logger(__name__)

SERVER_CHECK_SECONDS = 3600.0
ALERT_EVERY = DAY - HOUR // 2
"""Milliseconds; an hourly look that comes a little early must not put it off to the next one."""


class DeskKeeper:
    """Keeps one desk in step with its line (`daemon.machines.line.Keeper`)."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._server_checked = float("-inf")

    async def connected(self, machine: FiscalMachine, state: MachineState) -> None:
        await recover(self._desk, machine, state)
        await self._check_server(machine)
        self._desk.opened(machine)

    async def heartbeat(self) -> None:
        """A look at an idle machine (a busy one is looked at by its work), and at whether an operator has settled."""
        desk = self._desk
        if desk.attention:
            await self._reconsider()
        if desk.waiting:
            return
        try:
            with desk.turns.join() as ticket:
                await ticket.wait_turn(asyncio.get_running_loop().time() + desk.limits.patience)
                machine = desk.present()
                state = await machine.state()
                if not desk.attention and went_down(desk.known, state.counters):
                    desk.drop(machine, COUNTERS_WENT_DOWN)  # `recover` tells an operator what was found
                    return
                self._notice(state)
                await self._check_server(machine)
        except MachineBusy:
            return  # the desk is closing
        except MachineError as error:
            log.debug("heartbeat.failed", nim=desk.book.nim, cause=str(error))

    def lost(self, reason: str) -> None:
        self._desk.lost(reason)

    def _notice(self, state: MachineState) -> None:
        desk = self._desk
        desk.take_machine_time(state)
        if state.rates != desk.rates:
            log.info("machine.rates_changed", nim=desk.book.nim, mode=desk.book.mode)
            desk.rates = dict(state.rates)

    async def _reconsider(self) -> None:
        """`mcfd machine settle` writes to the ledger; the desk goes on from what it finds there."""
        desk = self._desk
        try:
            if (await desk.ledger.state(desk.book)).attention:
                return
            with desk.turns.join() as ticket:
                await ticket.wait_turn(asyncio.get_running_loop().time() + desk.limits.patience)
                await self._resume(desk.present())
        except (MachineError, StorageError) as error:
            log.warning("settle.put_off", nim=desk.book.nim, cause=str(error))

    async def _resume(self, machine: FiscalMachine) -> None:
        try:
            await recover(self._desk, machine, await machine.state())
        except (MachineError, StorageError) as error:
            self._desk.drop(machine, f"what was settled could not be taken up: {error}")
            raise

    async def _check_server(self, machine: FiscalMachine) -> None:
        clock = asyncio.get_running_loop().time
        if clock() - self._server_checked < SERVER_CHECK_SECONDS:
            return
        self._server_checked = clock()
        try:
            link = self._desk.server_link = await machine.server_link()
        except (MachineRefused, MachineNonsense) as error:  # no reason to leave the machine out of service
            log.warning("taxserver.unreadable", nim=self._desk.book.nim, cause=str(error))
            return
        server = tax_server(link, self._desk.now())
        if server.alert:
            await self._alert(server.days_since_contact)

    async def _alert(self, days: int | None) -> None:
        """The law wants the user told daily: once a day, also over restarts."""
        desk, now = self._desk, self._desk.now()
        try:
            if now - await desk.ledger.last_told(desk.book, TAX_SERVER) < ALERT_EVERY:
                return
            await desk.ledger.add_event(desk.book, TAX_SERVER, at=now, detail=str(days))
        except StorageError as error:
            log.warning("taxserver.alert_not_stored", nim=desk.book.nim, cause=str(error))
        log.warning("taxserver.alert", nim=desk.book.nim, mode=desk.book.mode, days=days)
        desk.tell(TAX_SERVER, detail=str(days))
