"""The journal as CSV (RFC 4180): one line for each entry, amounts in whole XOF, for spreadsheets and auditors.

What a till wrote freely may look like a formula to a spreadsheet; such a cell gets an apostrophe in front. JSON Lines carries everything,
and exactly as it is."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Final

from common.spreadsheet import plain_cell
from daemon.core.clock import millis_text
from daemon.core.invoice.invoice import PAYMENT_METHODS
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.entries import Placed
from daemon.core.report.cash import move_of
from daemon.core.report.journal import told_reason

COLUMNS: Final = (
    *("seq", "state", "invoiceNumber", "invoiceType", "codeSecef", "dateTime", "begunAt", "endedAt"),
    *("totalTtc", "totalHt", "totalTva", "specificTax", "psvbGroup", "psvbAmount"),
    *(f"paid{method}" for method in PAYMENT_METHODS),
    *("tc", "fvc", "frc", "zNumber", "creditNoteNature", "creditNoteRef"),
    *("operatorId", "operatorName", "clientType", "customerIfu", "customerName", "reason", "requestId", "cash", "nim"),
)
"""`cash` is what a movement of cash put into the drawer, below 0 what it took out; such a line has no totals."""
Cell = str | int | None


def csv_header() -> str:
    return csv_lines([COLUMNS])


def csv_lines(rows: Iterable[tuple[Cell, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def csv_row(record: Record, z_number: int) -> tuple[Cell, ...]:
    """As `COLUMNS`; totals are those of the invoice alone, positive for a credit note too."""
    invoice, counters = record.invoice, record.counters
    paid = dict.fromkeys(PAYMENT_METHODS, 0)
    for payment in invoice.payments:
        paid[payment.method] += payment.amount
    customer, psvb = invoice.customer, invoice.psvb
    return (
        record.seq or None,
        record.state,
        plain_cell(record.number),
        record.type,
        record.code,
        record.machine_time,
        millis_text(record.begun_at) if record.begun_at else None,
        millis_text(record.ended_at) if record.ended_at else None,
        record.total_ttc,
        sum(line.ht for line in invoice.taxes),
        sum(line.tva for line in invoice.taxes),
        invoice.specific_tax,
        psvb.group if psvb else None,
        psvb.amount if psvb else None,
        *paid.values(),
        *((counters.tc, counters.fvc, counters.frc) if counters else (None, None, None)),
        z_number or None,
        invoice.nature,
        plain_cell(invoice.reference),
        plain_cell(invoice.operator_id),
        plain_cell(invoice.operator_name),
        customer.client_type,
        plain_cell(customer.ifu),
        plain_cell(customer.name),
        plain_cell(told_reason(record)),
        plain_cell(record.request_id),
        None,
        record.nim,
    )


def csv_cash(placed: Placed, z_number: int) -> tuple[Cell, ...]:
    """A movement of cash as one of the lines (decision 34)."""
    move, at = move_of(placed), millis_text(placed.at)
    cells: dict[str, Cell] = {
        "state": move.kind,
        "begunAt": at,
        "endedAt": at,
        "zNumber": z_number or None,
        "operatorId": plain_cell(move.operator_id),
        "operatorName": plain_cell(move.operator_name),
        "reason": plain_cell(move.reason),
        "cash": move.amount if move.kind == "deposit" else -move.amount,
    }
    return tuple(cells.get(name) for name in COLUMNS)
