"""The register of outages as clients get it, and the notes of who was notified (arrêté 2025-0049, articles 6 and 7)."""

from collections.abc import Sequence
from typing import Annotated, cast, get_args

import msgspec
from msgspec import Meta

from common.language import Text
from daemon.core.clock import millis_text
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.invoice.fields import Fields
from daemon.core.invoice.request import MIDDLE_LENGTH
from daemon.core.invoice.unknown import fields_of, refusals_of, unknown_of
from daemon.core.ledger.entries import OutageReason, Recipient
from daemon.core.ledger.outage import SLACK, Notice, Outage
from daemon.core.report.ranges import read_instant


class NotifiedBody(msgspec.Struct, kw_only=True, rename="camel"):
    """A notification of an outage."""

    who: Annotated[Recipient, Meta(description="`administration` or `distributor`")]
    reference: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MIDDLE_LENGTH,
            pattern=r"\S",
            description="Under which it was filed, or how: a number, a name, `by telephone`",
        ),
    ]
    at: Annotated[str | None, Meta(description="RFC 3339 with an offset; left out: now")] = None


class OutageNotice(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    who: Annotated[Recipient, Meta(description="`administration` or `distributor`")]
    reference: Annotated[str, Meta(description="Under which it was filed")]
    at: Annotated[str, Meta(description="When")]


class OutageSales(msgspec.Struct, frozen=True):
    """Sold during an outage and certified later, without what was taken back."""

    count: Annotated[int, Meta(description="Sales")]
    total: Annotated[int, Meta(description="What they come to, with VAT, XOF")]


class OutageData(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One outage of a machine."""

    id: Annotated[int, Meta(description="Counts from 1 within a NIM; `deferred.outage` of a receipt")]
    nim: Annotated[str, Meta(description="What the machine was called when it began")]
    from_: Annotated[str, Meta(description="Since when the machine could not certify")] = msgspec.field(name="from")
    to: Annotated[str | None, Meta(description="Since when it can again; null while the outage lasts")]
    reason: Annotated[
        OutageReason,
        Meta(
            description="`line_lost`, `no_answer`, `blocked` (by the limits of the tax server), `deactivated`, `attention`, `disk`, or `box_off`, "
            "which is seen at the next start"
        ),
    ]
    refused: Annotated[
        bool, Meta(description="A till was refused for it, or its sale was taken on to be certified later")
    ]
    incident: Annotated[str | None, Meta(description="Of the line's recorder; null without one")]
    sales: Annotated[OutageSales, Meta(description="What was sold meanwhile and is certified later")]
    notified: Annotated[
        tuple[OutageNotice, ...], Meta(description="Who was notified, in the order in which it was noted")
    ]


class OutageList(msgspec.Struct, frozen=True, kw_only=True):
    nim: Annotated[str, Meta(description="The NIM of the path")]
    from_: Annotated[str, Meta(description="Start of the range")] = msgspec.field(name="from")
    to: Annotated[str, Meta(description="End of the range")]
    count: Annotated[int, Meta(description="Outages in this answer")]
    outages: Annotated[tuple[OutageData, ...], Meta(description="Oldest first")]


def outage_data(outage: Outage) -> OutageData:
    return OutageData(
        id=outage.number,
        nim=outage.nim,
        from_=millis_text(outage.since),
        to=millis_text(outage.until) if outage.until else None,
        reason=outage.reason,
        refused=outage.refused,
        incident=outage.incident or None,
        sales=OutageSales(outage.sales, outage.sales_total),
        notified=tuple(
            OutageNotice(who=notice.who, reference=notice.reference, at=millis_text(notice.at))
            for notice in outage.notices
        ),
    )


def outage_list(nim: str, start: int, end: int, listed: Sequence[Outage]) -> OutageList:
    """Of `start <= t < end` (ms)."""
    return OutageList(
        nim=nim,
        from_=millis_text(start),
        to=millis_text(end),
        count=len(listed),
        outages=tuple(map(outage_data, listed)),
    )


def read_notice(body: dict[str, object], *, since: int, now: int, strict: bool) -> Notice:
    """Of an outage that began at `since`. InvalidRequest with every fault of it; times in ms."""
    errors: list[FieldError] = []
    fields = Fields(body, "", errors)
    who = fields.choice("who", get_args(Recipient))
    reference = fields.text("reference", MIDDLE_LENGTH, required=True).strip()
    at = _read_at(fields, since, now)
    if strict:
        errors += refusals_of(unknown_of(body, fields_of(NotifiedBody)))
    if errors:
        raise InvalidRequest(errors)
    return Notice(cast("Recipient", who), reference, at)


def _read_at(fields: Fields, since: int, now: int) -> int:
    text = fields.text("at", MIDDLE_LENGTH)
    if not text:
        return now
    try:
        at = read_instant(text)
    except ValueError:
        fields.fault("at", Text("must be an RFC 3339 timestamp with an offset"))
        return now
    if at > now + SLACK:
        fields.fault("at", Text("must not be in the future"))
    elif at < since - SLACK:
        fields.fault("at", Text("must not be before the outage began"))
    return at
