"""What the OpenAPI document says in words. `FIELDS` explains answers field by field."""

from __future__ import annotations

from typing import Final

from daemon.api.document.wording_journal import BUYER, JOURNAL_FIELDS
from daemon.language import Text

INTRODUCTION: Final = Text("""**mcfd** certifies each invoice exactly once on the fiscal machine (MCF) beside this box, and keeps the reports X, Z and A. Every
request carries `Authorization: Bearer <key>`; a key is for one NIM. An `ak_test_…` key works on a simulated machine
(codes `TESTFACT…`), never on the real one. Send an `Idempotency-Key` with every POST: the same request, repeated after a cut,
gets the first answer and is never certified twice.""")
CONVENTIONS: Final = """Amounts are whole XOF. Timestamps are RFC 3339 in UTC. Errors are `application/problem+json`; `code` is what programs
should look at. In a body, `null` says the same as a field that is left out."""
PARAGRAPH: Final = "\n\n"

TAGS: Final = {
    "certification": Text("Invoices and credit notes"),
    "reports": Text("Reports and history"),
    "journal": Text("The electronic journal"),
    "paper": Text("Documents to print"),
    "events": Text("Live events"),
    "machine": Text("The fiscal machine"),
    "key": Text("The key"),
    "health": Text("Monitoring, without a key"),
}

PROBLEM_TEXTS: Final = {
    "Idempotency-Key": Text(
        "Chosen by the till, one for each invoice; the same key with the same body gets the first answer again, for at least 7 days, "
        "after a restart too."
    ),
    "X-Request-ID": Text(
        "Echoed in the answer and in the log when it is 1 to 128 printable ASCII characters; otherwise one is made up."
    ),
}

_GROUP = {"ht": "Without VAT", "tva": "VAT", "ttc": "With VAT; `ht + tva = ttc`, always"}
_PSVB = {
    "group": "PSVB group A…D",
    "base": "What it is taken on, XOF",
    "rate": "Percent",
    "amount": "Withheld, XOF, rounded half up",
}
_COUNTERS = {
    "tc": "All transactions the machine recorded, its own reports included",
    "fvc": "Sales invoices (FV, FT)",
    "frc": "Credit notes",
}
_TOTALS = {
    "nim": "The NIM of the path",
    "certs_count": "Certifications, credit notes included",
    "total_ttc": "With VAT, net: sales minus credit notes",
    "total_ht": "Without VAT, net",
    "total_tva": "VAT, net",
    "by_group": "By tax group, net, sorted by letter; groups that do not occur are left out",
    "by_type": "By invoice type, sorted; totals are positive, for credit notes too",
    "by_type_and_group": "By invoice type and tax group together; positive",
    "by_payment": "By payment method, net of what credit notes gave back",
    "credit_notes": "Credit notes alone: how many, and their total",
    "specific_tax": "Specific tax certified separately, net",
    "psvb": "Withholding by group, net",
    "incomplete": "Invoices begun on the machine and not certified",
    "test": "How many of them a real machine certified in test mode, without fiscal value; left out when none",
    "reductions": "What was taken off prices (`discount`, `originalPrice`), with VAT, net; 0 in a Z of before",
    "cash": "Cash moved beside sales (`POST …/cash`), and what is expected in the drawer",
}
_MOVEMENT = {
    "id": "Grows with time within a NIM",
    "at": "When it was written down",
    "kind": "`deposit` or `withdrawal`",
    "amount": "Whole XOF, above 0",
    "reason": "Why, for people",
    "operatorId": "Cashier",
    "operatorName": "Cashier's name",
}
_PERIOD = {
    "period_start": "The previous Z, or the first certification",
    "period_end": "Now; for a Z, the instant of closure",
    "fvc_start": "First FVC of the period; without a sale, the last one known",
    "fvc_end": "Last FVC of the period; without a sale, the last one known",
}
_CLOSURE = {
    "z_number": "Sequential for each NIM, from 1",
    "period_start": "Start of the period",
    "period_end": "End of the period",
    "certs_count": "Certifications in it",
    "total_ttc": "With VAT, net",
}

