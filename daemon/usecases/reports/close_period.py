"""The Z closure: one turn at the machine and one transaction (decision 14). Also the closure of months and years on
request (0047 art. 23), before the next Z or certification does it."""

import asyncio
import re
from typing import Final, Unpack

import structlog

from common.language import Text
from common.language.reasons import ACTIVATED_ANEW, COUNTERS_DECREASED
from common.numbers import parse_integer
from daemon.core.audit import Call
from daemon.core.errors import InvalidRequest, LineLost, MachineAttention, McfdError, NotFound, NothingDone
from daemon.core.ledger.book import Closure, LastSeen
from daemon.core.ledger.entries import NO_CASH, CalendarClosed, CalendarKind
from daemon.core.ledger.verdict import went_down
from daemon.core.machine.state import MachineState
from daemon.core.report.fiscal_reports import x_report
from daemon.machines.adapter import ConnectedMachine
from daemon.store.tables.book.acts import cash_of_period
from daemon.store.tables.book.calendar_closures import find_calendar_closure
from daemon.store.tables.book.closures import PeriodFigures
from daemon.usecases.certification.enter_invoice import check_expiry
from daemon.usecases.certification.idempotency import Answered, once
from daemon.usecases.certification.recover import is_activated
from daemon.usecases.reports.journal import ReportSource
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import former_workers

log = structlog.get_logger(__name__)
_PERIODS: Final = {
    "month": re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])", re.ASCII),
    "year": re.compile(r"[0-9]{4}", re.ASCII),
}
_FORMS: Final = {"month": Text("has to be a month, as 2026-01"), "year": Text("has to be a year, as 2026")}


async def close_period(
    worker: MachineWorker, call: Call, counted: int | None = None, after: int | None = None
) -> Answered[Closure]:
    """Closes a Z; its `body` is the answer. `counted`: cash in the drawer (whole XOF), None if not counted. `after`: the
    number of the last Z, if the caller means the period after that one; PeriodEnded if it is another. Needs the machine
    (decision 15), unless that is no longer configured or its spare certifies in its place."""

    async def run() -> Closure:
        if not await check_closable(worker):
            # By the last counters in the ledger, which the Z states. An attempt in doubt is left to an operator.
            return await store(counters=worker.counters, unexplained=0, without_machine=True)
        deadline = asyncio.get_running_loop().time() + worker.limits.patience
        with worker.queue.join() as entry:
            machine = await worker.turn(entry, deadline)
            check_expiry(call.expires)
            await worker.attempts.all_durable()
            try:
                state, moved = await _read_counters(worker, machine)
            except LineLost as error:
                raise NothingDone(error, Text("nothing was closed")) from error
            return await store(LastSeen(state.last), counters=state.counters, unexplained=moved)

    async def store(seen: LastSeen | None = None, **figures: Unpack[PeriodFigures]) -> Closure:
        figures |= {"counted": counted, "letterhead": worker.defaults.letterhead.hex()}
        closure = await worker.ledger.close_period(
            worker.book, at=worker.now(), call=call, after=after, seen=seen, **figures
        )
        if seen is not None:
            worker.attempts.counters = closure.counters
        worker.aggregate = await worker.ledger.aggregated(worker.book)
        log.info(
            "closure.created",
            **worker.names,
            z_number=closure.z_number,
            certs_count=closure.certs_count,
            total_ttc=closure.total_ttc,
            unexplained=closure.unexplained,
            request_id=call.request_id,
        )
        worker.publish("closure.created", ref=closure.z_number)
        return closure

    return await worker.run_to_end(once(worker, call, run, lambda use: use.closure), "close period")


async def check_closable(worker: MachineWorker) -> bool:
    """Whether a Z reads the machine. MachineAttention, MachineOffline or StorageFull if none can be made now, as far as is
    known without the machine."""
    needs_machine = not (worker.is_retired or (worker.is_replaced and not worker.connected))
    if needs_machine:
        worker.check_turn()
    elif question := worker.time.question():
        raise MachineAttention(question)
    await worker.ledger.check_free_space(worker.book)
    return needs_machine


async def close_former_periods(worker: MachineWorker) -> None:
    """Closes the open periods of the machine's former taxpayers by the last counters in the ledger: no key and no
    person has access to these books. On an error the next start tries again."""
    if worker.time.question():
        return
    for former in former_workers(worker):
        book = former.book
        aggregate = await worker.ledger.aggregate(book)
        cash = worker.ledger.peek(cash_of_period, book, aggregate.period_start)
        await worker.ledger.close_over_months(book, worker.now(), upto_z=True)
        if not x_report(book, aggregate, worker.now()).certs_count and cash == NO_CASH:
            continue
        try:
            closure = await worker.ledger.close_period(
                book, counters=former.counters, unexplained=0, at=worker.now(), without_machine=True
            )
        except McfdError as error:
            log.warning("closure.put_off", nim=book.nim, mode=book.mode, cause=str(error))
        else:
            log.info("closure.created", nim=book.nim, mode=book.mode, z_number=closure.z_number)


async def _read_counters(worker: MachineWorker, machine: ConnectedMachine) -> tuple[MachineState, int]:
    """The machine's state, and how many invoices it has counted that are not ours."""
    state = await machine.state()
    worker.time.apply_machine(state.time)
    now, before = state.counters, worker.counters
    if went_down(before, now):
        worker.drop(machine, COUNTERS_DECREASED)  # `recover` sets attention
        raise LineLost(COUNTERS_DECREASED)
    if is_activated(worker, state):
        worker.drop(machine, ACTIVATED_ANEW)  # `recover` begins the new epoch first: no Z spans two of them
        raise LineLost(ACTIVATED_ANEW)
    moved = (now.fvc - before.fvc) + (now.frc - before.frc)
    if moved:
        log.warning("machine.unexplained", nim=worker.book.nim, mode=worker.book.mode, invoices=moved)
    return state, moved


async def close_calendar(worker: MachineWorker, kind: CalendarKind, period: str, call: Call) -> Answered[bytes]:
    """Closes every month or year that is over and returns the last report as JSON; with `period`, that of the named
    one, also if it was closed before."""
    if period and not _PERIODS[kind].fullmatch(period):
        raise InvalidRequest.at("period", _FORMS[kind])

    async def run() -> bytes:
        if question := worker.time.question():
            raise MachineAttention(question)
        await worker.ledger.check_free_space(worker.book)
        answer = await worker.ledger.close_calendar(worker.book, kind, period, at=worker.now(), call=call)
        log.info("calendar.closed", **worker.names, kind=kind, request_id=call.request_id)
        return answer

    return await worker.run_to_end(once(worker, call, run, lambda use: use.answer or None), "close calendar")


async def calendar_closure(worker: ReportSource, kind: CalendarKind, wanted: str) -> bytes:
    """The report of a closed month or year as JSON, by number or period; NotFound."""
    found = wanted if _PERIODS[kind].fullmatch(wanted) else parse_integer(wanted)
    if found is None:
        raise NotFound(Text("there is no closure {wanted}", wanted=wanted))
    placed = await worker.ledger.read(find_calendar_closure, worker.book, kind, found)
    return placed.entry_of(CalendarClosed).body.encode()
