"""Sentences with a code, for storage and for decisions of programs, with their values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, Self

from common.language import Text, sentence

MAX_LENGTH = 20_000
"""Characters of a stored reason that are parsed."""
MAX_DEPTH = 4


class Reason(Text):
    """`code` is unique, in snake case; the message is English with its values' names in braces."""

    __slots__ = ("code",)

    code: str

    def __new__(cls, code: str, message: str, /, **values: object) -> Self:
        reason = super().__new__(cls, message, **values)
        reason.code = code
        return reason

    def __call__(self, **values: object) -> Reason:
        return Reason(self.code, self.message, **values)

    def codes(self) -> Iterator[str]:
        """Its own code, then the codes of the reasons among its values."""
        yield self.code
        for value in self.values.values():
            cause = sentence(value) if isinstance(value, Exception) else value
            if isinstance(cause, Reason):
                yield from cause.codes()


# The line. `port`: path or address; `cause`: the inner reason or the system's message; `after`: the unanswered command.
PORT_MISSING: Final = Reason("port_missing", "there is no such device (unplugged?)")
PORT_PERMISSION: Final = Reason(
    "port_permission", "no permission to open it (is this user in its group, often dialout?)"
)
PORT_BUSY: Final = Reason("port_busy", "another program is using it")
PORT_IO_ERROR: Final = Reason("port_io_error", "the device does not respond (input/output error)")
PORT_NOT_SERIAL: Final = Reason("port_not_serial", "this is not a serial port")
PORT_USED_BY: Final = Reason("port_used_by", "{port}: it is used by {names}")
PORT_HANGS_UP: Final = Reason(
    "port_hangs_up", "{port}: it hangs up on us; a device server does that while another program is connected"
)
PORT_UNAVAILABLE: Final = Reason("port_unavailable", "{port}: {cause}")
PORT_VANISHED: Final = Reason("port_vanished", "{port} vanished: {cause}")
CONNECTION_REFUSED: Final = Reason(
    "connection_refused", "connection refused (is the device server on, and the port number right?)"
)
NETWORK_UNREACHABLE: Final = Reason("network_unreachable", "the network does not reach that address")
ADDRESS_SILENT: Final = Reason("address_silent", "that address does not answer")
NAME_UNKNOWN: Final = Reason("name_unknown", "unknown host name")
HUNG_UP: Final = Reason("hung_up", "the line hung up")
LINK_CLOSED: Final = Reason("link_closed", "the link was closed")
NO_ANSWER: Final = Reason("no_answer", "the machine does not answer")
LINE_BUSY: Final = Reason("line_busy", "the machine keeps the line busy without answering")
NO_END: Final = Reason("no_end", "the machine does not come to an end")
CLOSE_PENDING: Final = Reason("close_pending", "the machine did not come to an end with 38h")
CALLER_GAVE_UP: Final = Reason("caller_gave_up", "given up by the caller in the middle of a command")
CALLER_GAVE_UP_CLOSING: Final = Reason("caller_gave_up_closing", "given up by the caller while 38h was pending")

