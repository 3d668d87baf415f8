"""Totals of a month by day, tax group, payment and shop, with charts; CSV export of the month."""

import csv
import io
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack
from datetime import date, timedelta, tzinfo
from tempfile import TemporaryFile
from typing import IO, Any

from litestar import Response, get
from litestar.response import Stream

from common.numbers import plain_cell
from common.web.formats import day, moment
from common.web.security import HEADERS, RIGHT
from headquarters.page.shared import ROLE, AnyRequest, Screens, days_of, month_of, text_of, with_neighbours
from headquarters.store.figures import ClosureLine
from headquarters.store.register import RegisteredBox
from headquarters.store.store import HqStore

MONTHS = 13
PIECE = 65_536
MAX_SHOPS = 100

HEAD = (
    *("Jour", "NIM", "Magasin", "Région", "Z", "Début", "Fin", "Factures", "Total HT", "TVA", "Total TTC"),
    *("Identifiant",),
)


@get("/ui/totals", opt={RIGHT: "reader"})
async def totals(request: AnyRequest, screens: Screens) -> Response[bytes]:
    month, region = month_of(request, screens.today()), text_of(request, "region")
    values = await screens.run_long(_month, screens.store, days_of(month), region)
    return screens.render(request, "totals.html", **values, **with_neighbours(month), region=region)


def _month(store: HqStore, days: Sequence[str], region: str) -> dict[str, Any]:
    boxes = {box.machine: box for box in store.register.boxes(region or None)}
    groups: dict[str, list[int]] = {}
    payments: Counter[str] = Counter()
    shops: Counter[str] = Counter()
    by_day: dict[str, list[int]] = {day: [0, 0, 0, 0, 0] for day in days}
    numbers: dict[str, list[int]] = {}
    machines = list(boxes) if region else None
    with store.figures.days_read(days[0], days[-1], machines=machines, replaced=True) as read:
        for line in read():
            numbers.setdefault(line.machine, []).append(line.z)
            if line.replaced_by is not None:
                continue
            _add(by_day[line.day], 1, line.certs, line.ht, line.tva, line.ttc)
            shops[line.machine] += line.ttc
            for name, *amounts in line.groups:
                _add(groups.setdefault(name, [0, 0, 0]), *amounts)
            for label, amount in line.payments:
                payments[label] += amount
    first = [(machine, boxes.get(machine), ttc) for machine, ttc in shops.most_common(MAX_SHOPS)]
    whole = [sum(column) for column in zip(*by_day.values(), strict=True)]
    missing = sum(max(each) - min(each) + 1 - len(set(each)) for each in numbers.values())
    values = {"by_day": by_day, "shops": first, "whole": whole, "regions": store.register.regions(), "missing": missing}
    return values | {"groups": sorted(groups.items()), "payments": payments.most_common(), "all_shops": len(shops)}


def _add(to: list[int], *values: int) -> None:
    for index, value in enumerate(values):
        to[index] += value


@get("/ui/exports", opt={RIGHT: "accountant"})
async def exports(request: AnyRequest, screens: Screens) -> Response[bytes]:
    month = date.fromisoformat(f"{screens.today():%Y-%m}-15")
    months = [f"{month - timedelta(days=30 * back):%Y-%m}" for back in range(MONTHS)]
    return screens.render(request, "exports.html", months=list(dict.fromkeys(months)))


@get("/ui/exports/closures.csv", opt={ROLE: "accountant"})
async def closures_csv(request: AnyRequest, screens: Screens) -> Stream:
    """Written to a temporary file first, so that a slow client does not keep a transaction open."""
    month = month_of(request, screens.today())
    file: IO[bytes] = await screens.run_long(_written, screens, month)
    headers = HEADERS | {"content-disposition": f'attachment; filename="clotures-{month}.csv"'}
    return Stream(_pieces(file), media_type="text/csv; charset=utf-8", headers=headers)


def _written(screens: Screens, month: str) -> IO[Any]:
    with ExitStack() as stack:
        file = stack.enter_context(TemporaryFile("w+b"))
        write_month(file, screens.store, days_of(month), screens.zone)
        file.seek(0)
        stack.pop_all()  # closed by the sender
        return file


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := file.read(PIECE):
            yield piece


def write_month(file: IO[bytes], store: HqStore, days: Sequence[str], zone: tzinfo) -> None:
    """Reads the month twice from one snapshot, first for the columns, so that no closure stays in memory."""
    with store.figures.days_read(days[0], days[-1]) as lines:
        groups, payments = _names(lines())
        boxes = {box.machine: box for box in store.register.boxes()}
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="", write_through=True)
        rows = csv.writer(text, delimiter=";", lineterminator="\r\n")
        rows.writerow(_headings(groups, payments))
        for line in lines():
            rows.writerow(_row(line, boxes.get(line.machine), groups, payments, zone))
    text.detach()


def _names(lines: Iterable[ClosureLine]) -> tuple[list[str], list[str]]:
    """All tax groups and payment labels of the month."""
    groups: set[str] = set()
    payments: set[str] = set()
    for line in lines:
        groups.update(name for name, *_ in line.groups)
        payments.update(label for label, _ in line.payments)
    return sorted(groups), sorted(payments)


def _headings(groups: Sequence[str], payments: Sequence[str]) -> list[str]:
    """Makes headings unique, whatever the payment labels."""
    headings = list(HEAD)
    wanted = [f"{name} {group}" for group in groups for name in ("HT", "TVA", "TTC")]
    for name in (*wanted, *payments):
        heading, number = plain_cell(name), 1
        while heading in headings:
            number += 1
            heading = f"{plain_cell(name)} ({number})"
        headings.append(heading)
    return headings


def _row(
    line: ClosureLine, box: RegisteredBox | None, groups: Sequence[str], payments: Sequence[str], zone: tzinfo
) -> list[str | int]:
    taxes, paid = _sums(line.groups), _sums(line.payments)
    return [
        *(day(line.day, "fr"), line.nim, plain_cell(box.label if box else ""), plain_cell(box.region if box else "")),
        *(line.z, moment(line.period_start, zone, "fr"), moment(line.period_end, zone, "fr")),
        *(line.certs, line.ht, line.tva, line.ttc, line.id),
        *(amount for group in groups for amount in taxes.get(group, (0, 0, 0))),
        *(amount for label in payments for amount in paid.get(label, (0,))),
    ]


def _sums(named: Iterable[tuple[Any, ...]]) -> dict[str, tuple[int, ...]]:
    """Sums by name: a closure may have two payments with one label, one per method."""
    found: dict[str, tuple[int, ...]] = {}
    for name, *amounts in named:
        before = found.get(name, (0,) * len(amounts))
        found[name] = tuple(map(sum, zip(before, amounts, strict=True)))
    return found
