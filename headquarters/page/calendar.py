"""Shops × days, one shop, and one closure in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from litestar import Response, get
from litestar.exceptions import NotFoundException

from common.web.formats import depth
from common.web.security import RIGHT
from common.wire.closure import read_closure
from headquarters.core.closure_record import machine_of
from headquarters.page.shared import AnyRequest, Screens, days_of, month_of, page_of, text_of, with_those_beside
from headquarters.store.figures import Cell, Total
from headquarters.store.store import HqStore

SHOPS = 50
"""On one page; a month of them."""


@get("/ui/", opt={RIGHT: "reader"})
async def calendar(request: AnyRequest, screens: Screens) -> Response[bytes]:
    caller = await screens.caller(request)
    today = screens.today()
    month, region = month_of(request, today), text_of(request, "region")
    since = datetime.fromisoformat(f"{month}-01").replace(tzinfo=screens.zone).timestamp()
    values = await screens.run(_calendar, screens.store, month, region, page_of(request), int(since * 1000))
    recent = (today - timedelta(days=1)).isoformat(), today.isoformat()
    totals = {total.day: total for total in await screens.run(screens.store.figures.totals, *recent)}
    return screens.render(
        request,
        "calendar.html",
        caller,
        **values,
        **with_those_beside(month),
        region=region,
        recent=[(day, totals.get(day)) for day in recent],
        today=today.isoformat(),
    )


def _calendar(store: HqStore, month: str, region: str, page: int, since: int) -> dict[str, Any]:
    """`since`: when the month begins (ms); a shop that was closed for good after that is shown."""
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


def _depths(cells: Sequence[Cell]) -> dict[tuple[str, str], int]:
    """By the day's money against the greatest of its own shop."""
    most: dict[str, int] = {}
    for cell in cells:
        most[cell.machine] = max(most.get(cell.machine, 1), cell.ttc)
    return {(c.machine, c.day): depth(c.ttc, most[c.machine]) for c in cells}


@get("/ui/shops/{nim:str}", opt={RIGHT: "reader"})
async def shop(request: AnyRequest, screens: Screens, nim: str) -> Response[bytes]:
    caller = await screens.caller(request)
    machine, month = machine_of(nim), month_of(request, screens.today())
    box = await screens.run(screens.store.register.box, machine)
    if box is None:
        raise NotFoundException
    days = days_of(month)
    lines = await screens.run(lambda: list(screens.store.figures.of_days(days[0], days[-1], machines=[machine])))
    totals = {total.day: total for total in await screens.run(_totals, screens.store, machine, days)}
    words = (await screens.run(screens.store.presences.last_words, [machine])).get(machine)
    findings = await screens.run(screens.store.findings.listed, machine=machine, limit=50)
    return screens.render(
        request,
        "shop.html",
        caller,
        box=box,
        lines=lines,
        days=days,
        totals=totals,
        **with_those_beside(month),
        word=words,
        findings=findings,
        closed=await screens.run(screens.store.figures.calendar, machine, month[:4]),
        has_key=any(key.revoked_at is None for key in await screens.run(screens.store.register.keys, machine)),
        ledgers=await screens.run(screens.store.register.ledgers, machine),
    )


def _totals(store: HqStore, machine: str, days: list[str]) -> list[Total]:
    return list(store.figures.totals(days[0], days[-1], machines=[machine]))


@get("/ui/closures/{machine:str}/{id_:str}", opt={RIGHT: "reader"})
async def closure(request: AnyRequest, screens: Screens, machine: str, id_: str) -> Response[bytes]:
    caller = await screens.caller(request)
    whole = await screens.run(screens.store.figures.whole, machine, id_)
    if whole is None:
        raise NotFoundException
    box = await screens.run(screens.store.register.box, machine)
    count = read_closure(whole.body).data.cash_count
    return screens.render(request, "closure.html", caller, whole=whole, line=whole.line, box=box, count=count)
