"""Z: one turn at the machine in which nothing else happens, one transaction in which everything does (decision 14)."""

from __future__ import annotations

import asyncio

import structlog

from daemon.core.closure import Closure
from daemon.core.errors import LineLost, NothingDone
from daemon.core.idempotency import KeyUse
from daemon.core.settlement import went_down
from daemon.usecases.call import Answered, Call
from daemon.usecases.desk import COUNTERS_WENT_DOWN, Desk
from daemon.usecases.once import once
from daemon.usecases.ports import FiscalMachine

log = structlog.get_logger(__name__)


async def close_period(desk: Desk, call: Call) -> Answered[Closure]:
    """The closure; its `body` is the answer. Needs the machine (decision 15): without it, nothing is closed."""

    async def run() -> Closure:
        desk.ready()
        await desk.ledger.check_room()
        return await desk.see_through(_close(desk, call), "close period")

    return await once(desk, call, run, _replay)


def _replay(use: KeyUse) -> Closure | None:
    return use.closure


async def _close(desk: Desk, call: Call) -> Closure:
    deadline = asyncio.get_running_loop().time() + desk.limits.patience
    with desk.turns.join() as ticket:
        await ticket.wait_turn(deadline)
        machine = await desk.wait_ready(deadline)
        await desk.outcome_durable()
        try:
            closure = await _freeze(desk, machine, call)
        except LineLost as error:
            raise NothingDone(error, "nothing was closed") from error
    log.info(
        "closure.created",
        nim=desk.book.nim,
        mode=desk.book.mode,
        z_number=closure.z_number,
        certs_count=closure.certs_count,
        total_ttc=closure.total_ttc,
        unexplained=closure.unexplained,
        request_id=call.request_id,
    )
    desk.tell("closure.created", ref=closure.z_number)
    return closure


async def _freeze(desk: Desk, machine: FiscalMachine, call: Call) -> Closure:
    state = await machine.state()
    desk.take_machine_time(state)
    now, known = state.counters, desk.known
    if went_down(known, now):
        desk.drop(machine, COUNTERS_WENT_DOWN)  # `recover` tells an operator what was found
        raise LineLost(COUNTERS_WENT_DOWN)
    moved = (now.fvc - known.fvc) + (now.frc - known.frc)
    if moved:
        log.warning("machine.unexplained", nim=desk.book.nim, mode=desk.book.mode, invoices=moved)
    closure = await desk.ledger.close_period(
        desk.book,
        counters=now,
        unexplained=moved,
        at=desk.now(),
        key_hash=call.key_hash,
        fingerprint=call.fingerprint,
    )
    desk.known = now
    desk.aggregate = await desk.ledger.aggregated(desk.book)
    return closure
