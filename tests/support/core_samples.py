"""Bodies, records and closures that the core's tests share."""

import msgspec

from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book, BookState, Closure
from daemon.core.machine.state import FiscalCounters

NIM = "EL02000015-1"
BOOK = Book(1, NIM, "live")
DEFAULTS = Defaults(operator_id="7", operator_name="Caisse 7", isf="ISF1")
RATES = dict(zip("ABCDEFGHIJKLMNOP", (0, 18, 10, 0, 0, 18, 10, 0, 0, 0, 0, 10, 10, 0, 0, 0), strict=True))
RATES = {group: rate * 100 for group, rate in RATES.items()}
AT = 1_767_607_200_123  # 2026-01-05T10:00:00.123Z


def as_json(value):
    return msgspec.json.decode(msgspec.json.encode(value))


def item(**fields):
    return {"name": "Riz 25kg", "taxGroup": "B", "amountTtc": 15000, **fields}


def body(*items, pay=None, **fields):
    """A sale of those items (one of 15 000 by default), paid in cash: by the sum of the amounts unless `pay` says."""
    items = list(items) or [item()]
    paid = sum(one.get("amountTtc", 0) for one in items) if pay is None else pay
    return {
        "invoiceNumber": "FV-1",
        "invoiceType": "FV",
        "items": items,
        "payments": [{"method": "E", "amount": paid}],
        **fields,
    }


def read(request, *, credit=False, rates=RATES, strict=False):
    return read_invoice(request, defaults=DEFAULTS, rates=rates, credit=credit, strict=strict)


def credit_body(*items, pay=None, **fields):
    return body(*items, pay=pay, **{"invoiceType": "FA", "creditNoteRef": f"{NIM}-291", **fields})


def record(request=None, *, credit=False, **fields):
    return recorded(read(body() if request is None else request, credit=credit), **fields)


def recorded(invoice, /, **fields):
    """As it was certified; `fields` are those of the record that are others."""
    return Record(
        **{
            "id": 1,
            "number": invoice.number,
            "type": invoice.type,
            "state": "certified",
            "begun_at": AT - 200,
            "base": FiscalCounters(10, 8, 1),
            "total_ttc": invoice.total_ttc,
            "invoice": invoice,
            "seq": 1,
            "ended_at": AT,
            "code": "TESTCODE1234567890ABCDEF",
            "machine_time": "20260105100000",
            "ifu": "00084440Y",
            "counters": FiscalCounters(11, 9, 1),
            "nim": NIM,
            "line_ms": 59,
            "duration_ms": 64,
            "request_id": "req-1",
            **fields,
        }
    )


def book_state(**fields):
    """Of a machine that nothing is known of."""
    machine = {
        "counters": None,
        "last_number": "",
        "last_at": 0,
        "last_seq": 0,
        "rates": {},
        "ifu": "",
        "attention": "",
    }
    numbers = {
        "unexplained": 0,
        "z_number": 0,
        "epoch": 1,
        "needs_last_z": False,
        "is_restored": False,
        "last_code": "",
    }
    repairs = {"lost": "", "accepted_to": 0, "time_repairs": 0, "seen": None, "in_use": True}
    return BookState(**{"book": BOOK} | machine | numbers | repairs | fields)


def closure(**fields):
    return Closure(
        **{
            "z_number": 3,
            "report_id": "6f0d7f0e-3f0e-4a5e-9d59-0d6b6c6c7a11",
            "period_start": AT - 1000,
            "period_end": AT,
            "created_at": AT,
            "certs_count": 2,
            "total_ttc": 30000,
            "counters": FiscalCounters(12, 10, 1),
            "unexplained": 0,
            "first_seq": 5,
            "last_seq": 6,
            "body": b"{}",
            "hash": b"",
            **fields,
        }
    )
