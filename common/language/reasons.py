"""Why something failed or stopped, as a code with values: what is stored and what decides.

A sentence is made of it where people read, in their language. In a column it is JSON, `{"code": "no_answer", "values": {"after": "C0h"}}`;
a value may be a reason itself. A code that was released stays here: rows that have it are read for ever. A column may also hold
the machine's own words, or an English sentence of mcfd 0.2 and earlier: both are shown as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, Self

from common.language import Text, sentence

MAX_LENGTH = 20_000
"""Characters of a stored reason that are parsed."""
MAX_DEPTH = 4


class Reason(Text):
    """`code` in snake case, unique; the message is English and names its values in braces."""

    __slots__ = ("code",)

    code: str

    def __new__(cls, code: str, message: str, /, **values: object) -> Self:
        reason = super().__new__(cls, message, **values)
        reason.code = code
        return reason

    def __call__(self, **values: object) -> Reason:
        return Reason(self.code, self.message, **values)

    def codes(self) -> Iterator[str]:
        """Its own, then those of the reasons among its values."""
        yield self.code
        for value in self.values.values():
            cause = sentence(value) if isinstance(value, Exception) else value
            if isinstance(cause, Reason):
                yield from cause.codes()


# The line. `port` is a path or an address, `cause` the reason beneath or the system's words, `after` the command without an answer.
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
    "connection_refused", "nobody listens there (is the device server on, and the port number right?)"
)
NETWORK_UNREACHABLE: Final = Reason("network_unreachable", "the network does not reach that address")
ADDRESS_SILENT: Final = Reason("address_silent", "that address does not answer")
NAME_UNKNOWN: Final = Reason("name_unknown", "nobody knows that name")
HUNG_UP: Final = Reason("hung_up", "the line hung up")
LINK_CLOSED: Final = Reason("link_closed", "the link was closed")
NO_ANSWER: Final = Reason("no_answer", "the machine does not answer")
LINE_BUSY: Final = Reason("line_busy", "the machine keeps the line busy without answering")
NO_END: Final = Reason("no_end", "the machine does not come to an end")
CLOSE_PENDING: Final = Reason("close_pending", "the machine did not come to an end with 38h")
CALLER_GAVE_UP: Final = Reason("caller_gave_up", "given up by the caller in the middle of a command")
CALLER_GAVE_UP_CLOSING: Final = Reason("caller_gave_up_closing", "given up by the caller while 38h was pending")

# A machine that is not at work.
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

REASONS: Final = {reason.code: reason for reason in list(globals().values()) if isinstance(reason, Reason)}


def codes_of(text: object) -> tuple[str, ...]:
    """Of a text or an error, the outermost first; none where it has no code."""
    text = sentence(text) if isinstance(text, Exception) else text
    return tuple(text.codes()) if isinstance(text, Reason) else ()


def to_stored(text: str) -> str:
    """As a column holds it: a text without a code as it is."""
    return json.dumps(_plain(text), ensure_ascii=False) if isinstance(text, Reason) else str(text)


def from_stored(stored: str) -> Text:
    """The reason, or the words as they stand where they are no code of ours."""
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