# A machine that is not in operation.
NOT_YET_CONNECTED: Final = Reason("not_yet_connected", "the machine has not answered yet")
SWITCHED_OFF: Final = Reason("switched_off", "this machine is switched off in the configuration")
NOT_CONFIGURED: Final = Reason("not_configured", "it is no longer in the configuration")
NOT_ACTIVATED: Final = Reason("not_activated", "the machine is not activated: it tells no taxpayer")
ACTIVATED_ANEW: Final = Reason("activated_anew", "the machine was activated anew")
COUNTERS_DECREASED: Final = Reason("counters_decreased", "the machine's counters went down")
OTHER_MACHINE: Final = Reason(
    "other_machine", "the machine on this line is {found}, not {nim}: check cable and configuration"
)
CERTIFIED_ELSEWHERE: Final = Reason(
    "certified_elsewhere",
    "invoice {number!r} was certified by another machine, {found} (code {code}): cables were exchanged; its book has it by "
    "`mcfd machine settle {found} --decision adopt`, and it is not to be certified again",
)
SANDBOX_UNPLUGGED: Final = Reason("sandbox_unplugged", "the simulated machine was unplugged by a test")
LEDGER_FAILED: Final = Reason("ledger_failed", "the ledger cannot be read or written: {cause}")
INTERNAL_ERROR: Final = Reason("internal_error", "mcfd failed here ({error}); its log has the reason")
INVOICE_INTERRUPTED: Final = Reason("invoice_interrupted", "mcfd failed in the middle of an invoice")
OUTCOME_NOT_SETTLED: Final = Reason("outcome_not_settled", "the outcome of an invoice could not be settled: {error}")
DECISION_NOT_APPLIED: Final = Reason("decision_not_applied", "what was settled could not be taken up: {error}")
INVOICE_NOT_CANCELLED: Final = Reason("invoice_not_cancelled", "the open invoice could not be cancelled: {error}")

# Unreadable answers of a machine. `what`: the part; `shown`: the beginning of the answer.
UNREADABLE: Final = Reason("unreadable", "{what} cannot be read: {shown!r}")
STATE_INCOMPLETE: Final = Reason("state_incomplete", "the machine's state has {count} fields")
FRAME_OVERFLOW: Final = Reason("frame_overflow", "{count} bytes that must not be cut do not fit into a frame's {limit}")
COMMAND_UNKNOWN: Final = Reason("command_unknown", "the machine does not know the command {command}")
CERTIFICATION: Final = Reason("certification", "the certification")
CERTIFICATION_TIME: Final = Reason("certification_time", "the time of the certification")
INVOICE_OPENING: Final = Reason("invoice_opening", "the opening of an invoice")
LINE_TOTALS: Final = Reason("line_totals", "the totals of a line")
LINE_AMOUNT: Final = Reason("line_amount", "an amount of a line")
SUBTOTAL: Final = Reason("subtotal", "the subtotal")
SUBTOTAL_AMOUNT: Final = Reason("subtotal_amount", "an amount of the subtotal")
PAYMENT_ANSWER: Final = Reason("payment_answer", "the answer to a payment")
TAX_SERVER_LINK: Final = Reason("tax_server_link", "the link to the tax server")
LAST_INVOICE_TOTAL: Final = Reason("last_invoice_total", "the total of the last invoice")
VAT_RATE: Final = Reason("vat_rate", "a VAT rate")
NUMBER: Final = Reason("number", "a number")
CLOSE_OF_OTHER_INVOICE: Final = Reason(
    "close_of_other_invoice", "38h was answered for another invoice: {type} {number!r}"
)
CLOSE_WITHOUT_COUNTERS: Final = Reason("close_without_counters", "38h was answered with counters that have not moved")
CLOSE_WITHOUT_FC: Final = Reason("close_without_fc", "38h was answered with an FC that has not moved")
CLOSE_WITH_OLD_CODE: Final = Reason("close_with_old_code", "38h was answered with the code of another invoice")
SUBTOTAL_DIFFERS: Final = Reason(
    "subtotal_differs",
    "the machine's subtotal {total} {groups}, specific tax {specific}, is not ours, {our_total} {our_groups}, "
    "specific tax {our_specific}",
)

