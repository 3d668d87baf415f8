"""A month as accountants' spreadsheets in France and West Africa read it: semicolons, UTF-8 with its mark, days as 06/12/2025.

One line for each closure; a column for each tax group and payment that occurs in the month. Whole XOF."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import IO, Any

from common.spreadsheet import plain_cell
from common.web.formats import day, moment
from headquarters.store.figures import ClosureLine
from headquarters.store.register import RegisteredBox
from headquarters.store.store import HqStore

HEAD = (
    *("Jour", "NIM", "Magasin", "Région", "Z", "Début", "Fin", "Factures", "Total HT", "TVA", "Total TTC"),
    *("Identifiant",),
)


def write_month(file: IO[bytes], store: HqStore, days: Sequence[str], zone: tzinfo) -> None:
    """The month's closures are read twice from one snapshot, the first time for the columns: none is held in memory."""
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
    """The tax groups and payments that occur."""
    groups: set[str] = set()
    payments: set[str] = set()
    for line in lines:
        groups.update(name for name, *_ in line.groups)
        payments.update(label for label, _ in line.payments)
    return sorted(groups), sorted(payments)


def _headings(groups: Sequence[str], payments: Sequence[str]) -> list[str]:
    """Each is there once, whatever shops call their payments."""
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
    """By name: a closure may have two payments of one label, one for each method."""
    found: dict[str, tuple[int, ...]] = {}
    for name, *amounts in named:
        before = found.get(name, (0,) * len(amounts))
        found[name] = tuple(map(sum, zip(before, amounts, strict=True)))
    return found
