"""The journal as a French Excel or LibreOffice opens it by a double click: semicolons, a byte order mark, French headings, dates as
they are written in Burkina Faso. The cells are those of `journal_csv`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Final

from common.language.stored import retold
from daemon.core.clock import machine_millis, millis_text
from daemon.core.report.journal_csv import COLUMNS, Cell

MARK: Final = "\ufeff"
"""By which a spreadsheet knows UTF-8."""
_SHOWN: Final = "%d/%m/%Y %H:%M:%S"

HEADINGS: Final[dict[str, str]] = {
    "seq": "N° d'ordre",
    "state": "État",
    "invoiceNumber": "Facture",
    "invoiceType": "Type",
    "codeSecef": "Code SECeF",
    "dateTime": "Date de la MCF",
    "begunAt": "Début",
    "endedAt": "Fin",
    "totalTtc": "Total TTC",
    "totalHt": "Total HT",
    "totalTva": "TVA",
    "specificTax": "Taxe spécifique",
    "psvbGroup": "Groupe PSVB",
    "psvbAmount": "PSVB",
    "paidE": "Espèces",
    "paidV": "Virement",
    "paidC": "Carte bancaire",
    "paidM": "Mobile money",
    "paidB": "Chèque",
    "paidA": "Autre",
    "tc": "TC",
    "fvc": "FVC",
    "frc": "FRC",
    "zNumber": "N° de Z",
    "creditNoteNature": "Nature de l'avoir",
    "creditNoteRef": "Facture d'origine",
    "operatorId": "N° d'opérateur",
    "operatorName": "Opérateur",
    "clientType": "Type de client",
    "customerIfu": "IFU du client",
    "customerName": "Client",
    "reason": "Motif",
    "requestId": "Requête",
    "cash": "Mouvement de caisse",
    "nim": "NIM",
}
STATES: Final = {
    "certified": "certifiée",
    "refused": "refusée",
    "abandoned": "abandonnée",
    "begun": "commencée",
    "disputed": "à régler",
    "damaged": "illisible",
    "deposit": "dépôt",
    "withdrawal": "retrait",
}


def excel_header() -> str:
    return MARK + excel_lines([tuple(HEADINGS[name] for name in COLUMNS)])


def excel_lines(rows: Iterable[tuple[Cell, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows(rows)
    return text.getvalue()


def excel_row(row: tuple[Cell, ...], zone: tzinfo) -> tuple[Cell, ...]:
    """One line of `journal_csv.csv_row`; times on the clock of the shop."""
    cells = dict(zip(COLUMNS, row, strict=True))
    cells["state"] = STATES.get(str(cells["state"]), cells["state"])
    cells["reason"] = cells["reason"] and retold(str(cells["reason"]), "fr")
    at = machine_millis(str(cells["dateTime"]))
    cells["dateTime"] = cells["dateTime"] if at is None else _shown(millis_text(at), zone)
    for name in ("begunAt", "endedAt"):
        cells[name] = cells[name] and _shown(str(cells[name]), zone)
    return tuple(cells.values())


def _shown(text: str, zone: tzinfo) -> str:
    return datetime.fromisoformat(text).astimezone(zone).strftime(_SHOWN)
