"""Checks of closures: each one alone, and consecutive ones of a book. The record of a closure has the needed fields.

Also the schedule of requests for missing closures: each range at once, then at growing intervals, with a limit,
because a range may be refused each time. Its finding remains."""

import hashlib
import operator
from collections.abc import Iterator, Sequence
from operator import attrgetter

import msgspec

from common.wire.closure import ClosureData, proves_itself
from common.wire.instants import instant_millis
from common.wire.presence import Presence
from headquarters.core.wording import GONE, Fact, Facts

EXPORTS = ("EV", "ET", "EA")
"""Invoice types that some machines count in TC only (protocol 5.2)."""
Triple = tuple[int, int, int]
"""Counters of the machine: tc, fvc, frc."""

CLOCK_SECONDS = 300
"""Tolerance for a signature's time, in seconds; beyond it a box cannot deliver by HTTPS."""
TAX_DAYS = 5
SETTLED_MILLIS = 1000
HOUR_MILLIS = 3_600_000
DEFERRED_HOURS = 40
"""Age of an uncertified sale by the box's clock; the law's limit is 48 hours."""

FIRST_MILLIS = 3_600_000
MAX_TIMES = 10
"""The interval doubles each time: the last request is three weeks after the first."""
MAX_RANGES = 20
"""Per answer."""

_figures = attrgetter(
    *("nim", "mode", "report_id", "z_number", "period_start", "period_end", "created_at", "certs_count", "total_ttc"),
    *("total_ht", "total_tva", "by_group", "by_type", "fvc_start", "fvc_end", "mcf_counters", "unexplained"),
    *("chain_previous", "chain_head"),
)
"""The fields that identify a closure. Excludes later additions, label and key: a replay after an update is no fork."""


class ClosureRecord(msgspec.Struct, frozen=True, array_like=True):
    """Heads are hex, empty from boxes that are too old to send them; `digest` covers the figures."""

    z: int
    id: str
    digest: bytes
    head: str
    previous_id: str | None
    previous_head: str
    counters: Triple
    opening: Triple | None
    fvc_start: int
    fvc_end: int
    certs: int
    unexplained: int
    proven: bool | None
    """None if the closure has no body to verify."""
    ledger_id: str
    nim: str
    gone: tuple[tuple[int, int], ...] = ()
    """Ranges of earlier numbers that its ledger never had; empty in rows of older versions."""
    exports: int = 0
    """Number of `certs` that a machine may count in TC only."""


class Missing(msgspec.Struct, frozen=True):
    """Z numbers `first` to `last`; `is_gone` if the box states that its ledger never had them."""

    first: int
    last: int
    is_gone: bool = False


class RequestedRange(msgspec.Struct, frozen=True, array_like=True):
    """Identified by its first number, since its end may move daily."""

    first: int
    times: int
    at: int
    """ms, of the last request"""


def machine_of(nim: str) -> str:
    """The NIM up to its dash: the suffix counts the machine's activations (decision 33)."""
    return nim.partition("-")[0]


def record_of(data: ClosureData) -> ClosureRecord:
    end, opening = data.mcf_counters, data.opening_counters
    return ClosureRecord(
        z=data.z_number,
        id=data.report_id,
        digest=hashlib.sha256(msgspec.msgpack.encode(_figures(data))).digest(),
        head=data.chain_head,
        previous_id=data.previous_report_id,
        previous_head=data.previous_chain_head,
        counters=(end.tc, end.fvc, end.frc),
        opening=(opening.tc, opening.fvc, opening.frc) if opening else None,
        fvc_start=data.fvc_start,
        fvc_end=data.fvc_end,
        certs=data.certs_count,
        unexplained=data.unexplained,
        proven=proves_itself(data) if data.body else None,
        ledger_id=data.ledger_id,
        nim=data.nim,
        gone=tuple((gap.first, gap.last) for gap in data.gaps),
        exports=sum(each.count for each in data.by_type if each.invoice_type in EXPORTS),
    )


def alone(record: ClosureRecord) -> Iterator[Fact]:
    """Findings of one closure."""
    z = record.z
    if record.proven is False:
        yield Fact("chain", f"{z}", {"z": z, "what": "head", "has": record.head[:16]})
    if record.unexplained > 0:
        yield Fact("unexplained", f"{z}", {"z": z, "count": record.unexplained})