# Why an attempt certified nothing.
NOT_SENT: Final = Reason("not_sent", "not sent")
NOT_SENT_BECAUSE: Final = Reason("not_sent_because", "not sent: {cause}")
CANCELLED_BECAUSE: Final = Reason("cancelled_because", "cancelled before 38h: {cause}")
REQUEST_EXPIRED: Final = Reason(
    "request_expired", "the time that was given for this request is over; nothing was certified"
)
NOT_CERTIFIED: Final = Reason("not_certified", "the machine did not certify it")
INVOICE_LOST: Final = Reason("invoice_lost", "the machine lost the invoice in the middle")
GONE_BEFORE_CLOSE: Final = Reason("gone_before_close", "the machine went away before 38h")
STOPPED: Final = Reason("stopped", "mcfd was stopped before the outcome was known")
STOPPING: Final = Reason("stopping", "mcfd is stopping; nothing was sent")
OTHER_TAXPAYER: Final = Reason("other_taxpayer", "the machine has another taxpayer now; nothing was sent")
PREVIOUS_NOT_STORED: Final = Reason("previous_not_stored", "the invoice before this one could not be stored yet")
INVOICE_IN_PROGRESS: Final = Reason("invoice_in_progress", "invoice {number!r} is being certified")
NUMBER_CERTIFIED: Final = Reason("number_certified", "invoice number {number!r} is already certified")
KEY_REUSED: Final = Reason("key_reused", "this Idempotency-Key was used for another request")
CREDIT_EXCEEDS_ORIGINAL: Final = Reason(
    "credit_exceeds_original", "credits of {reference} would come to {credited_ttc}, the original is {original_ttc}"
)
CREDIT_EXCEEDS_REST: Final = Reason(
    "credit_exceeds_rest", "credits of {reference} would come to {credited_ttc}, {left_ttc} of {original_ttc} is left"
)

# Why a machine needs a decision. `known`, `counters`: TC, FVC and FRC of ledger and machine; `last`: the machine's last
# invoice.
OUTCOME_UNKNOWN: Final = Reason(
    "outcome_unknown",
    "invoice {number!r} ({type}, {total} XOF) has no known outcome: the ledger knows {known}, the machine says "
    "{counters} and {last}",
)
MACHINE_BEHIND: Final = Reason(
    "machine_behind", "the machine's counters went down, so it is another or a reset machine: {ours}; {theirs}"
)
FOREIGN_INVOICE: Final = Reason(
    "foreign_invoice",
    "the machine has certified an invoice that this ledger does not know (a restored backup, or another program "
    "on the machine): {ours}; {theirs}",
)
FOREIGN_INVOICES: Final = Reason(
    "foreign_invoices",
    "the machine has certified {count} invoices that this ledger does not know (a restored backup, or another "
    "program on the machine): {ours}; {theirs}",
)
LEDGER_EMPTY: Final = Reason(
    "ledger_empty",
    "this ledger is empty, but a ledger has worked with this machine here before: put that one back, or its "
    "newest backup (mcfd restore); if both are lost, adopt: the machine says {counters} and {last}",
)
ACTIVATED_SINCE_BACKUP: Final = Reason(
    "activated_since_backup",
    "an older copy of this ledger was put back, and the machine has been activated anew since that copy was made:"
    " what it certified in between is in no ledger; adopt: the ledger knows {known}, the machine says {counters} "
    "and {last}",
)
LEDGER_KNOWS: Final = Reason("ledger_knows", "the ledger knows {counters} and {number} as the last invoice")
MACHINE_SAYS: Final = Reason("machine_says", "the machine says {counters} and {last}")
LAST_INVOICE: Final = Reason("last_invoice", "{number!r} ({type}, {total} XOF) as its last invoice")
NO_LAST_INVOICE: Final = Reason("no_last_invoice", "no last invoice")
NONE: Final = Reason("none", "none")
RECORDED_INCIDENT: Final = Reason("recorded_incident", "{found} (recording: incident {incident})")
TEST_MODE_REFUSED: Final = Reason(
    "test_mode_refused",
    "the machine works in test mode (its codes begin with TESTFACT): what it certifies has no fiscal value; have "
    "it activated, or set test_mode = true in its [[machine]], also where it has left test mode since its last "
    "invoice, until it has certified one",
)
SPARE_OF_OTHER_TAXPAYER: Final = Reason(
    "spare_of_other_taxpayer",
    "the spare has another taxpayer than the machine for which it stands; it certifies nothing",
)
PAIR_NOT_COMPARED: Final = Reason(
    "pair_not_compared",
    "an older copy of the ledger was put back, or the ledger is a new one, and it is not known what {other} has certified "
    "since: {nim} certifies nothing before {other} was connected once, or a person has decided that it is lost (mcfd "
    "machine settle {other})",
)
SANDBOX_ATTENTION: Final = Reason("sandbox_attention", "requested by a test: nothing is wrong")

