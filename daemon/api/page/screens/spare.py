"""Decision that the spare takes over from a failed machine, or that the machine is taken back."""

from __future__ import annotations

from daemon.api.http.answers import Reply
from daemon.api.page.screens.today import reason_of
from daemon.api.page.views.machine_view import machine_view
from daemon.api.page.visit import Visit, redirect, render, screen
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.ledger.take_over import TakeOverRefused
from daemon.store.tables.book.deferred import backlog


async def _spare(visit: Visit) -> Reply:
    now = visit.deps.clock()
    pairs = [
        {
            "first": machine_view(each, visit, now),
            "spare": machine_view(each.spare, visit, now),
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
