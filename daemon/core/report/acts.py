"""Movements of cash, duplicates and reports that were given out, among the lines of the journal."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, cast, get_args

import msgspec
from msgspec import Meta

from common.language import Text
from daemon.core.clock import millis_text
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.invoice.fields import Fields
from daemon.core.invoice.intake import Defaults, read_operator_id
from daemon.core.invoice.request import NAME_LENGTH, Line, Name, OperatorId, Positive
from daemon.core.invoice.unknown import fields_of, refusals_of, unknown_of, warnings_of
from daemon.core.ledger.entries import (
    CashKind,
    CashMove,
    CashTotal,
    CopyAct,
    OutageBegun,
    OutageEnded,
    OutageNotified,
    OutageReason,
    Placed,
    Recipient,
    ReportAct,
    ReportKind,
)
from daemon.core.report.receipt import Adjustment, adjustments

MOVES_AN_HOUR: Final = 60
"""Movements that one key, or one person, may note: a seller's key must not fill the disk (decision 34)."""
REPORTS_AN_HOUR: Final = 300
"""Reports on paper, each of which is stored, for the same reason."""
COPIES_AN_HOUR: Final = 600
"""Duplicates, except those of the receipt printer."""


class CashBody(msgspec.Struct, kw_only=True, rename="camel"):
    """Cash put into the drawer or taken out."""

    kind: Annotated[CashKind, Meta(description="`deposit`: put into the drawer; `withdrawal`: taken out")]
    amount: Annotated[Positive, Meta(description="Whole XOF, above 0 for both kinds")]
    reason: Annotated[Name, Meta(description="Why, for people")]
    operator_id: Annotated[OperatorId | None, Meta(description="Default from the machine's configuration")] = None
    operator_name: Annotated[Line | None, Meta(description="Default from the machine's configuration")] = None


class Movement(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`amount` in whole XOF, above 0 for both kinds; `at` in RFC 3339."""

    id: Annotated[int, Meta(description="Grows with time within a NIM")]
    at: Annotated[str, Meta(description="When it was written down")]
    kind: Annotated[CashKind, Meta(description="`deposit` or `withdrawal`")]
    amount: Annotated[int, Meta(description="Whole XOF, above 0")]
    reason: Annotated[str, Meta(description="Why, for people")]
    operator_id: Annotated[str, Meta(description="Cashier")]
    operator_name: Annotated[str, Meta(description="Cashier's name")]


class Moved(Movement, frozen=True, kw_only=True, rename="camel"):
    """The answer to a POST."""

    nim: Annotated[str, Meta(description="The NIM of the path")]
    warnings: Annotated[tuple[Adjustment, ...], Meta(description="Fields that are not known")]


class JournalCash(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A movement among the lines of the journal, where `state` tells it from an attempt to certify; `z_number` is None while its
    period is open."""

    state: Annotated[CashKind, Meta(description="deposit or withdrawal, where an attempt to certify has its own")]
    id: Annotated[int, Meta(description="The `id` of `GET …/cash`")]
    nim: Annotated[str, Meta(description="The NIM of the path")]
    at: Annotated[str, Meta(description="When it was moved")]
    amount: Annotated[int, Meta(description="Whole XOF, above 0 for both")]
    reason: Annotated[str, Meta(description="As sent")]
    operator_id: Annotated[str, Meta(description="As sent, or its default")]
    operator_name: Annotated[str, Meta(description="As sent, or its default")]
    z_number: Annotated[int | None, Meta(description="The Z closure that it is in; null while the period is open")]


class CashMovements(msgspec.Struct, frozen=True, kw_only=True):
    """`deposits` and `withdrawals` are of the whole range, whatever page is shown of it."""

    nim: Annotated[str, Meta(description="The NIM of the path")]
    from_: Annotated[str, Meta(description="Start of the range")] = msgspec.field(name="from")
    to: Annotated[str, Meta(description="End of the range")]
    deposits: Annotated[int, Meta(description="Sum of the whole range, XOF")]
    withdrawals: Annotated[int, Meta(description="Sum of the whole range, XOF, positive")]
    count: Annotated[int, Meta(description="Movements in this answer")]
    movements: Annotated[tuple[Movement, ...], Meta(description="Oldest first")]


def read_move(body: dict[str, object], *, defaults: Defaults, strict: bool) -> tuple[CashMove, tuple[Adjustment, ...]]:
    """InvalidRequest with every fault of it. `strict` refuses unknown fields (decision 27)."""
    errors: list[FieldError] = []
    fields = Fields(body, "", errors)
    amount = fields.amount("amount")
    if fields.values.get("amount") is None:
        fields.fault("amount", Text("is required"))
    elif isinstance(amount, Fraction):
        fields.fault("amount", Text("must be a whole number"))
    kind = fields.choice("kind", get_args(CashKind))
    move = CashMove(  # of what is faulty, but then it is refused below
        kind=cast("CashKind", kind),
        amount=cast("int", amount),
        reason=fields.text("reason", NAME_LENGTH, required=True),
        operator_id=read_operator_id(fields) or defaults.operator_id,
        operator_name=fields.text("operatorName", NAME_LENGTH) or defaults.operator_name,
    )
    unknown = unknown_of(body, fields_of(CashBody))
    if strict:
        errors += refusals_of(unknown)
    if errors:
        raise InvalidRequest(errors)
    return move, adjustments(warnings_of(unknown))


def moved(placed: Placed, nim: str, warnings: tuple[Adjustment, ...]) -> Moved:
    return Moved(**_fields(placed), nim=nim, warnings=warnings)


def movements(nim: str, start: int, end: int, total: CashTotal, listed: Sequence[Placed]) -> CashMovements:
    """Of `start <= t < end` (ms)."""
    return CashMovements(
        nim=nim,
        from_=millis_text(start),
        to=millis_text(end),
        deposits=total.deposits,
        withdrawals=total.withdrawals,
        count=len(listed),
        movements=tuple(Movement(**_fields(placed)) for placed in listed),
    )


def journal_cash(placed: Placed, z_number: int, nim: str) -> JournalCash:
    """`z_number` is 0 while the period of the movement is open."""
    fields = _fields(placed)
    return JournalCash(state=fields.pop("kind"), nim=nim, z_number=z_number or None, **fields)


def _fields(placed: Placed) -> dict[str, Any]:
    return {"id": placed.id, "at": millis_text(placed.at), **msgspec.structs.asdict(placed.entry_of(CashMove))}


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
    """An outage that began or ended, or a notification of one."""

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
    act = placed.entry
    line: dict[str, Any] = {"id": placed.id, "nim": nim, "at": millis_text(placed.at), "z_number": z_number or None}
    match act:
        case CopyAct():
            return JournalCopy(**line, invoice_number=act.number, code_secef=act.code, copy=act.copy)
        case ReportAct():
            body = msgspec.Raw(act.body.encode())
            return JournalReport(**line, kind=act.kind, number=act.number or None, report=body)
        case OutageBegun():
            since = millis_text(placed.at - act.lasted)
            return JournalOutage(**line, state="outage", outage=act.number, from_=since, reason=act.reason)
        case OutageEnded():
            until = millis_text(placed.at - act.ago)
            return JournalOutage(**line, state="outage.ended", outage=act.number, to=until)
        case OutageNotified(who=who, reference=reference):
            notice: dict[str, Any] = {"who": who, "reference": reference, "notified_at": millis_text(act.notified_at)}
            return JournalOutage(**line, state="outage.notified", outage=act.number, **notice)
    return journal_cash(placed, z_number, nim)