# Deliveries to headquarters and webhooks, and the printer.
NO_REPLY_IN_SECONDS: Final = Reason("no_reply_in_seconds", "no answer within {seconds} s")
CONNECTION_FAILED: Final = Reason("connection_failed", "no connection, or a broken one ({cause})")
REFUSED_THERE: Final = Reason("refused_there", "connection refused")
ANSWERED: Final = Reason("answered", "answered {answer}")
ANSWERED_WITHOUT_RECEIPT: Final = Reason("answered_without_receipt", "without a receipt answered {answer}")
NO_EVENT: Final = Reason("no_event", "no event can be made of it: {error}")
TOPIC_NO_STREAM: Final = Reason("topic_no_stream", "what answers on {topic} is not a stream")
STREAM_NOT_OURS: Final = Reason("stream_not_ours", "the stream of {topic} says that it has what was never sent")
STREAM_MISSING: Final = Reason("stream_missing", "no stream takes {topic}")
STREAM_ANSWERED: Final = Reason("stream_answered", "the stream answers {code}: {cause}")
STREAM_TOO_LARGE: Final = Reason("stream_too_large", "larger than the stream takes")
SERVER_TOO_LARGE: Final = Reason("server_too_large", "larger than the server takes")
NO_NATS_SERVER: Final = Reason("no_nats_server", "what answers there is no NATS server")
NO_CONNECTION: Final = Reason("no_connection", "no connection in time")
CERTIFICATE_EARLY: Final = Reason(
    "certificate_early", "the receiver's certificate is not valid yet: is the clock of the box right?"
)
CERTIFICATE_ENDED: Final = Reason(
    "certificate_ended", "the receiver's certificate has ended; it has to be renewed there"
)
CERTIFICATE_REFUSED: Final = Reason("certificate_refused", "the receiver's certificate is not accepted: {cause}")
NO_REPLY: Final = Reason("no_reply", "no answer in time")
PRINTER_OUT_OF_PAPER: Final = Reason("printer_out_of_paper", "the printer is out of paper")
PRINTER_COVER_OPEN: Final = Reason("printer_cover_open", "the printer's cover is open")
PRINTER_FAULT: Final = Reason("printer_fault", "the printer reports an error of its own")
PRINTER_TOO_SLOW: Final = Reason("printer_too_slow", "the printer did not take the document in time")
PRINTER_UNREACHABLE: Final = Reason("printer_unreachable", "the printer cannot be reached ({value})")
PRINTER_NOT_A_DEVICE: Final = Reason("printer_not_a_device", "the printer's address is not a device")

# Sales that are certified later.
SALE_RESTORED: Final = Reason(
    "sale_restored", "an older copy of the ledger was put back; it may have been certified since"
)
SALE_AMONG_FOREIGN: Final = Reason(
    "sale_among_foreign", "the machine has certified what the ledger does not know; this sale may be among it"
)
SALE_TAKEN_BACK: Final = Reason("sale_taken_back", "taken back by its till")

