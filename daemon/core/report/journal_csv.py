"""The journal as CSV: one line for each entry, amounts in whole XOF, for spreadsheets and auditors; in the form of RFC 4180, and as a French Excel
or LibreOffice opens it by a double click.

What a till wrote freely may look like a formula to a spreadsheet; such a cell gets an apostrophe in front. JSON Lines carries everything,
and exactly as it is."""

import csv
import io
from collections.abc import Callable, Iterable
from datetime import datetime, tzinfo
from functools import partial
from typing import Final, NamedTuple

from common.language import Language
from common.numbers import plain_cell
from daemon.core.clock import machine_millis, millis_text
from daemon.core.invoice.invoice import PAYMENT_LABELS, Invoice
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.entries import CashMove, CopyAct, OutageBegun, OutageEnded, OutageNotified, Placed, ReportAct
from daemon.core.report.journal import PRICE_DECIMALS, QUANTITY_DECIMALS, exact, reason_text

Cell = str | int | None
MARK: Final = "\ufeff"
"""By which a spreadsheet knows UTF-8."""
STATES: Final = {
    "certified": "certifiée",
    "refused": "refusée",
    "abandoned": "abandonnée",
    "begun": "commencée",
    "disputed": "à régler",
    "damaged": "illisible",
    "deposit": "dépôt",
    "withdrawal": "retrait",
    "copy": "duplicata",
    "report": "rapport",
    "outage": "panne",
    "outage.ended": "fin de panne",
    "outage.notified": "panne signalée",
}


class Column(NamedTuple):
    """`heading` is that of the French form."""

    name: str
    heading: str
    cell: Callable[[Record], Cell] = lambda _: None


def _paid(method: str, record: Record) -> int:
    return sum(payment.amount for payment in record.invoice.payments if payment.method == method)


def _withheld(record: Record) -> int | None:
    withholdings = record.invoice.withholdings
    return sum(psvb.amount for psvb in withholdings) if withholdings else None


def _comments(invoice: Invoice) -> str:
    return "; ".join(f"{comment.label}: {comment.text}" for comment in invoice.comments)


def _lines(invoice: Invoice) -> str:
    """As the till sent them: `2 x 15000 Riz 25 kg [B] = 30000`."""
    return "; ".join(
        f"{exact(item.printed_quantity, QUANTITY_DECIMALS)} x {exact(item.printed_price, PRICE_DECIMALS)} {item.name} "
        f"[{item.group}] = {item.line_amount}{f'.{item.line_cents:02}' if item.line_cents else ''}"
        for item in invoice.items
    )


_COLUMNS: Final = (
    Column("seq", "N° d'ordre", lambda record: record.seq or None),
    Column("state", "État", lambda record: record.state),
    Column("invoiceNumber", "Facture", lambda record: plain_cell(record.number)),
    Column("invoiceType", "Type", lambda record: record.type),
    Column("codeSecef", "Code SECeF", lambda record: record.code),
    Column("dateTime", "Date de la MCF", lambda record: record.machine_time),
    Column("begunAt", "Début", lambda record: millis_text(record.begun_at) if record.begun_at else None),
    Column("endedAt", "Fin", lambda record: millis_text(record.ended_at) if record.ended_at else None),
    Column("totalTtc", "Total TTC", lambda record: record.total_ttc),
    Column("totalHt", "Total HT", lambda record: sum(line.ht for line in record.invoice.taxes)),
    Column("totalTva", "TVA", lambda record: sum(line.tva for line in record.invoice.taxes)),
    Column("specificTax", "Taxe spécifique", lambda record: record.invoice.specific_tax),
    Column("psvbGroup", "Groupe PSVB", lambda record: "+".join(psvb.group for psvb in record.invoice.withholdings)),
    Column("psvbAmount", "PSVB", _withheld),
    *(Column(f"paid{method}", label, partial(_paid, method)) for method, label in PAYMENT_LABELS.items()),
    Column("tc", "TC", lambda record: record.counters.tc if record.counters else None),
    Column("fvc", "FVC", lambda record: record.counters.fvc if record.counters else None),
    Column("frc", "FRC", lambda record: record.counters.frc if record.counters else None),
    Column("zNumber", "N° de Z"),
    Column("creditNoteNature", "Nature de l'avoir", lambda record: record.invoice.nature),
    Column("creditNoteRef", "Facture d'origine", lambda record: plain_cell(record.invoice.reference)),
    Column("operatorId", "N° d'opérateur", lambda record: plain_cell(record.invoice.operator_id)),
    Column("operatorName", "Opérateur", lambda record: plain_cell(record.invoice.operator_name)),
    Column("clientType", "Type de client", lambda record: record.invoice.customer.client_type),
    Column("customerIfu", "IFU du client", lambda record: plain_cell(record.invoice.customer.ifu)),
    Column("customerName", "Client", lambda record: plain_cell(record.invoice.customer.name)),
    Column("reason", "Motif"),
    Column("requestId", "Requête", lambda record: plain_cell(record.request_id)),
    Column("cash", "Mouvement de caisse"),
    Column("nim", "NIM", lambda record: record.nim),
    Column("isf", "ISF", lambda record: plain_cell(record.invoice.isf)),
    Column("priceMode", "Mode de prix", lambda record: record.invoice.price_mode),
    Column("discount", "Remises", lambda record: record.invoice.discount),
    Column("stampDuty", "Timbre quittance", lambda record: record.invoice.stamp_duty),
    Column("comments", "Commentaires", lambda record: plain_cell(_comments(record.invoice))),
    Column("lines", "Lignes", lambda record: plain_cell(_lines(record.invoice))),
)
"""Totals are those of the invoice alone, positive for a credit note too. `cash` is what a movement of cash put into the drawer, below 0 what it
took out; such a line has no totals."""
_UNTOLD: Final = ("totalHt", "totalTva", "specificTax", "paid", "clientType", "priceMode", "discount", "stampDuty")
"""How those begin that are not known of an invoice that was taken over from its machine; no report's totals have it."""
COLUMNS: Final = tuple(column.name for column in _COLUMNS)
_Z_NUMBER: Final = COLUMNS.index("zNumber")
_REASON: Final = COLUMNS.index("reason")


