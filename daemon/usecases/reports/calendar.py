"""The closure of months and years (0047 art. 23), for whoever does not wait for the next Z or certification."""

from __future__ import annotations

import re
from typing import Final

import structlog

from common.language import Text
from daemon.core.call import Call
from daemon.core.errors import FieldError, InvalidRequest, MachineAttention, NotFound
from daemon.core.ledger.closure import KeyUse
from daemon.core.ledger.entries import CalendarClosed, CalendarKind, Placed
from daemon.usecases.certification.idempotency import Answered, once
from daemon.usecases.reports.report import MAX_DIGITS, ReportSource
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

_PERIODS: Final = {
    "month": re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])", re.ASCII),
    "year": re.compile(r"[0-9]{4}", re.ASCII),
}
_FORMS: Final = {"month": Text("has to be a month, as 2026-01"), "year": Text("has to be a year, as 2026")}


async def close_calendar(worker: MachineWorker, kind: CalendarKind, period: str, call: Call) -> Answered[bytes]:
    """The report of what was closed: all that is over, of which it is the last; or the named month or year, also where it is closed already."""
    if period and not _PERIODS[kind].fullmatch(period):
        raise InvalidRequest([FieldError("period", _FORMS[kind])])

    async def run() -> bytes:
        if question := worker.time.question():
            raise MachineAttention(question)
        await worker.ledger.check_free_space(worker.book)
        work = worker.ledger.close_calendar(worker.book, kind, period, at=worker.now(), call=call)
        answer = await worker.see_through(work, "close calendar")
        log.info("calendar.closed", **worker.names, kind=kind, request_id=call.request_id)
        return answer

    return await once(worker, call, run, _replay)


def _replay(use: KeyUse) -> bytes | None:
    return use.answer or None


async def calendar_closure(worker: ReportSource, kind: CalendarKind, wanted: str) -> bytes:
    """The report as it was closed: by its number, or by its month or year; NotFound."""
    if _PERIODS[kind].fullmatch(wanted):
        return body_of(await worker.ledger.calendar_closure(worker.book, kind, wanted))
    if wanted.isascii() and wanted.isdigit() and len(wanted) <= MAX_DIGITS:
        return body_of(await worker.ledger.calendar_closure(worker.book, kind, int(wanted)))
    raise NotFound(Text("there is no closure {wanted}", wanted=wanted))


def body_of(placed: Placed) -> bytes:
    """The report; TypeError for an entry of another kind."""
    if not isinstance(placed.entry, CalendarClosed):
        raise TypeError(f"entry {placed.id} closes no month or year")
    return placed.entry.body.encode()