# Damage of the ledger.
WRITES_LOST: Final = Reason(
    "writes_lost",
    "acknowledged writes are missing from the ledger ({count}): its write-ahead log is damaged, or an older file was put in its "
    "place; compare paper and tills with the journal, then `mcfd machine settle --decision adopt`",
)
WRITES_LOST_WITH_LOG: Final = Reason(
    "writes_lost_log_kept",
    "acknowledged writes are missing from the ledger ({count}): its write-ahead log is damaged, or an older file was put in its "
    "place; the log is kept as {file}; compare paper and tills with the journal, then `mcfd machine settle --decision adopt`",
)
CLOCK_AHEAD: Final = Reason(
    "clock_ahead",
    "the time cannot be right: the book ends at {book}, {clocks}, and none is synchronised; set the clock, or say `mcfd time accept`",
)
CLOCK_AHEAD_OF_BOX: Final = Reason(
    "clock_ahead_of_box",
    "the time cannot be right: the book ends at {book}, {clocks}, and none is synchronised; set the clock, or say `mcfd time "
    "accept`, or `mcfd time repair` if it is {box} now",
)
BOX_SAYS: Final = Reason("box_says", "the box says {time}")
MACHINE_TIME: Final = Reason("machine_time", "the machine says {time}")
BOTH: Final = Reason("both", "{first} and {second}")
ENTRY_UNREADABLE: Final = Reason(
    "entry_unreadable",
    "{nim} ({mode}): entry {seq} (invoice {number!r}) cannot be read",
)

# Adjustments of a certified invoice (`Warn.message`); `fold`: why a specific tax was folded.
TEST_MODE: Final = Reason("test_mode", "the machine works in test mode: this invoice has no fiscal value")
NO_CODE_FROM_MACHINE: Final = Reason(
    "code_not_told", "the machine certified this invoice and does not tell its code any more"
)
ORIGINAL_NOT_CHECKED: Final = Reason(
    "original_not_checked", "{reference} is not an invoice of this ledger; the sum of its credit notes is not checked"
)
ORIGINAL_GUESSED: Final = Reason(
    "original_guessed",
    "{reference} is the counter of several exports: booked on {number}, by its amount; send originalInvoiceNumber",
)
NATURE_ASSUMED: Final = Reason("nature_assumed", "creditNoteNature is not given: {assumed} is assumed")
LINES_ROUNDED: Final = Reason(
    "lines_rounded",
    "each line without VAT is rounded to whole francs: the total is {total}, the exact one {exact}, a difference "
    "of {difference}",
)
VAT_RATE_CHANGED: Final = Reason(
    "vat_rate_changed",
    "the machine's VAT rate has changed since the sale: it is certified at the present rate, in prices with VAT, with the same total",
)
PSVB_LEFT_OUT: Final = Reason("psvb_left_out", "a rebate (RRR) carries no withholding: psvbGroup is left out")
TEXT_CUT: Final = Reason("text_cut", "{field}: cut to the {length} characters that the machine stores")
TEXT_REPLACED: Final = Reason(
    "text_replaced", "{field}: the machine has not all of its characters and stores ? for them"
)
PAYMENT_ADJUSTED: Final = Reason("payment_adjusted", "the largest payment is adjusted to the total {total}")
PAYMENT_ADJUSTED_TO_MACHINE: Final = Reason(
    "payment_adjusted_to_machine",
    "the largest payment is adjusted to the machine's total {total}",
)
STAMP_DUTY_LEFT_OUT: Final = Reason("stamp_duty_left_out", "stamp duty is left out: nothing is received in cash (E)")
STAMP_DUTY_DIFFERS: Final = Reason("stamp_duty_differs", "the table has a stamp duty of {due} on {cash}")
TAX_FOLDED_AND_ROUNDED: Final = Reason(
    "tax_folded_and_rounded",
    "the specific tax is folded into the price and amountTtc rounded to {amount}: {fold}",
)
AMOUNT_ROUNDED: Final = Reason("amount_rounded", "unitPrice × quantity is {exact}: rounded to {amount}")
TAX_FOLDED: Final = Reason("tax_folded", "the specific tax is folded into the price: {fold}")
QUANTITY_AS_ONE: Final = Reason(
    "quantity_as_one",
    "no price with 2 decimals gives the amount at this quantity: certified as one piece",
)
UNIT_PRICE_DERIVED: Final = Reason(
    "unit_price_derived",
    "unitPrice × quantity is not amountTtc: the unit price is derived from amountTtc",
)
UNKNOWN_FIELD: Final = Reason("unknown_field", "{field}: is not a known field")
UNKNOWN_FIELD_NEAR: Final = Reason("unknown_field_near", "{field}: is not a known field; did you mean {near}?")
MORE_UNKNOWN_FIELDS: Final = Reason("more_unknown_fields", "there are more fields that are not known")
FOLD_HT_MODE: Final = Reason("fold_ht_mode", "this machine has no VAT on it in HT mode")
FOLD_NO_PRICE: Final = Reason("fold_no_price", "unitPrice is not given")
NUMBER_INEXACT: Final = Reason("number_inexact", "is a number that JSON cannot carry exactly")
NUMBER_EXPECTED: Final = Reason("number_expected", "must be a number")
FOLD_UNREADABLE: Final = Reason("fold_unreadable", "{field} {fault}")
FOLD_NEGATIVE: Final = Reason("fold_negative", "{field} is negative")
FOLD_ONE_MISSING: Final = Reason("fold_one_missing", "specificTax and specificTaxRate must both be given")
FOLD_NOT_WHOLE: Final = Reason("fold_not_whole", "amountTtc and specificTax must be whole numbers")
FOLD_RATE_DIFFERS: Final = Reason("fold_rate_differs", "specificTaxRate × quantity is not specificTax")
FOLD_AMOUNT_DIFFERS: Final = Reason(
    "fold_amount_differs",
    "amountTtc is not unitPrice × quantity + specificTax × (1 + taxRate / 100)",
)
FOLD_DECIMALS: Final = Reason("fold_decimals", "specificTaxRate has more than 2 decimals")

