"""What stands on a machine's paper of an invoice that is not its last any more, as an operator types it in."""

import re
from datetime import UTC, datetime

import msgspec

from common.language import Text
from daemon.core.clock import DAY, machine_millis
from daemon.core.errors import FieldError
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.verdict import MAY_NOT_COUNT, Evidence, went_down
from daemon.core.machine.state import FiscalCounters

_CODE = re.compile("[A-Z0-9]{24}")
_TIMES = ("%Y%m%d%H%M%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%d/%m/%Y %H:%M:%S", "%d-%m-%Y %H:%M:%S")
_COUNTERS = re.compile(r"([0-9]{1,18})/([0-9]{1,18})(?:[A-Z]{2})?")


class PaperInvoice(msgspec.Struct, frozen=True):
    """An invoice from the machine's paper: `code` without dashes, `time` in the machine's 14 digits, `counters` as
    printed in "291/409 FV" (of its type, of all), None if not given. `as_printed`: the person has confirmed implausible
    values."""

    code: str
    time: str
    counters: tuple[int, int] | None = None
    as_printed: bool = False


def read_paper(
    code: str, time: str, counters: str = "", *, as_printed: bool = False
) -> tuple[PaperInvoice | None, list[FieldError]]:
    """Reads typed values: a code in groups, a date as printed. None if all are empty; errors by field."""
    code, time, counters = code.strip(), time.strip(), "".join(counters.split()).upper()
    if not (code or time or counters):
        return None, []
    errors = []
    plain = re.sub(r"[\s-]", "", code).upper()
    if not _CODE.fullmatch(plain):
        errors.append(FieldError("code", Text("must be the code on the machine's paper: 24 letters and digits")))
    digits = _digits14(time)
    if not digits:
        errors.append(FieldError("time", Text("must be the time on the machine's paper, as 31/12/2026 09:30:00")))
    found = _COUNTERS.fullmatch(counters)
    printed = (int(found[1]), int(found[2])) if found else None
    if counters and not (printed and 1 <= printed[0] <= printed[1]):
        errors.append(FieldError("counters", Text("must be the counters on the machine's paper, as 291/409 FV")))
    if errors:
        return None, errors
    return PaperInvoice(plain, digits, printed, as_printed), []


def _digits14(time: str) -> str:
    for form in _TIMES:
        try:
            return datetime.strptime(time, form).replace(tzinfo=UTC).strftime("%Y%m%d%H%M%S")
        except ValueError:
            continue
    return ""


def is_plausible(time: str, begun_at: int, evidence: Evidence | None) -> bool:
    """Whether an invoice begun at `begun_at` (ms) can have been certified at `time` of the machine's clock. The
    evidence tells how wrong that clock is; one day is allowed for zones and clocks that were set."""
    at = machine_millis(time) or 0
    if evidence is None:
        return at >= begun_at - DAY
    ahead = (machine_millis(evidence.state.time) or 0) - evidence.at
    return any(begun_at - DAY <= moment <= evidence.at + DAY for moment in (at, at - ahead))


def on_paper(
    paper: PaperInvoice, attempt: Record, counters: FiscalCounters, now: FiscalCounters | None
) -> FiscalCounters | None:
    """The counters of an invoice on paper: the printed ones, else one more than `counters`. If that exceeds the
    machine's (`now`, None if unknown), the invoice came before the known ones, and counts from its intent. None if
    impossible."""
    after = _next(attempt, counters, now) or _next(attempt, attempt.base, now)
    if paper.counters is None or after is None:
        return after
    of_type, tc = paper.counters  # a machine may count each type by itself: then that says nothing of FVC and FRC
    before = counters if tc > counters.tc else attempt.base
    sold = (
        FiscalCounters(tc, before.fvc, of_type)
        if attempt.invoice.is_credit
        else FiscalCounters(tc, of_type, before.frc)
    )
    if went_down(before, sold) or (now is not None and went_down(sold, now)):
        sold = FiscalCounters(tc, after.fvc, after.frc)
    if tc <= before.tc or (now is not None and tc > now.tc):
        return None
    if now is None:
        return sold
    since = now.tc - tc  # FVC and FRC have moved by no more than TC since: raises what paper does not tell
    return FiscalCounters(tc, max(sold.fvc, now.fvc - since), max(sold.frc, now.frc - since))


def as_printed(paper: PaperInvoice, attempt: Record) -> FiscalCounters | None:
    """The printed counters without a check. The counter that is not printed is that of the intent, limited by TC."""
    if paper.counters is None:
        return None
    of_type, tc = paper.counters
    rest = max(0, tc - of_type)
    if attempt.invoice.is_credit:
        return FiscalCounters(tc, min(attempt.base.fvc, rest), of_type)
    return FiscalCounters(tc, of_type, min(attempt.base.frc, rest))


def _next(attempt: Record, counters: FiscalCounters, now: FiscalCounters | None) -> FiscalCounters | None:
    sold = 0 if attempt.invoice.is_credit else 1
    counted = FiscalCounters(counters.tc + 1, counters.fvc + sold, counters.frc + 1 - sold)
    alone = FiscalCounters(counters.tc + 1, counters.fvc, counters.frc)
    ways = (counted, alone) if attempt.type in MAY_NOT_COUNT else (counted,)
    return next((way for way in ways if now is None or not went_down(way, now)), None)
