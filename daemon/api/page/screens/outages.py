"""Register of outages: declarations to print, and notifications (arrêté 2025-0049, articles 6 and 7). Decision that the
spare takes over from a failed machine, or that the machine is taken back."""

from datetime import datetime
from typing import Final

from common.numbers import parse_integer
from daemon.api.http.answers import Reply
from daemon.api.page.screens.attention import reason_of
from daemon.api.page.views.machine_view import machine_view
from daemon.api.page.visit import Visit, name_of, redirect, render, screen
from daemon.core.clock import DAY, millis, millis_text
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.ledger.take_over import TakeOverRefused
from daemon.paper.reports import REASONS, RECIPIENTS, duration_text
from daemon.paper.shop import Style
from daemon.store.tables.book.deferred import backlog
from daemon.store.tables.book.outages import newest_outages
from daemon.usecases.outages import note_notified

PER_PAGE: Final = 20
SPAN: Final = 366 * DAY
"""Earlier outages are in the files."""


async def _screen(visit: Visit) -> Reply:
    """Outages of the machine and of the other one of its pair."""
    now, page = visit.worker.now(), parse_integer(visit.query.get("page", "")) or 0
    upto = PER_PAGE * (page + 1)
    rows = [
        (outage, duration_text(outage.duration(now), Style(visit.language)), name_of(each))
        for each in visit.worker.pair
        for outage in await each.ledger.read(newest_outages, each.book, start=now - SPAN, end=now + 1, limit=upto + 1)
    ]
    rows.sort(key=lambda row: row[0].since, reverse=True)
    return await render(
        visit,
        "outages.html",
        done=visit.say("Noted.") if visit.query.get("noted") else "",
        rows=rows[upto - PER_PAGE : upto],
        page_number=page,
        more=visit.link("/ui/outages", page=page + 1) if len(rows) > upto else "",
        reasons=REASONS,
        recipients=RECIPIENTS,
        now=datetime.fromtimestamp(now / 1000, visit.page.zone).strftime("%Y-%m-%dT%H:%M"),
    )


outages = screen("/ui/outages", "report")(_screen)


@screen("/ui/outages/{outage:int}", "close", change=True, form=_screen, faults=(InvalidRequest, NotFound))
async def note(visit: Visit) -> Reply:
    """Notes a notification; idempotent."""
    number, form = visit.request.path_params["outage"], visit.form
    body: dict[str, object] = {"who": form.get("who", ""), "reference": form.get("reference", "")}
    if at := form.get("at", ""):
        body["at"] = _instant(at, visit)
    await note_notified(visit.worker, number, body, visit.call())
    return redirect(visit.link("/ui/outages", noted="1"))


def _instant(text: str, visit: Visit) -> str:
    """A browser's local date and time in the shop's time zone; invalid text is returned unchanged, to be refused."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return millis_text(millis(at if at.tzinfo else at.replace(tzinfo=visit.page.zone)))


async def _spare(visit: Visit) -> Reply:
    pairs = [
        {
            "first": machine_view(each, visit),
            "spare": machine_view(each.spare, visit),
            "lasting": each.take_over,
            "waiting": (await each.ledger.read(backlog, each.in_use.book)).count,
        }
        for each in visit.deps.workers.all()
        if each.spare is not None
    ]
    return await render(visit, "spare.html", pairs=pairs)


spare = screen("/ui/spare", "administer")(_spare)


@screen("/ui/spare", "administer", change=True, form=_spare, faults=(InvalidRequest, TakeOverRefused))
async def decide_spare(visit: Visit) -> Reply:
    """Waits until the line is idle."""
    first = visit.worker
    if first.spare is None:
        raise NotFound("there is no such spare")
    reason, at, by = reason_of(visit), first.in_use.now(), visit.actor
    decisions, workers = visit.page.decisions, visit.deps.workers
    decision = visit.form.get("decision", "")
    if decision not in ("take-back", "take-over"):
        raise InvalidRequest.at("decision", visit.say("has to be chosen"))
    async with workers.at_rest((first.book if decision == "take-over" else first.spare.book,)):
        if decision == "take-over":
            await decisions.take_over(first.book, first.spare.book, reason=reason, at=at, by=by)
        else:
            await decisions.take_back(first.book, reason=reason, at=at, by=by)
    return redirect("/ui/spare")