def pair(before: ClosureRecord, after: ClosureRecord) -> Iterator[Fact]:
    """Findings of two consecutive closures of a book; `after.z` is `before.z + 1`."""
    z = after.z
    if not joined(before, after):
        facts: Facts = {"z": z, "what": "previous", "has": after.previous_head[:16], "held": before.head[:16]}
        yield Fact("chain", f"{z}:previous", facts)
    if before.nim != after.nim:
        return  # another activation of the machine may reset its counters (decision 33)
    if after.opening is not None:
        grown = after.counters[1] + after.counters[2] - after.opening[1] - after.opening[2]
        total = after.certs + after.unexplained
        in_tc_alone = after.counters[0] - after.opening[0] - grown
        foreign_exports = min(after.unexplained, max(0, in_tc_alone - after.exports))
        if not total - after.exports - foreign_exports <= grown <= total:
            yield Fact("counters", f"{z}:sum", {"z": z, "what": "sum", "grown": grown, "told": total})
    fallen = _fallen(before, after)
    if fallen:
        yield Fact("counters", f"{z}:down", {"z": z, "what": "down", "counter": fallen})
    elif after.opening is not None:  # whose first sale may be a later one: a person enters an earlier one from paper
        if after.opening != before.counters:
            yield Fact("counters", f"{z}:opening", {"z": z, "what": "opening"})
    elif not _fvc_joined(before, after):
        facts = {"z": z, "what": "fvc", "start": after.fvc_start, "end": before.fvc_end}
        yield Fact("counters", f"{z}:fvc", facts)


def joined(before: ClosureRecord, after: ClosureRecord) -> bool:
    """Whether `after` names `before` as its predecessor. True for boxes too old to name one."""
    if not after.ledger_id:
        return True
    return after.previous_id == before.id and (not before.head or after.previous_head == before.head)


def replaced(records: Sequence[ClosureRecord]) -> dict[str, int]:
    """Closures of a ledger, in order of their numbers, whose sales a later one has again, since the ledger was restored
    in between: by id, the number of the later one."""
    places = {record.id: place for place, record in enumerate(records)}
    found: dict[str, int] = {}
    at = len(records) - 1
    while at >= 0:
        after = records[at]
        before = -1 if after.previous_id is None else places.get(after.previous_id, at)
        if before >= at:
            break  # its predecessor is not stored
        between = records[before + 1 : at]
        if between and has_all_of(after, records[before] if before >= 0 else None, between):
            found |= {record.id: after.z for record in between}
        at = before
    return found


def has_all_of(after: ClosureRecord, before: ClosureRecord | None, between: Sequence[ClosureRecord]) -> bool:
    """Whether `after`, which follows `before` (None: it is its ledger's first), has all sales of closures with numbers
    between them: the machine has counted none since `before` that it does not explain."""
    counted = all(
        other.nim == after.nim and all(map(operator.le, other.counters, after.counters)) and other.certs <= after.certs
        for other in between
    )
    if after.unexplained or not counted:
        return False
    if before is None:
        return after.opening is None and all(after.fvc_start <= other.fvc_start for other in between)
    return after.opening == before.counters and after.nim == before.nim


def has_sales_of(after: ClosureRecord, other: ClosureRecord) -> bool:
    """Of two closures that follow the same one, `after` of a restored ledger: whether it begins with a sale that
    `other` has. A machine gives each sale of an activation another FVC; the last one of `other` may be in no total of
    `after`: as the machine's last invoice, with which the ledger was compared, it is unexplained."""
    credit_notes = after.counters[2] - after.opening[2] if after.opening else 0
    is_comparable = after.nim == other.nim and other.certs > 0 and after.certs > credit_notes
    return is_comparable and other.fvc_start <= after.fvc_start <= other.fvc_end - bool(after.unexplained)


def _fallen(before: ClosureRecord, after: ClosureRecord) -> str:
    names = ("TC", "FVC", "FRC")
    fallen = [name for name, was, now in zip(names, before.counters, after.counters, strict=True) if now < was]
    return ", ".join(fallen)