def csv_header() -> str:
    return csv_lines([COLUMNS])


def excel_header() -> str:
    return MARK + excel_lines([tuple(column.heading for column in _COLUMNS)])


def csv_lines(rows: Iterable[tuple[Cell, ...]], delimiter: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue()


def excel_lines(rows: Iterable[tuple[Cell, ...]]) -> str:
    return csv_lines(rows, ";")


def csv_row(record: Record, z_number: int, language: Language = "en") -> tuple[Cell, ...]:
    """As `COLUMNS`; `language` is that of the reason."""
    is_whole = bool(record.invoice.items)
    cells = [column.cell(record) if is_whole or not column.name.startswith(_UNTOLD) else None for column in _COLUMNS]
    cells[_REASON] = plain_cell(reason_text(record, language))
    cells[_Z_NUMBER] = z_number or None
    return tuple(cells)


def csv_act(placed: Placed, z_number: int) -> tuple[Cell, ...]:
    """A duplicate, a report that was given out, an outage or a movement of cash (decision 34) as one of the lines."""
    act, at = placed.entry, millis_text(placed.at)
    cells: dict[str, Cell] = {"begunAt": at, "endedAt": at, "zNumber": z_number or None}
    if isinstance(act, CopyAct):
        cells |= {
            "state": "copy",
            "invoiceNumber": plain_cell(act.number),
            "codeSecef": act.code,
            "reason": str(act.copy),
        }
    elif isinstance(act, ReportAct):
        cells |= {"state": "report", "reason": f"{act.kind} {act.number or ''}".strip()}
    elif isinstance(act, OutageBegun):
        began = millis_text(placed.at - act.lasted)
        cells |= {"state": "outage", "begunAt": began, "reason": f"{act.number} {act.reason}"}
    elif isinstance(act, OutageEnded):
        over = millis_text(placed.at - act.ago)
        cells |= {"state": "outage.ended", "endedAt": over, "reason": str(act.number)}
    elif isinstance(act, OutageNotified):
        moment = millis_text(act.notified_at)
        reason = plain_cell(f"{act.number} {act.who} {act.reference}")
        cells |= {"state": "outage.notified", "begunAt": moment, "reason": reason}
    elif isinstance(act, CashMove):
        cells |= {
            "state": act.kind,
            "operatorId": plain_cell(act.operator_id),
            "operatorName": plain_cell(act.operator_name),
            "reason": plain_cell(act.reason),
            "cash": act.amount if act.kind == "deposit" else -act.amount,
        }
    return tuple(cells.get(name) for name in COLUMNS)


def excel_row(row: tuple[Cell, ...], zone: tzinfo) -> tuple[Cell, ...]:
    """One of `csv_row` or `csv_act` with words in French and times on the clock of the shop."""
    cells = dict(zip(COLUMNS, row, strict=True))
    cells["state"] = STATES.get(str(cells["state"]), cells["state"])
    at = machine_millis(str(cells["dateTime"]))
    cells["dateTime"] = cells["dateTime"] if at is None else _local_time(millis_text(at), zone)
    for name in ("begunAt", "endedAt"):
        cells[name] = cells[name] and _local_time(str(cells[name]), zone)
    return tuple(cells.values())


def _local_time(text: str, zone: tzinfo) -> str:
    return datetime.fromisoformat(text).astimezone(zone).strftime("%d/%m/%Y %H:%M:%S")
