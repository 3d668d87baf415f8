"""One line during the daemon's life: opens the port, checks the machine, hands it over, detects its loss, repeats."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
import structlog

from bridge.commands import USUAL, MachineHabits
from bridge.errors import BridgeError
from bridge.link import LineStatistics, Link, Port, Timers
from bridge.machine import LinkedMachine, handshake
from bridge.recording.recording import Recorder
from common.language import Text, sentence
from common.language.reasons import INTERNAL_ERROR, LEDGER_FAILED
from daemon.core.errors import MachineError, StorageError
from daemon.core.machine.state import MachineState
from daemon.machines.adapter import ConnectedMachine

log = structlog.get_logger(__name__)

RETRY_SECONDS = 1.0
HEARTBEAT_SECONDS = 1.5


class LineListener(Protocol):
    """The line's listener; structural type of the worker's supervisor."""

    async def connected(self, machine: ConnectedMachine, state: MachineState) -> None:
        """Puts the machine into service; a MachineError means that the line was lost meanwhile."""
        ...

    async def heartbeat(self) -> None:
        """Called while the line is up; reads the machine's state unless something else does."""
        ...

    def lost(self, reason: Text) -> None: ...


class LineSettings(msgspec.Struct, frozen=True):
    """`counters` count over all links of this line."""

    nim: str
    open_port: Callable[[], Port | Awaitable[Port]]
    timers: Timers
    habits: MachineHabits = USUAL
    retry: float = RETRY_SECONDS
    heartbeat: float = HEARTBEAT_SECONDS
    counters: LineStatistics = msgspec.field(default_factory=LineStatistics)
    recorder: Recorder | None = None
    adapter: Callable[[LinkedMachine, str], ConnectedMachine] = ConnectedMachine


async def run_line(settings: LineSettings, listener: LineListener) -> None:
    """Runs until cancelled. A fault is logged when it begins and when it ends, not at each try."""
    last_reason = ""
    while True:
        try:
            reason = await _serve(settings, listener, last_reason)
        except (BridgeError, MachineError) as error:
            reason = sentence(error)
        except StorageError as error:
            reason = LEDGER_FAILED(cause=error)
        except Exception as error:
            # A bug of ours must not leave the machine out of service until a restart.
            log.exception("line.failed", nim=settings.nim)
            reason = INTERNAL_ERROR(error=type(error).__name__)
        if reason != last_reason:
            log.warning("line.down", nim=settings.nim, reason=reason)
        last_reason = reason
        listener.lost(reason)
        await asyncio.sleep(settings.retry)


async def _serve(settings: LineSettings, listener: LineListener, last_reason: str) -> Text:
    """From opening the port to its loss; returns the reason."""
    opened = settings.open_port()
    port = await opened if isinstance(opened, Awaitable) else opened
    link = Link(port, settings.timers, log=log.info, recorder=settings.recorder)
    try:
        link.counters = settings.counters
        machine = settings.adapter(LinkedMachine(link, settings.habits), settings.nim)
        state = machine.convert(await handshake(link, settings.habits))
        await listener.connected(machine, state)
        log.info("line.up", nim=settings.nim, after=last_reason or None)
        return await _beat(settings, listener, machine)
    finally:
        link.close()


async def _beat(settings: LineSettings, listener: LineListener, machine: ConnectedMachine) -> Text:
    """Until the line is lost; the heartbeat detects a loss while there are no invoices."""
    loss = asyncio.ensure_future(machine.lost())
    try:
        while not loss.done():
            await asyncio.wait([loss], timeout=settings.heartbeat)
            if not loss.done():
                await listener.heartbeat()
        return loss.result()
    finally:
        loss.cancel()
