"""Totals of a month by day, tax group, payment and shop, with charts; and the month as a file for accountants."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import date, timedelta
from tempfile import TemporaryFile
from typing import IO, Any

from litestar import Response, get
from litestar.response import Stream

from common.web.asked import RIGHT
from common.web.security import HEADERS
from headquarters.page.accountants import write_month
from headquarters.page.shared import AnyRequest, Screens, days_of, month_of, text_of, with_those_beside
from headquarters.store.store import HqStore

MONTHS = 13
PIECE = 65_536
MOST_SHOPS = 100


@get("/ui/totals", opt={RIGHT: "reader"})
async def totals(request: AnyRequest, screens: Screens) -> Response[bytes]:
    caller = await screens.caller(request)
    month, region = month_of(request, screens.today()), text_of(request, "region")
    values = await screens.run_long(_month, screens.store, days_of(month), region)
    return screens.shown(
        request,
        "totals.html",
        caller,
        **values,
        **with_those_beside(month),
        region=region,
        regions=await screens.run(screens.store.register.regions),
    )


def _month(store: HqStore, days: Sequence[str], region: str) -> dict[str, Any]:
    boxes = {box.machine: box for box in store.register.boxes(region or None)}
    groups: dict[str, list[int]] = {}
    payments: Counter[str] = Counter()
    shops: Counter[str] = Counter()
    by_day: dict[str, list[int]] = {day: [0, 0, 0, 0, 0] for day in days}
    for line in store.figures.of_days(days[0], days[-1]):
        if region and line.machine not in boxes:
            continue
        _add(by_day[line.day], 1, line.certs, line.ht, line.tva, line.ttc)
        shops[line.machine] += line.ttc
        for name, *amounts in line.groups:
            _add(groups.setdefault(name, [0, 0, 0]), *amounts)
        for label, amount in line.payments:
            payments[label] += amount
    first = [(machine, boxes.get(machine), ttc) for machine, ttc in shops.most_common(MOST_SHOPS)]
    whole = [sum(column) for column in zip(*by_day.values(), strict=True)]
    return {
        "by_day": by_day,
        "groups": sorted(groups.items()),
        "payments": payments.most_common(),
        "shops": first,
        "whole": whole,
    }


def _add(to: list[int], *values: int) -> None:
    for index, value in enumerate(values):
        to[index] += value


@get("/ui/exports", opt={RIGHT: "accountant"})
async def exports(request: AnyRequest, screens: Screens) -> Response[bytes]:
    caller = await screens.caller(request, "accountant")
    month = date.fromisoformat(f"{screens.today():%Y-%m}-15")
    months = [f"{month - timedelta(days=30 * back):%Y-%m}" for back in range(MONTHS)]
    return screens.shown(request, "exports.html", caller, months=list(dict.fromkeys(months)))


@get("/ui/exports/closures.csv")
async def closures_csv(request: AnyRequest, screens: Screens) -> Stream:
    """Written to a file first, so that a slow line holds no transaction of the database."""
    await screens.caller(request, "accountant")
    month = month_of(request, screens.today())
    file: IO[bytes] = await screens.run_long(_written, screens, month)
    headers = HEADERS | {"content-disposition": f'attachment; filename="clotures-{month}.csv"'}
    return Stream(_pieces(file), media_type="text/csv; charset=utf-8", headers=headers)


def _written(screens: Screens, month: str) -> IO[Any]:
    file = TemporaryFile("w+b")  # noqa: SIM115  # closed by who sends it
    write_month(file, screens.store, days_of(month), screens.zone)
    file.seek(0)
    return file


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := file.read(PIECE):
            yield piece