def _fvc_joined(before: ClosureRecord, after: ClosureRecord) -> bool:
    """An empty period, or one with credit notes only, starts at the last known FVC, any other at the next one."""
    if after.fvc_end < after.fvc_start:
        return False
    return before.fvc_end <= after.fvc_start <= before.fvc_end + 1 + after.unexplained


def gap_of(missing: Missing) -> Fact:
    key, facts = f"{missing.first}-{missing.last}", {"first": missing.first, "last": missing.last}
    return Fact("gap", f"{key}:{GONE}", {**facts, "what": GONE}) if missing.is_gone else Fact("gap", key, {**facts})


def facts_of(presence: Presence, *, at: int, now: int, newest: str) -> Iterator[Fact]:
    """Findings that end by themselves. `at` and `now` are the box's clock and ours in ms; `newest` is the version that
    boxes should have, empty to skip this check."""
    off = (at - now) // 1000
    if abs(off) > CLOCK_SECONDS:
        yield Fact("clock", "", {"what": "box", "seconds": off})
    elif presence.drift is not None and abs(presence.drift) > CLOCK_SECONDS:
        yield Fact("clock", "machine", {"what": "machine", "seconds": presence.drift})
    if presence.tax_days is not None and presence.tax_days >= TAX_DAYS:
        yield Fact("tax-server", "", {"days": presence.tax_days})
    if presence.sold and (hours := (at - instant_millis(presence.sold, "sold")) // HOUR_MILLIS) >= DEFERRED_HOURS:
        yield Fact("deferred", "", {"hours": hours})
    if newest and _number(presence.version) < _number(newest):
        yield Fact("version", "", {"has": presence.version, "newest": newest})


def ledger_facts(
    presence: Presence, at: int, ledger: str | None, last: ClosureRecord | None, closed_at: int
) -> Iterator[Fact]:
    """A box that lacks a closure it has sent was restored or has a new ledger; one with another head was altered.
    `ledger` is the accepted one, if any; `last` is its last stored closure, created at `closed_at`."""
    ledger, z, head = ledger or (last.ledger_id if last else ""), last.z if last else 0, last.head if last else ""
    if ledger and presence.ledger != ledger:
        facts: Facts = {"z": z, "what": "ledger", "ledger": presence.ledger, "held": ledger}
        yield Fact("fork", f"ledger:{presence.ledger}", facts)
    elif presence.z < z and at > closed_at + SETTLED_MILLIS:
        yield Fact("fork", f"{presence.z}<{z}", {"z": z, "what": "behind", "knows": presence.z})
    elif presence.z == z and presence.z_head and head and presence.z_head != head[:16]:
        facts = {"z": z, "what": "head", "has": presence.z_head, "held": head[:16]}
        yield Fact("fork", f"{z}:{presence.z_head}", facts)


def _number(version: str) -> tuple[int, ...]:
    """`1.4.0` and `1.4.0+git` are equal; parts that are not numbers count as 0."""
    parts = version.partition("+")[0].partition("-")[0].split(".")
    return tuple(int(part) if part.isdecimal() else 0 for part in parts)


def due(requests: Sequence[RequestedRange], missing: Sequence[Missing], now: int) -> list[Missing]:
    """Ranges that may be requested now. A last request in the future is ignored: the clock was wrong."""
    before = {one.first: one for one in requests}
    return [one for one in missing if _is_due(before.get(one.first), now)][:MAX_RANGES]


def counted(
    requests: Sequence[RequestedRange], missing: Sequence[Missing], new: Sequence[Missing], now: int
) -> list[RequestedRange]:
    """The requests of ranges that are still missing, including the new ones."""
    before = {one.first: one for one in requests}
    for one in new:
        times = before[one.first].times if one.first in before else 0
        before[one.first] = RequestedRange(one.first, times + 1, now)
    return [before[one.first] for one in missing if one.first in before]


def _is_due(last: RequestedRange | None, now: int) -> bool:
    if last is None:
        return True
    wait = FIRST_MILLIS << (last.times - 1)
    return last.times < MAX_TIMES and (now >= last.at + wait or now < last.at - FIRST_MILLIS)
