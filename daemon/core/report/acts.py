"""Duplicates and reports that were given out, among the lines of the journal."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from daemon.core.clock import millis_text
from daemon.core.ledger.entries import (
    CopyMade,
    OutageBegun,
    OutageEnded,
    OutageNotified,
    OutageReason,
    Placed,
    Recipient,
    ReportGiven,
    ReportKind,
)
from daemon.core.report.cash import JournalCash, journal_cash


class JournalCopy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A duplicate that was given out."""

    state: Annotated[Literal["copy"], Meta(description="copy, where an attempt to certify has its own")] = "copy"
    id: Annotated[int, Meta(description="Grows with time within a NIM")]
    nim: Annotated[str, Meta(description="The NIM of the path")]
    at: Annotated[str, Meta(description="When it was given out")]
    invoice_number: Annotated[str, Meta(description="Of the certified invoice")]
    code_secef: Annotated[str, Meta(description="Of the certified invoice")]
    copy: Annotated[int, Meta(description="Which duplicate it is, from 1")]
    z_number: Annotated[int | None, Meta(description="The Z closure that it is in; null while the period is open")]


class JournalReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A report that was given out, as it was."""

    state: Annotated[Literal["report"], Meta(description="report, where an attempt to certify has its own")] = "report"
    id: Annotated[int, Meta(description="Its place at `GET …/reports/given/{id}`")]
    nim: Annotated[str, Meta(description="The NIM of the path")]
    at: Annotated[str, Meta(description="When it was given out")]
    kind: Annotated[ReportKind, Meta(description="X, A (totals) or articles")]
    number: Annotated[int | None, Meta(description="Of a closed report of articles")]
    z_number: Annotated[int | None, Meta(description="The Z closure that it is in; null while the period is open")]
    report: Annotated[msgspec.Raw, Meta(description="As it was given out")]


class JournalOutage(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An outage that began or ended, or that somebody was notified of."""

    state: Annotated[
        Literal["outage", "outage.ended", "outage.notified"],
        Meta(description="One of these, where an attempt to certify has its own"),
    ]
    id: Annotated[int, Meta(description="Grows with time within a NIM")]
    nim: Annotated[str, Meta(description="The NIM of the path")]
    at: Annotated[str, Meta(description="When it was written down")]
    outage: Annotated[int, Meta(description="The `id` of `GET …/outages`")]
    from_: Annotated[str | None, Meta(description="outage: since when the machine could not certify")] = msgspec.field(
        name="from", default=None
    )
    to: Annotated[str | None, Meta(description="outage.ended: since when it can again")] = None
    reason: Annotated[OutageReason | None, Meta(description="outage: why")] = None
    who: Annotated[Recipient | None, Meta(description="outage.notified: who")] = None
    reference: Annotated[str | None, Meta(description="outage.notified: under which reference")] = None
    notified_at: Annotated[str | None, Meta(description="outage.notified: when")] = None
    z_number: Annotated[int | None, Meta(description="The Z closure that it is in; null while the period is open")]


def journal_act(placed: Placed, z_number: int, nim: str) -> JournalCash | JournalCopy | JournalReport | JournalOutage:
    """`z_number` is 0 while its period is open."""
    act, at = placed.entry, millis_text(placed.at)
    if isinstance(act, CopyMade):
        return JournalCopy(
            id=placed.id,
            nim=nim,
            at=at,
            invoice_number=act.number,
            code_secef=act.code,
            copy=act.copy,
            z_number=z_number or None,
        )
    if isinstance(act, ReportGiven):
        return JournalReport(
            id=placed.id,
            nim=nim,
            at=at,
            kind=act.kind,
            number=act.number or None,
            z_number=z_number or None,
            report=msgspec.Raw(act.body.encode()),
        )
    if isinstance(act, OutageBegun | OutageEnded | OutageNotified):
        return _journal_outage(placed, act, z_number, nim)
    return journal_cash(placed, z_number, nim)


def _journal_outage(
    placed: Placed, act: OutageBegun | OutageEnded | OutageNotified, z_number: int, nim: str
) -> JournalOutage:
    told = JournalOutage(
        state="outage",
        id=placed.id,
        nim=nim,
        at=millis_text(placed.at),
        outage=act.number,
        z_number=z_number or None,
    )
    match act:
        case OutageBegun():
            return msgspec.structs.replace(told, from_=millis_text(placed.at - act.lasted), reason=act.reason)
        case OutageEnded():
            return msgspec.structs.replace(told, state="outage.ended", to=millis_text(placed.at - act.ago))
        case OutageNotified():
            return msgspec.structs.replace(
                told,
                state="outage.notified",
                who=act.who,
                reference=act.reference,
                notified_at=millis_text(act.notified_at),
            )
