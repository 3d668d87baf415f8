"""A month as accountants' spreadsheets in France and West Africa read it: semicolons, UTF-8 with its mark, days as 06/12/2025.

One line for each closure; a column for each tax group and payment that occurs in the month. Whole XOF."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import tzinfo
from typing import IO

from headquarters.store.figures import Line
from headquarters.store.register import Box
from headquarters.store.store import Store
from pagekit.formats import day, moment

HEAD = (
    *("Jour", "NIM", "Magasin", "Région", "Z", "Début", "Fin", "Factures", "Total HT", "TVA", "Total TTC"),
    *("Identifiant",),
)
_COMMANDS = ("=", "+", "-", "@", "\t", "\r")


def write_month(file: IO[bytes], store: Store, days: Sequence[str], zone: tzinfo) -> None:
    """The months' closures are read twice, the first time for the columns: none is held in memory."""
    groups, payments = _columns(store, days)
    boxes = {box.machine: box for box in store.register.boxes()}
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="", write_through=True)
    rows = csv.writer(text, delimiter=";", lineterminator="\r\n")
    taxes = [f"{name} {group}" for group in groups for name in ("HT", "TVA", "TTC")]
    rows.writerow([*HEAD, *taxes, *(safe(label) for label in payments)])
    for line in store.figures.of_days(days[0], days[-1]):
        rows.writerow(_row(line, boxes.get(line.machine), groups, payments, zone))
    text.detach()


def _columns(store: Store, days: Sequence[str]) -> tuple[list[str], list[str]]:
    groups: set[str] = set()
    payments: set[str] = set()
    for line in store.figures.of_days(days[0], days[-1]):
        groups.update(name for name, *_ in line.groups)
        payments.update(label for label, _ in line.payments)
    return sorted(groups), sorted(payments)


def _row(line: Line, box: Box | None, groups: Sequence[str], payments: Sequence[str], zone: tzinfo) -> list[str | int]:
    taxes = {name: amounts for name, *amounts in line.groups}
    paid = dict(line.payments)
    return [
        *(day(line.day, "fr"), line.nim, safe(box.label if box else ""), safe(box.region if box else ""), line.z),
        *(moment(line.period_start, zone, "fr"), moment(line.period_end, zone, "fr")),
        *(line.certs, line.ht, line.tva, line.ttc, line.id),
        *(amount for group in groups for amount in taxes.get(group, [0, 0, 0])),
        *(paid.get(label, 0) for label in payments),
    ]


def safe(text: str) -> str:
    """A text that a spreadsheet would run as a formula is one no more."""
    return f"'{text}" if text.startswith(_COMMANDS) else text
