"""What the machine says of itself, and clearing an invoice that somebody left open on it."""

from __future__ import annotations

import asyncio

import msgspec

from daemon.core.certification import ServerLink
from daemon.core.clock import millis_text
from daemon.core.errors import LineLost, MachineNonsense, MachineRefused, NothingDone
from daemon.core.idempotency import KeyUse
from daemon.core.machine_info import MachineInfo, machine_info
from daemon.usecases.call import Answered, Call
from daemon.usecases.desk import Desk, Reading
from daemon.usecases.once import once
from daemon.usecases.ports import FiscalMachine

CACHE_SECONDS = 1.0
TAXPAYER_LINES = 6


async def info(desk: Desk) -> MachineInfo:
    """The machine as it answers now, or did within the last second."""
    reading = await read(desk)
    return machine_info(
        desk.book,
        reading.state,
        reading.link,
        desk.taxpayer,
        drift=desk.drift_seconds,
        read_at=millis_text(reading.read_at),
        now=reading.read_at,
    )


async def read(desk: Desk) -> Reading:
    """A reading no older than a second, so that polling screens do not take the line from tills; MachineOffline,
    MachineBusy, NothingDone or MachineNonsense when there is none."""
    clock = asyncio.get_running_loop().time
    async with desk.looking:
        if desk.reading is not None and desk.connected and clock() - desk.reading.at < CACHE_SECONDS:
            return desk.reading
        try:
            return await desk.see_through(_read(desk), "info")
        except LineLost as error:
            raise NothingDone(error, "it could not be read") from error


async def _read(desk: Desk) -> Reading:
    clock = asyncio.get_running_loop().time
    with desk.turns.join() as ticket:
        await ticket.wait_turn(clock() + desk.limits.patience)
        machine = desk.present()
        state = await machine.state()
        desk.take_machine_time(state)
        link = await _server_link(machine)
        if link.state:
            desk.server_link = link
        if not desk.taxpayer:
            desk.taxpayer = tuple([await _taxpayer(machine, line) for line in range(TAXPAYER_LINES)])
        desk.reading = Reading(state, link, clock(), desk.now())
        return desk.reading


async def _server_link(machine: FiscalMachine) -> ServerLink:
    """A machine that is not activated may know no tax server: what else it says of itself is wanted all the same. `state` is
    empty then, and `error` says why."""
    try:
        return await machine.server_link()
    except (MachineRefused, MachineNonsense) as error:
        return ServerLink(0, 0, "", "", error.text if isinstance(error, MachineRefused) else str(error))


async def _taxpayer(machine: FiscalMachine, line: int) -> str:
    try:
        return await machine.taxpayer(line)
    except MachineRefused:
        return ""


class CancelAnswer(msgspec.Struct, frozen=True, rename="camel"):
    was_pending: bool
    message: str


async def cancel_pending(desk: Desk, call: Call) -> Answered[bytes]:
    """38h C, in turn: whatever mcfd itself is certifying has its turn to itself, so this never cancels that."""

    async def run() -> bytes:
        return await desk.see_through(_cancel(desk, call), "cancel pending")

    return await once(desk, call, run, _replay)


def _replay(use: KeyUse) -> bytes | None:
    return use.answer or None


async def _cancel(desk: Desk, call: Call) -> bytes:
    deadline = asyncio.get_running_loop().time() + desk.limits.patience
    with desk.turns.join() as ticket:
        await ticket.wait_turn(deadline)
        try:
            was_pending = await desk.present().cancel()
        except LineLost as error:
            raise NothingDone(error, "what is open on it is cancelled at its return") from error
    message = "the open invoice was cancelled" if was_pending else "no invoice was open"
    answer = msgspec.json.encode(CancelAnswer(was_pending, message))
    if call.key:
        await desk.ledger.keep_answer(desk.book, call.key_hash, call.fingerprint, answer, at=desk.now())
    return answer