REASONS: Final = {reason.code: reason for reason in globals().values() if isinstance(reason, Reason)}


def codes_of(text: object) -> tuple[str, ...]:
    """Codes of a text or an error, the outermost first; empty without a code."""
    text = sentence(text) if isinstance(text, Exception) else text
    return tuple(text.codes()) if isinstance(text, Reason) else ()


WRAPPERS: Final = frozenset(
    reason.code
    for reason in (
        PORT_UNAVAILABLE,
        LEDGER_FAILED,
        OUTCOME_NOT_SETTLED,
        DECISION_NOT_APPLIED,
        INVOICE_NOT_CANCELLED,
        RECORDED_INCIDENT,
    )
)
"""Codes of reasons that only wrap another reason."""


def code_of(text: object) -> str:
    """The code for programs: the first that is no wrapper; empty without a code."""
    codes = codes_of(text)
    return next((code for code in codes if code not in WRAPPERS), codes[0] if codes else "")


def to_stored(text: str) -> str:
    """The form for a column: a reason as JSON, any other text unchanged."""
    return json.dumps(_plain(text), ensure_ascii=False) if isinstance(text, Reason) else str(text)


def from_stored(stored: str) -> Text:
    """The stored reason; any other string as a plain text."""
    return stored if isinstance(stored, Text) else _parsed(stored)


@lru_cache(maxsize=256)
def _parsed(stored: str) -> Text:
    if stored.startswith('{"code":') and len(stored) <= MAX_LENGTH:
        try:
            found = _reason(json.loads(stored))
        except (ValueError, TypeError, KeyError, LookupError, RecursionError):
            found = None
        if found is not None:
            return found
    return Text(stored)


def _plain(value: object) -> Any:
    value = sentence(value) if isinstance(value, Exception) else value
    if isinstance(value, Reason):
        return {"code": value.code, "values": {name: _plain(each) for name, each in value.values.items()}}
    return value if isinstance(value, int | None) else str(value)


def _reason(plain: object, depth: int = 0) -> Reason | None:
    match plain:
        case {"code": str(code), "values": dict(values)} if code in REASONS and depth < MAX_DEPTH:
            if not values and "{" in REASONS[code].message:
                return None
            return REASONS[code](**{name: _reason(each, depth + 1) or each for name, each in values.items()})
    return None
