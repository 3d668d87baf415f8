"""The closure of a month or a year (0047 art. 23): the Zs made in it, their totals, and the grand total of the book, which never begins anew.

A sale is of the month of the Z that holds it, and a Z is of the month in which it was made.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, tzinfo
from typing import Annotated

import msgspec
from msgspec import Meta

from daemon.core.clock import millis, millis_text
from daemon.core.ledger.book import Book, Tally
from daemon.core.ledger.entries import CalendarKind, CashTotal
from daemon.core.ledger.tally import subtract
from daemon.core.report.fiscal_reports import Labels, Totals, totals_of

MONTHS = 12
LAST_MONTH = "9999-12"
"""Of a clock before it was repaired."""
_YEAR_DIGITS = 4


class GrandTotal(msgspec.Struct, frozen=True):
    """Of the book from its beginning to the end of the closure's last Z."""

    certs_count: Annotated[int, Meta(description="Certifications, credit notes included")]
    total_ttc: Annotated[int, Meta(description="With VAT, net: sales minus credit notes")]
    total_ht: Annotated[int, Meta(description="Without VAT, net")]
    total_tva: Annotated[int, Meta(description="VAT, net")]
    credit_notes_ttc: Annotated[int, Meta(description="Credit notes alone, positive")]


class CalendarReport(Totals, frozen=True, kw_only=True):
    """The closure of a month or a year."""

    kind: Annotated[CalendarKind, Meta(description="month or year")]
    number: Annotated[int, Meta(description="Sequential for each NIM and kind, from 1")]
    period: Annotated[str, Meta(description="The month, as 2026-01, or the year, as 2026")]
    report_id: Annotated[str, Meta(description="UUID of the closure")]
    created_at: Annotated[str, Meta(description="When it was closed")]
    period_start: Annotated[str, Meta(description="First instant of the month or year in the time zone of the box")]
    period_end: Annotated[str, Meta(description="First instant after it")]
    z_count: Annotated[int, Meta(description="Z closures in it; 0 for a closure of nothing")]
    first_z: Annotated[int | None, Meta(description="Number of the first Z in it; null without one")]
    last_z: Annotated[int | None, Meta(description="Number of the last Z in it; null without one")]
    grand_total: Annotated[GrandTotal, Meta(description="Of the book since its beginning; it never begins anew")]
    z_chain_head: Annotated[str, Meta(description="Hash, in hex, of the last Z in it; empty without one")]
    chain_previous: Annotated[str, Meta(description="SHA-256, in hex, of what the closure is chained to in its book")]
    letterhead: Annotated[str, Meta(description="Which letterhead stands on its paper, for ever")] = ""
    supplements: Annotated[
        int | msgspec.UnsetType,
        Meta(
            description="Number of the closure of the same month or year that a fast clock made too early; this one holds the Zs since. Left out for all others"
        ),
    ] = msgspec.UNSET


def calendar_report(
    book: Book,
    *,
    kind: CalendarKind,
    number: int,
    period: str,
    report_id: str,
    created_at: int,
    bounds: tuple[str, str],
    zs: Sequence[tuple[int, bytes]],
    before: Tally,
    running: Tally,
    cash: CashTotal,
    labels: Labels,
    isfs: Sequence[str],
    chain_previous: bytes,
    letterhead: str,
    stands_for: str = "",
    supplements: int = 0,
) -> CalendarReport:
    """`zs` are number and hash of each Z in it, `before` and `running` the totals of the book before the first and after the last of them."""
    grand = totals_of(book, running, cash, labels)
    return CalendarReport(
        **totals_of(book, subtract(running, before), cash, labels),
        kind=kind,
        number=number,
        period=period,
        report_id=report_id,
        created_at=millis_text(created_at),
        period_start=bounds[0],
        period_end=bounds[1],
        z_count=len(zs),
        first_z=zs[0][0] if zs else None,
        last_z=zs[-1][0] if zs else None,
        grand_total=GrandTotal(
            grand["certs_count"],
            grand["total_ttc"],
            grand["total_ht"],
            grand["total_tva"],
            grand["credit_notes"].total,
        ),
        z_chain_head=zs[-1][1].hex() if zs else "",
        chain_previous=chain_previous.hex(),
        isfs=tuple(isfs),
        stands_for=stands_for or msgspec.UNSET,
        letterhead=letterhead,
        supplements=supplements or msgspec.UNSET,
    )


def month_of(at: int, zone: tzinfo) -> str:
    """The month of that instant (ms)."""
    try:
        return f"{datetime.fromtimestamp(at // 1000, zone):%Y-%m}"
    except (OverflowError, ValueError):
        return LAST_MONTH


def following(period: str) -> str:
    """The month or year after that one."""
    if len(period) == _YEAR_DIGITS:
        return f"{int(period) + 1:04}"
    year, month = _parts(period)
    return f"{year + month // MONTHS:04}-{month % MONTHS + 1:02}"


def months_from(first: str, end: str) -> int:
    """How many months there are from `first` on up to `end`, which is not one of them."""
    (year, month), (end_year, end_month) = _parts(first), _parts(end)
    return (end_year - year) * MONTHS + end_month - month


def bounds_of(period: str, zone: tzinfo) -> tuple[str, str]:
    """Its first instant and the first one after it."""
    return _start(period, zone), _start(following(period), zone)


def _start(period: str, zone: tzinfo) -> str:
    year, month = _parts(period) if len(period) > _YEAR_DIGITS else (int(period), 1)
    return millis_text(millis(datetime.combine(date(year, month, 1), time(), zone).astimezone(UTC)))


def _parts(period: str) -> tuple[int, int]:
    year, _, month = period.partition("-")
    return int(year), int(month)
