"""What the machine says of itself, and clearing an invoice that somebody left open on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import msgspec

from daemon.core.certification import MachineState, ServerLink
from daemon.core.clock import millis_text
from daemon.core.idempotency import KeyUse
from daemon.core.machine_info import MachineInfo, machine_info
from daemon.usecases.call import Answered, Call
from daemon.usecases.desk import Desk
from daemon.usecases.once import once
from daemon.usecases.ports import FiscalMachine

CACHE_SECONDS = 1.0
TAXPAYER_LINES = 6


@dataclass
class Reading:
    """One look at the machine; `at` in loop time, `read_at` in milliseconds since 1970."""

    state: MachineState
    link: ServerLink
    taxpayer: tuple[str, ...]
    at: float
    read_at: int


class Inspector:
    """Readings of one desk's machine, at most one a second, so that polling screens do not take the line from tills."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._last: Reading | None = None
        self._taxpayer: tuple[str, ...] = ()
        self._lock = asyncio.Lock()

    @property
    def last(self) -> Reading | None:
        return self._last

    async def info(self) -> MachineInfo:
        reading = await self.read()
        return machine_info(
            self._desk.book,
            reading.state,
            reading.link,
            reading.taxpayer,
            drift=self._desk.drift_seconds,
            read_at=millis_text(reading.read_at),
            now=reading.read_at,
        )

    async def read(self) -> Reading:
        """A reading no older than a second; MachineOffline, MachineBusy, LineLost or MachineNonsense when there is none."""
        async with self._lock:
            clock = asyncio.get_running_loop().time
            if self._last is not None and self._desk.connected and clock() - self._last.at < CACHE_SECONDS:
                return self._last
            deadline = clock() + self._desk.limits.patience
            with self._desk.turns.join() as ticket:
                await ticket.wait_turn(deadline)
                self._last = await self._ask(self._desk.present())
            return self._last

    async def _ask(self, machine: FiscalMachine) -> Reading:
        state = await machine.state()
        self._desk.take_machine_time(state)
        link = await machine.server_link()
        if not self._taxpayer:
            self._taxpayer = tuple([await machine.taxpayer(line) for line in range(TAXPAYER_LINES)])
        return Reading(state, link, self._taxpayer, asyncio.get_running_loop().time(), self._desk.now())


class CancelAnswer(msgspec.Struct, frozen=True, rename="camel"):
    was_pending: bool
    message: str


async def cancel_pending(desk: Desk, call: Call) -> Answered[bytes]:
    """38h C, in turn: whatever mcfd itself is certifying has its turn to itself, so this never cancels that."""

    async def run() -> bytes:
        return await asyncio.shield(desk.spawn(_cancel(desk, call), "cancel pending"))

    return await once(desk, call, run, _replay)


def _replay(use: KeyUse) -> bytes | None:
    return use.answer or None


async def _cancel(desk: Desk, call: Call) -> bytes:
    deadline = asyncio.get_running_loop().time() + desk.limits.patience
    with desk.turns.join() as ticket:
        await ticket.wait_turn(deadline)
        was_pending = await desk.present().cancel()
    message = "the open invoice was cancelled" if was_pending else "no invoice was open"
    answer = msgspec.json.encode(CancelAnswer(was_pending, message))
    if call.key:
        await desk.ledger.keep_answer(desk.book, call.key_hash, call.fingerprint, answer, at=desk.now())
    return answer
