"""After a crash or a lost line: what became of unfinished attempts is asked of the machine, before anything else uses it.

Which attempt can it be? 38h of an invoice is never sent before the outcome of the one before it is durable
(`Desk.outcome_durable`), so of all attempts that are begun in the ledger at most one was certified: the one whose number the
machine remembers as its last. When the machine's counters moved and it remembers another number, the oldest of them was the one on the line.
"""

from __future__ import annotations

from typing import Literal

import structlog

from daemon.core.certification import Certified, Counters, MachineState, Record
from daemon.core.errors import MachineError, StorageError
from daemon.core.settlement import Disputed, NotCertified, Verdict, behind, judge, went_down
from daemon.usecases.aggregate import tick
from daemon.usecases.announce import announce
from daemon.usecases.desk import Desk
from daemon.usecases.ports import FiscalMachine

log = structlog.get_logger(__name__)

NotCertifiedState = Literal["refused", "abandoned"]


async def recover(desk: Desk, machine: FiscalMachine, state: MachineState) -> None:
    """Settles what is unfinished, clears a half-open invoice, and takes over the machine's counters. `state` is a fresh C1h.

    Afterwards the desk is either fit for work or in attention. StorageError or MachineError when it did not come to an end:
    then it is begun again, from the start, at the next connection."""
    await desk.outcome_durable()  # what this process is still storing is no stranger's work
    async with desk.settling:
        await _recover(desk, machine, state)


async def _recover(desk: Desk, machine: FiscalMachine, state: MachineState) -> None:
    desk.take_state(await desk.ledger.state(desk.book))
    desk.take_machine_time(state)
    if desk.attention and not desk.met_machine:
        log.warning("machine.attention", nim=desk.book.nim, mode=desk.book.mode, found=desk.attention)
    unfinished = [r for r in await desk.ledger.unfinished(desk.book) if r.id not in desk.held]
    await machine.cancel()
    if unfinished:
        # Once more: a machine that was still at it until the cancellation cannot be any longer.
        state = await machine.state()
    if not desk.attention:
        for record, verdict in _verdicts(unfinished, desk.known, state):
            await _write(desk, record, verdict)
    if not desk.attention:
        await _take_over(desk, state, settled=bool(unfinished))
    await _keep_evidence(desk, state)
    desk.met_machine = desk.met_machine or not desk.attention
    for record in unfinished:
        desk.settled(record.id)
    await tick(desk)


async def settle_in_place(desk: Desk, machine: FiscalMachine, attempt_id: int, refusal: str) -> None:
    """The same for one attempt while the line is alive: 38h was answered, but not with a believable yes. `refusal` is the
    machine's own text, which counts once the machine has confirmed that it did not certify; one that has lost the invoice
    has nothing against it.

    Whatever hinders that ends the connection: nobody may have this machine before the next `recover`."""
    try:
        async with desk.settling:
            await _settle(desk, machine, attempt_id, refusal)
    except (MachineError, StorageError) as error:
        log.warning("recover.put_off", nim=desk.book.nim, cause=str(error))
        desk.drop(machine, f"the outcome of an invoice could not be settled: {error}")
        return
    desk.settled(attempt_id)
    desk.schedule_tick(lambda: tick(desk))


async def _settle(desk: Desk, machine: FiscalMachine, attempt_id: int, refusal: str) -> None:
    was_open = await machine.cancel()
    state = await machine.state()
    record = await desk.ledger.record(desk.book, attempt_id)
    await _write(desk, record, judge(record, desk.known, state), refusal if was_open else "")
    if not desk.attention:
        await _take_over(desk, state, settled=True)
    await _keep_evidence(desk, state)


def _verdicts(unfinished: list[Record], known: Counters, state: MachineState) -> list[tuple[Record, Verdict]]:
    """The one that may have been on the line is judged; the others cannot have been certified, and go first: what is left over
    when this breaks off in the middle must not be the wrong one."""
    if not unfinished:
        return []
    last = state.last.number if state.last else None
    suspect = next((r for r in unfinished if r.number == last), unfinished[0])
    never_sent: list[tuple[Record, Verdict]] = [(r, NotCertified()) for r in unfinished if r is not suspect]
    return [*never_sent, (suspect, judge(suspect, known, state))]


async def _write(desk: Desk, record: Record, verdict: Verdict, refusal: str = "") -> None:
    now = desk.now()
    log.info(
        "recover.settled",
        nim=desk.book.nim,
        mode=desk.book.mode,
        invoice_number=record.number,
        verdict=type(verdict).__name__.lower(),
        request_id=record.request_id,
    )
    if isinstance(verdict, Disputed):
        log.warning("machine.attention", nim=desk.book.nim, mode=desk.book.mode, found=verdict.found)
        await desk.ledger.dispute(desk.book, record.id, verdict.found, at=now)
        desk.meters.outcomes["disputed"] += 1
        desk.take_state(await desk.ledger.state(desk.book))
        return
    if isinstance(verdict, Certified):
        ended = await desk.ledger.certify(
            desk.book,
            record.id,
            verdict,
            invoice=record.invoice,
            total_ttc=record.total_ttc,
            at=now,
            line_ms=0,
            duration_ms=max(0, now - record.begun_at),
        )
        desk.known = verdict.counters
    elif refusal:
        ended = await desk.ledger.end(desk.book, record.id, "refused", refusal, at=now)
    else:
        ended = await desk.ledger.end(desk.book, record.id, "abandoned", "the machine did not certify it", at=now)
    announce(desk, ended)


async def _take_over(desk: Desk, state: MachineState, *, settled: bool) -> None:
    """The machine's counters become the known ones. At the first meeting of a process nothing but our own unfinished work may
    have moved them: otherwise the ledger is behind the machine (an older backup put back, or another program), and
    numbers may have been used that it does not know."""
    stored = await desk.ledger.state(desk.book)
    found = ""
    if stored.known is not None:
        found = behind(desk.known, stored.last_number, state)
    moved = (state.counters.fvc - desk.known.fvc) + (state.counters.frc - desk.known.frc)
    if found and (not desk.met_machine or went_down(desk.known, state.counters)):
        log.warning("machine.attention", nim=desk.book.nim, mode=desk.book.mode, found=found)
        await desk.ledger.set_attention(desk.book, found, at=desk.now())
    else:
        unexplained = moved if stored.known is not None else 0
        if unexplained:
            log.warning("machine.unexplained", nim=desk.book.nim, mode=desk.book.mode, invoices=unexplained)
        await desk.ledger.reconcile(desk.book, state, unexplained=unexplained, at=desk.now())
        log.info("machine.reconciled", nim=desk.book.nim, mode=desk.book.mode, settled=settled)
    desk.take_state(await desk.ledger.state(desk.book))


async def _keep_evidence(desk: Desk, state: MachineState) -> None:
    if desk.attention:
        await desk.ledger.keep_evidence(desk.book, state, at=desk.now())
