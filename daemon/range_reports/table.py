"""What the API's routes, the papers and `mcfd report NAME` of a range of time are made from."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

from common.language import Text
from daemon.core.ledger.entries import ReportKind
from daemon.core.report.fiscal_reports import AReport
from daemon.paper.layout import Document
from daemon.paper.reports import report_document
from daemon.usecases.reports import report
from daemon.usecases.reports.journal import ReportSource


class RangeReport(NamedTuple):
    name: str
    """In paths, and of the command."""
    answer: type[msgspec.Struct]
    summary: str
    description: str
    """In the API's document, as `summary`."""
    help: Text
    """Of the command."""
    read: Callable[[ReportSource, int, int], Awaitable[Any]]
    """Of `start <= t < end` (ms)."""
    document: Callable[..., Document]
    """Of what was read, the shop and the style, `printed_at` (RFC 3339)."""
    kind: ReportKind | None = None
    """As which the journal has it once it was given out."""


RANGE_REPORTS: Final = (
    RangeReport(
        "a",
        AReport,
        "A report",
        """The certifications of a range, by the time they were certified, and the Z closures created in it; by default the last 31
days. Totals are net of credit notes; `by_type` and `by_type_and_group` are positive.""",
        Text("Totals and closures of a range; otherwise the last 31 days."),
        read=report.a_report,
        document=report_document,
        kind="A",
    ),
)
