"""Sales that wait for their certification, and what people decide on them."""

from __future__ import annotations

from daemon.api.http.answers import Reply
from daemon.api.page.screens.attention import REASON, SHORTEST_REASON
from daemon.api.page.visit import Visit, redirect, screen, shown
from daemon.core.errors import FieldError, InvalidRequest, NotFound
from daemon.usecases.deferred.look import backlog, find_sale, open_sales
from daemon.usecases.deferred.take_back import release, withdraw

PER_PAGE = 100


@screen("/ui/waiting", "look")
async def waiting(visit: Visit) -> Reply:
    worker, after = visit.worker, visit.query.get("after", "")
    since = int(after) if after.isascii() and after.isdigit() and len(after) < 10 else 0  # noqa: PLR2004  digits
    sales = await open_sales(worker, since, PER_PAGE)
    return await shown(
        visit,
        "waiting.html",
        sales=sales,
        backlog=await backlog(worker),
        now=worker.now(),
        more=visit.link("/ui/waiting", after=str(sales[-1].id)) if len(sales) == PER_PAGE else "",
    )


@screen("/ui/waiting/{sale:int}", "close", change=True)
async def decide_sale(visit: Visit) -> Reply:
    """It is taken back, or, in doubt after a restore, was not certified and waits again."""
    worker, form = visit.worker, visit.form
    sale = await find_sale(worker, visit.request.path_params["sale"])
    if sale is None:
        raise NotFound("there is no such sale")
    reason = form.get("reason", "").strip()
    if len(reason) < SHORTEST_REASON:
        raise InvalidRequest([FieldError("reason", REASON.told(visit.language))])
    decide = release if form.get("decision") == "release" else withdraw
    await decide(worker, sale, reason[:200], by=visit.actor)
    return redirect(visit.link("/ui/waiting"))


HANDLERS = (waiting, decide_sale)
