"""Today: the machines, the sales of the day, the open period with X and Z."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncGenerator
from typing import Any, Final

from litestar import get

from daemon.api.http.answers import Reply
from daemon.api.http.stream import Stream
from daemon.api.page.faults import fault_of
from daemon.api.page.screens.paper import printed
from daemon.api.page.shown.machine_shown import shown_machine
from daemon.api.page.visit import POLICY, AnyRequest, Visit, enter, fault_page, redirect, screen, shown
from daemon.core.call import Call
from daemon.core.errors import MachineError, NotFound
from daemon.usecases.deferred.look import backlog
from daemon.usecases.delivery.events import has_come
from daemon.usecases.reports import report
from daemon.usecases.reports.close_period import close_period
from daemon.usecases.reports.sales import latest, sales_between, totals_by_hour

LATEST: Final = 8
AGAIN: Final = 2.7
"""Seconds after which a screen is told once more: the tick has been by then."""
BEAT: Final = 15.0
_hours_known: dict[tuple[int, int], int] = {}


@screen("/ui/", "look")
async def today(visit: Visit) -> Reply:
    return await shown(visit, "today.html", **await _figures(visit))


@screen("/ui/today", "look", unattended=True)
async def today_part(visit: Visit) -> Reply:
    """What changes of that screen, asked for by it whenever something happens."""
    return await shown(visit, "today_part.html", **await _figures(visit))


async def _figures(visit: Visit) -> dict[str, Any]:
    worker, day = visit.worker, visit.today()
    start, end = visit.day_bounds(day)
    before, _ = visit.day_bounds(type(day).fromordinal(day.toordinal() - 7))
    hours = (end - start) // 3_600_000
    now = visit.deps.clock()
    return {
        "machines": [shown_machine(each, visit, now) for each in visit.deps.workers.all() if each.book.mode == "live"],
        "machine": shown_machine(worker, visit, now),
        "sales": await sales_between(worker, start, end),
        "hours": await totals_by_hour(worker, start, hours, _hours_known),
        "hours_before": await totals_by_hour(worker, before, hours, _hours_known),
        "waiting": await backlog(worker),
        "now": worker.now(),
        "latest": await latest(worker, LATEST),
        "period": await report.x_report(worker) if visit.may("report") else None,
    }


@screen("/ui/x", "report")
async def x_screen(visit: Visit) -> Reply:
    return await shown(visit, "report.html", report=await report.x_report(visit.worker), what="x", done=printed(visit))


@screen("/ui/z", "close")
async def confirm_z(visit: Visit) -> Reply:
    """What will be closed; the key makes of any number of clicks one Z."""
    return await _dialogue(visit, secrets.token_urlsafe(18))


async def _dialogue(visit: Visit, key: str, *, status: int = 200, problem: str = "") -> Reply:
    return await shown(
        visit,
        "confirm_z.html",
        status=status,
        problem=problem,
        period=await report.x_report(visit.worker),
        machine=shown_machine(visit.worker, visit, visit.deps.clock()),
        key=key,
    )


@screen("/ui/z", "close", change=True)
async def close_z(visit: Visit) -> Reply:
    """Where the machine does not answer, the dialogue stays, with its key."""
    key = visit.form.get("key", "")[:64] or secrets.token_urlsafe(18)
    fingerprint = hashlib.sha256(f"page z {visit.worker.book.id}".encode()).digest()[:16]
    call = Call(visit.request.scope["state"]["request_id"], f"page {key}", fingerprint, by=visit.actor)
    try:
        done = await close_period(visit.worker, call)
    except MachineError as error:
        fault = fault_of(error)
        return await _dialogue(visit, key, status=fault.status, problem=fault.told(visit.say))
    return redirect(visit.link(f"/ui/closures/{done.value.z_number}", new="1"))


@screen("/ui/{rest:path}", "look", whole=False)
async def nowhere(_visit: Visit) -> Reply:
    """An address that was mistyped, or of another version: a page, with the menu."""
    raise NotFound("there is no such screen")


@get("/ui/live")
async def live(request: AnyRequest) -> Reply:
    """Server-sent events: `change` whenever a screen of this machine has something new to show."""
    try:
        visit = await enter(request, "look")
        place = visit.deps.event_streams.take(f"page {visit.session.person_id}")
    except Exception as error:  # noqa: BLE001  every error of a screen is a page
        return await fault_page(request, error)
    return Stream(
        _changes(visit),
        media_type=b"text/event-stream; charset=utf-8",
        headers=((b"x-accel-buffering", b"no"), *POLICY),
        place=place,
        stopping=visit.deps.stopping,
        endless=True,
    )


async def _changes(visit: Visit) -> AsyncGenerator[bytes, None]:
    with visit.deps.notifier.listening(visit.worker.book) as news:
        yield b": open\n\n"
        patience = BEAT
        while visit.is_logged_in():
            news.clear()
            told = await has_come(news, patience)
            again = not told and patience == AGAIN
            yield b"event: change\ndata: 1\n\n" if told or again else b": beat\n\n"
            patience = AGAIN if told else BEAT


HANDLERS = (today, today_part, x_screen, confirm_z, close_z, nowhere, live)