_INVOICE = {
    "invoiceNumber": "The till's own number; certified once per NIM",
    "items": "At least one, at most 1 000",
    "payments": "Add up to the total",
    "priceMode": "TTC: `unitPrice` holds VAT; HT: it does not",
    "operatorId": "Cashier; default from the machine's configuration",
    "operatorName": "Default from the machine's configuration",
    "isf": "Fiscal system; default from the machine's configuration",
    "customer": "Default: a walk-in customer",
    "comments": "Up to 8 lines of the ticket, labelled A…H; a plain string takes the next free label",
    "stampDuty": "Duty of a payment in cash, whole XOF: printed, in no total, never sent to the machine",
    "psvbGroup": "Withholding on sales of goods: A 2 %, B 1 %, C 0.2 %, D 0 %, of the goods' amount with all taxes; computed, kept and shown. Left out on a credit note of nature RRR",
}

FIELDS: Final[dict[str, dict[str, str]]] = {
    **JOURNAL_FIELDS,
    "CertifyBody": {"invoiceType": "FV sale, FT advance, EV export sale, ET export advance", **_INVOICE},
    "CreditNoteBody": {
        "invoiceType": "FA credit note, EA export credit note",
        "creditNoteRef": "`{NIM}-{FVC}` of the original, the NIM with its activation counter, as EL02000015-1-291, or `RRR`; an FA is of FV and FT, an EA of EV and ET",
        "creditNoteNature": "Correction, cancellation, return of goods, rebate",
        **_INVOICE,
    },
    "CustomerBody": {
        "clientType": "CC walk-in; PP natural person; PM company; PC trader",
        **BUYER,
    },
    "ItemBody": {
        "name": "Label on the ticket",
        "taxGroup": "A…P; B is 18 %",
        "itemType": "Local goods, local service, imported goods, imported service",
        "taxRate": "Percent; has to be the machine's rate for the group, which is the default",
        "unitPrice": "At most 2 decimals; default `amountTtc / quantity`",
        "quantity": "Above 0, at most 3 decimals",
        "amountTtc": "Whole XOF, with VAT: the amount certified; default `unitPrice × quantity`",
        "specificTax": (
            "Specific tax (excise) of the line, without VAT. Certified separately when amountTtc = unitPrice × quantity + "
            "specificTax × (1 + taxRate/100) and specificTaxRate × quantity = specificTax, in whole numbers; otherwise "
            "folded into the price. Never refused"
        ),
        "specificTaxRate": "Specific tax of one unit, in XOF",
        "specificTaxDesc": "Name of the specific tax on the ticket",
        "code": "The shop's code of the article",
        "unit": "What is counted: kg, sac, h; printed",
        "discount": "Taken off this line, whole XOF with VAT; `amountTtc` and `unitPrice` hold it already. Printed, and summed in X and Z",
        "originalPrice": "Price of one unit before the reduction, at most 2 decimals; printed, and `discount` is what is missing to it",
    },
    "PaymentBody": {
        "method": "E cash; V transfer; C card; M mobile money; B cheque; A other",
        "amount": "Whole XOF, above 0",
    },
    "CashBody": {
        "kind": "`deposit`: put into the drawer; `withdrawal`: taken out",
        "amount": "Whole XOF, above 0 for both kinds",
        "reason": "Why, for people",
        "operatorId": "Default from the machine's configuration",
        "operatorName": "Default from the machine's configuration",
    },
    "CashDrawer": {
        "deposits": "Put into the drawer, XOF",
        "withdrawals": "Taken out, XOF, positive",
        "expected": "Cash payments + deposits - withdrawals of the period",
    },
    "Moved": {**_MOVEMENT, "nim": "The NIM of the path", "warnings": "Fields that are not known"},
    "Movement": _MOVEMENT,
    "Movements": {
        "nim": "The NIM of the path",
        "from": "Start of the range",
        "to": "End of the range",
        "deposits": "Sum of the whole range, XOF",
        "withdrawals": "Sum of the whole range, XOF, positive",
        "count": "Movements in this answer",
        "movements": "Oldest first",
    },
    "CommentBody": {"text": "One line", "label": "A…H; without one, the next free"},
    "Receipt": {
        "codeSecef": "The certification code, 24 characters without dashes; begins with TESTFACT in the sandbox",
        "invoiceNumber": "The till's number",
        "invoiceType": "FV, FT, EV, ET, FA or EA",
        "totalTtc": "The certified total",
        "nim": "What the machine was called when it certified, with its activation counter",
        "nimShort": "Without the activation counter",
        "ifu": "IFU of the taxpayer, as the machine has it",
        "dateTime": "The machine's own 14 digits YYYYMMDDhhmmss",
        "qrContent": "What the QR code of the ticket holds",
        "taxDetails": "VAT by tax group",
        **_COUNTERS,
        "counters": "As it has to stand on paper, `291/409 FV`: the counter of the type, all transactions, the type; `?/409 EV` where the machine did not tell the first. Left out in an answer that mcfd 0.1.0 gave",
        "specificTax": "Specific tax that was certified separately",
        "psvb": "Withholding, when `psvbGroup` was sent",
        "warnings": "What was folded, rounded or adjusted instead of refused",
        "certifiedAt": "When mcfd had it on disk",
        "durationMs": "From the request's arrival to the durable outcome",
    },
    "TaxDetail": {"group": "Tax group", "label": "For people", **_GROUP},
    "Withholding": _PSVB,
    "Adjustment": {
        "code": "What happened, for programs",
        "message": "What happened, for people",
        "item": "Index of the item; left out for the whole invoice",
        "field": "UNKNOWN_FIELD: its path, as `items[2].prix`; left out otherwise",
    },
    "XReport": {"kind": "X", **_TOTALS, **_PERIOD},
    "ZReport": {
        "kind": "Z",
        **_TOTALS,
        **_PERIOD,
        "z_number": "Sequential for each NIM, from 1",
        "report_id": "UUID of the closure",
        "created_at": "When it was closed",
        "mcf_counters": "The machine's counters, read live at the closure",
        "unexplained": "Invoices found on the machine that this ledger did not make",
        "chain_previous": "SHA-256, in hex, of what stands before it in the book: what the closure is chained to",
        "without_machine": "true where the machine is no longer on the box and `mcf_counters` are those known last; else left out",
    },
    "AReport": {
        "kind": "A",
        **_TOTALS,
        "from": "Start of the range, included",
        "to": "End of the range, excluded",
        "closures": "Z closures created in the range",
    },
    "GroupTotal": {"group": "Tax group", **_GROUP},
    "TypeTotal": {"invoice_type": "Invoice type", "count": "How many", "total_ttc": "Positive, with VAT"},
    "TypeGroupTotal": {"invoice_type": "Invoice type", "group": "Tax group", **_GROUP},
    "PaymentTotal": {"method": "Letter", "label": "For people", "amount": "XOF, net"},
    "CreditNotes": {"count": "How many", "total": "Positive, with VAT"},
    "PsvbTotal": _PSVB,
    "McfCounters": _COUNTERS,
    "ClosureSummary": _CLOSURE,
    "HistoryRecord": {
        "id": "`report_id` of the Z",
        "kind": "Z",
        **_CLOSURE,
        "mcf_counters_end": "The machine's counters at the closure",
    },
    "Printed": {"printed": "What was printed: the invoice's number, or the report's title"},
    "History": {"nim": "The NIM of the path", "count": "Records in this answer", "reports": "Oldest first"},
    "MachineInfo": {
        "nim": "The NIM of the path",
        "nimShort": "Without the activation counter",
        "ifu": "IFU of the taxpayer",
        "mode": "live, or test for the sandbox",
        "datetime": "The machine's clock, 14 digits",
        "counters": "The machine's counters",
        "merchant": "Who the machine is registered for",
        "rates": "VAT rate in percent by tax group, as the machine holds them",
        "testMode": "Of a live key: whether the machine's codes begin with TESTFACT, which have no fiscal value",
        "taxServer": "The machine's link to the tax server",
        "clockDrift": "Seconds the box is ahead of the machine",
        "readAt": "When it was read",
    },
    "CounterValues": _COUNTERS,
    "Merchant": {
        "commercialName": "Trade name",
        "address": "Address",
        "city": "City",
        "zone": "Second line of the address",
        "email": "E-mail",
        "phone": "Phone",
    },
    "TaxServer": {
        "lastContact": "14 digits; empty before the first contact",
        "acknowledged": "Transactions the tax server has acknowledged",
        "waiting": "Transactions still to be sent",
        "state": "CON, TRA, or DIS (no session open, the normal idle state)",
        "lastError": "The machine's own words",
        "daysSinceContact": "Null before the first contact",
        "alert": "True after more than 7 days without contact: the user has to be told, daily",
    },
    "CancelAnswer": {"wasPending": "Whether an invoice was open", "message": "For people"},
    "Me": {
        "id": "As `mcfd keys list` shows it",
        "label": "As given when the key was made",
        "mode": "live, or test for the sandbox",
        "nim": "The one NIM this key is for",
        "connected": "Whether its machine answers",
        "role": "What it may do: seller, reader, manager or technician",
        "expiresAt": "When it ends; null for never",
    },
    "Live": {"status": "live", "version": "Version of mcfd"},
    "Ready": {
        "status": "ready, or not ready",
        "machines": "Each configured live machine",
        "upstream": "Closures on their way to headquarters; null without upstream",
        "ledger": "What is known to be damaged in the ledger; in words with a key",
    },
    "MachineReady": {
        "nim": "The machine",
        "ready": "Connected, and nothing for an operator to settle",
        "connected": "Whether it answers",
        "attention": "What an operator has to settle; empty when nothing",
        "lastError": "Why it does not answer; empty when it does",
        "waiting": "Requests at the machine and waiting for it",
        "clockDrift": "Seconds the box is ahead of the machine; null before the first reading",
        "taxServerDays": "Days since the machine last met the tax server; null when not known. Read once an hour",
        "taxServerWaiting": "Transactions the machine still has to send there; null when not known",
        "testMode": "Whether its codes begin with TESTFACT: nothing it certifies has fiscal value",
    },
    "UpstreamLane": {
        "nim": "The machine",
        "mode": "live, or test for the sandbox",
        "waiting": "Closures still to be sent",
        "parked": "Closures that headquarters refused, for an operator to see",
        "oldestAt": "When the oldest waiting closure was made; null when none waits",
        "lastError": "Of the last try that failed; empty when there was none",
        "lastErrorAt": "When that was, or null",
        "lastSentAt": "When the last closure arrived, or null",
    },
    "Problem": {
        "type": "Names the code",
        "title": "The kind of problem",
        "status": "The HTTP status",
        "detail": "What went wrong this time",
        "code": "For programs",
        "error": "The same as `detail`, for clients of the hosted service",
        "request_id": "To find it in the log",
        "errors": "INVALID_REQUEST: each fault, with the path of its field",
        "certification": "DUPLICATE_INVOICE: the certification the number had",
        "original_ttc": "CREDIT_EXCEEDS_ORIGINAL: total of the original, XOF",
        "credited_ttc": "CREDIT_EXCEEDS_ORIGINAL: what its credits would come to with this one, XOF",
    },
    "FieldError": {"field": "Path, as `items[2].taxGroup`", "message": "What is wrong with it"},
}
