"""The events of a box for screens, tills and their servers, and the data of each."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.entries import OutageReason

CERTIFIED: Final = "cert.issued"
DEFERRED: Final = "cert.deferred"
REFUSED: Final = "cert.refused"
IN_DOUBT: Final = "cert.in_doubt"
CONNECTED: Final = "mcf.connected"
DISCONNECTED: Final = "mcf.disconnected"
SLOW: Final = "mcf.slow"
CLOSURE: Final = "closure.created"
ATTENTION: Final = "mcf.attention"
TAX_SERVER: Final = "taxserver.alert"
PRINTER: Final = "printer.failed"
OUTAGE: Final = "machine.outage"
BACK: Final = "machine.back"
TEST: Final = "webhook.test"
"""Of `mcfd webhook test` alone: nothing happened."""
RESET: Final = "reset"
"""Of a stream alone: what came between is not there any more."""


class Event(msgspec.Struct, frozen=True):
    """One row of the ledger's list of events. `ref_id` is the attempt of `cert.issued`, the z_number of `closure.created`,
    else 0; `at` in ms."""

    id: int
    book_id: int
    type: str
    ref_id: int
    at: int
    detail: str = ""


class EventSpan(msgspec.Struct, frozen=True):
    """The ids of the oldest and the newest event kept, 0 for none, and the ledger's epoch: another one after each restore, since ids
    are then given again."""

    oldest: int
    newest: int
    epoch: int


class MachineEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `data` of everything that is neither a receipt nor a closure."""

    nim: Annotated[str, Meta(description="The NIM of the path")]
    mode: Annotated[Mode, Meta(description="live, or test for the sandbox")]
    at: Annotated[str, Meta(description="When it happened")]
    reason: Annotated[
        str | None, Meta(description="mcf.disconnected, mcf.slow, printer.failed: why; reset: restored or expired")
    ] = None
    found: Annotated[str | None, Meta(description="mcf.attention: what an operator has to settle")] = None
    days_since_contact: Annotated[
        int | None, Meta(description="taxserver.alert: days without contact to the tax server")
    ] = None


class RequestEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `data` of `cert.deferred`, `cert.refused` and `cert.in_doubt`."""

    nim: Annotated[str, Meta(description="The NIM of the path")]
    mode: Annotated[Mode, Meta(description="live, or test for the sandbox")]
    at: Annotated[str, Meta(description="When it happened")]
    invoice_number: Annotated[str, Meta(description="The till's number")]
    invoice_type: Annotated[str, Meta(description="FV, FT, EV, ET, FA or EA")]
    total_ttc: Annotated[int, Meta(description="The invoice's total, XOF")]
    request_id: Annotated[str, Meta(description="Of the request, to find it in the log")]
    reason: Annotated[str | None, Meta(description="cert.refused: the machine's words; cert.in_doubt: why")] = None
    regularise_before: Annotated[
        str | None, Meta(description="cert.deferred: the end of the 48 hours that the law leaves")
    ] = None


class OutageEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `data` of `machine.outage` and `machine.back`."""

    nim: Annotated[str, Meta(description="What the machine was called when it began")]
    mode: Annotated[Mode, Meta(description="live: a sandbox has no outages")]
    at: Annotated[str, Meta(description="When it was written down")]
    outage: Annotated[int, Meta(description="The `id` of `GET …/outages`")]
    from_: Annotated[str, Meta(description="Since when the machine cannot certify")] = msgspec.field(name="from")
    to: Annotated[str | None, Meta(description="machine.back: since when it can again")] = None
    reason: Annotated[OutageReason, Meta(description="Why")]


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a webhook."""

    type: Annotated[str, Meta(description="What happened")]
    timestamp: Annotated[str, Meta(description="When it happened")]
    nim: Annotated[str, Meta(description="The machine")]
    mode: Annotated[Mode, Meta(description="live, or test for the sandbox")]
    data: Annotated[
        msgspec.Raw,
        Meta(
            description="Of `cert.issued` a `Receipt`, of `closure.created` a `ZReport`, of other `cert.` events a `RequestEvent`, of `machine.outage` and `machine.back` an `OutageEvent`, else a `MachineEvent`"
        ),
    ]
