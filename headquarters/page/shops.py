"""Pages: shops × days, one shop, one closure in full."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import quote

from litestar import Response, get, post
from litestar.exceptions import NotFoundException
from litestar.response import Redirect

from common.web.formats import depth
from common.web.security import RIGHT
from common.wire.closure import read_closure
from common.wire.instants import now_millis
from headquarters.core.checks import machine_of
from headquarters.page.shared import (
    NO_NAME,
    AnyRequest,
    Screens,
    days_of,
    form_of,
    month_of,
    names_of,
    page_of,
    text_of,
    with_neighbours,
)
from headquarters.store.figures import Cell, DayTotal
from headquarters.store.store import HqStore

SHOPS = 50
"""Shops per page, with a month of closures."""


@get("/ui/", opt={RIGHT: "reader"})
async def calendar(request: AnyRequest, screens: Screens) -> Response[bytes]:
    today = screens.today()
    month, region = month_of(request, today), text_of(request, "region")
    since = datetime.fromisoformat(f"{month}-01").replace(tzinfo=screens.zone).timestamp()
    values = await screens.run(_calendar, screens.store, month, region, page_of(request), int(since * 1000))
    values["days"] = _visible_days(values["days"], values["cells"], today.isoformat())
    values["recent"] = await screens.run(_recent, screens.store, today, region)
    own = {"region": region, "today": today.isoformat(), **with_neighbours(month)}
    return screens.render(request, "calendar.html", **values, **own)


def _recent(store: HqStore, today: date, region: str) -> list[tuple[str, DayTotal | None]]:
    """Totals of yesterday and today."""
    machines = [box.machine for box in store.register.boxes(region)] if region else None
    days = (today - timedelta(days=1)).isoformat(), today.isoformat()
    totals = store.figures.totals(*days, machines=machines)
    return [(day, totals.get(day)) for day in days]


def _calendar(store: HqStore, month: str, region: str, page: int, since: int) -> dict[str, Any]:
    """`since` is the month's start (ms); shops retired later are included."""
    boxes, count, page = store.register.some(region or None, page, SHOPS, since)
    machines = [box.machine for box in boxes]
    days = days_of(month)
    cells = store.figures.cells(machines, days[0], days[-1])
    found = Counter(store.findings.open_by_machine(machines))
    return {
        "boxes": boxes,
        "count": count,
        "page": page,
        "days": days,
        "cells": {(cell.machine, cell.day): cell for cell in cells},
        "depth": _depths(cells),
        "found": found,
        "regions": store.register.regions(),
        "open_findings": store.findings.count_open(),
        "is_last": (page + 1) * SHOPS >= count,
    }


def _visible_days(days: list[str], cells: Iterable[tuple[str, str]], today: str) -> list[str]:
    """Omits future days of the month, so that a phone shows the latest first; `cells` by machine and day, because a
    box's clock may be ahead."""
    last = max([today, *(day for _, day in cells)])
    return [day for day in days if day <= last] or days


def _depths(cells: Sequence[Cell]) -> dict[tuple[str, str], int]:
    """Depth of colour of a day: its amount relative to the shop's largest."""
    most: dict[str, int] = {}
    for cell in cells:
        most[cell.machine] = max(most.get(cell.machine, 1), cell.ttc)
    return {(c.machine, c.day): depth(c.ttc, most[c.machine]) for c in cells}


@get("/ui/shops/{nim:str}", opt={RIGHT: "reader"})
async def shop(request: AnyRequest, screens: Screens, nim: str) -> Response[bytes]:
    return await _page(request, screens, nim)


async def _page(request: AnyRequest, screens: Screens, nim: str, status: int = 200, **own: Any) -> Response[bytes]:
    month = month_of(request, screens.today())
    values = await screens.run(_shop, screens.store, machine_of(nim), month)
    return screens.render(request, "shop.html", status, **values, **with_neighbours(month), **own)


@post("/ui/shops/{nim:str}", status_code=303, opt={RIGHT: "admin"})
async def rename(request: AnyRequest, screens: Screens, nim: str) -> Response[bytes] | Redirect:
    """Gives the shop another name and region."""
    form = await form_of(request)
    named = names_of(form)
    if named is None:
        return await _page(request, screens, nim, 422, problem=NO_NAME, form=form)
    if not await screens.run(screens.store.register.change, machine_of(nim), now_millis(), **named):
        raise NotFoundException
    return Redirect(f"/ui/shops/{quote(nim)}", status_code=303)


def _shop(store: HqStore, machine: str, month: str) -> dict[str, Any]:
    box, days = store.register.box(machine), days_of(month)
    if box is None:
        raise NotFoundException
    with store.figures.days_read(days[0], days[-1], machines=[machine], replaced=True) as read:
        lines = list(read())
    totals: Counter[str] = Counter()
    for line in lines:
        totals[line.day] += line.ttc if line.replaced_by is None else 0
    return {
        "box": box,
        "lines": lines,
        "by_day": [(day, totals[day]) for day in days],
        "stored": store.presences.latest([machine]).get(machine),
        "findings": store.findings.listed(machine=machine, limit=50),
        "closed": store.figures.calendar(machine, month[:4]),
        "has_key": any(key.revoked_at is None for key in store.register.keys(machine)),
        "ledgers": store.register.ledgers(machine),
    }


@get("/ui/closures/{machine:str}/{id_:str}", opt={RIGHT: "reader"})
async def closure(request: AnyRequest, screens: Screens, machine: str, id_: str) -> Response[bytes]:
    whole = await screens.run(screens.store.figures.proven_closures, machine, id_)
    if whole is None:
        raise NotFoundException
    box = await screens.run(screens.store.register.box, machine)
    count = read_closure(whole.body).data.cash_count
    return screens.render(request, "closure.html", whole=whole, line=whole, box=box, count=count)
