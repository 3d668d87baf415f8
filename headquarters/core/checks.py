"""What headquarters keeps in mind of a closure, and what the closures of one book say of themselves and of each other.

What a box shall send again, and how often: each missing range at once, then at growing intervals, and at last no more. What is
refused whenever it comes is not requested for ever; its finding stays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from operator import attrgetter

import msgspec

from common.wire.closure import ClosureData, proves_itself
from common.wire.instants import instant_millis
from common.wire.presence import Presence
from headquarters.core.wording import GONE, Fact, Facts

EXPORTS = ("EV", "ET", "EA")
"""Some machines count them in TC alone (protocol 5.2)."""
Triple = tuple[int, int, int]
"""Counters of the machine: tc, fvc, frc."""

CLOCK_SECONDS = 300
"""As far as a signature's time may be off; a box that is further off cannot deliver by HTTPS."""
TAX_DAYS = 5
SETTLED_MILLIS = 1000
HOUR_MILLIS = 3_600_000
DEFERRED_HOURS = 40
"""Age of a sale that is not certified yet, by the box's clock; the law leaves 48."""

FIRST_MILLIS = 3_600_000
MOST_TIMES = 10
"""At twice the interval each time: the last request is three weeks after the first."""
MOST_RANGES = 20
"""In one answer."""

_figures = attrgetter(
    *("nim", "mode", "report_id", "z_number", "period_start", "period_end", "created_at", "certs_count", "total_ttc"),
    *("total_ht", "total_tva", "by_group", "by_type", "fvc_start", "fvc_end", "mcf_counters", "unexplained"),
    *("chain_previous", "chain_head"),
)
"""What makes two messages one closure. Not what a later version of the box adds, nor its label or its key: a replay after an
update is no fork."""


class ClosureRecord(msgspec.Struct, frozen=True, array_like=True):
    """Heads are hex, empty where the box is too old to send them; `digest` is over the figures."""

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
    """None when the closure carries no body to prove it with."""
    ledger_id: str
    nim: str
    gone: tuple[tuple[int, int], ...] = ()
    """Ranges of numbers before it that its ledger never had; a row of an older version has none."""
    exports: int = 0
    """How many of `certs` a machine may count in TC alone."""


class Missing(msgspec.Struct, frozen=True):
    """Z numbers `first` to `last`; `is_gone` when the box says that its ledger never had them."""

    first: int
    last: int
    is_gone: bool = False


class RequestedRange(msgspec.Struct, frozen=True, array_like=True):
    """A range is known by its first number: its end may move on each day."""

    first: int
    times: int
    at: int
    """ms, of the last time"""


def machine_of(nim: str) -> str:
    """The NIM up to its dash: the suffix counts the machine's activations (decision 33)."""
    return nim.partition("-")[0]


def digest_of(data: ClosureData) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(_figures(data))).digest()


def record_of(data: ClosureData) -> ClosureRecord:
    end, opening = data.mcf_counters, data.opening_counters
    return ClosureRecord(
        z=data.z_number,
        id=data.report_id,
        digest=digest_of(data),
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
    """What one closure shows by itself."""
    z = record.z
    if record.proven is False:
        yield Fact("chain", f"{z}", {"z": z, "what": "head", "has": record.head[:16]})
    if record.unexplained > 0:
        yield Fact("unexplained", f"{z}", {"z": z, "count": record.unexplained})


def pair(before: ClosureRecord, after: ClosureRecord) -> Iterator[Fact]:
    """What a closure and the next one of the same book show; `after.z` is `before.z + 1`."""
    z = after.z
    if not joined(before, after):
        facts: Facts = {"z": z, "what": "previous", "has": after.previous_head[:16], "held": before.head[:16]}
        yield Fact("chain", f"{z}:previous", facts)
    if before.nim != after.nim:
        return  # another activation of the machine: its counters may start again (decision 33)
    if after.opening is not None:
        grown = after.counters[1] + after.counters[2] - after.opening[1] - after.opening[2]
        total = after.certs + after.unexplained
        if not total - after.exports <= grown <= total:
            yield Fact("counters", f"{z}:sum", {"z": z, "what": "sum", "grown": grown, "told": total})
    fallen = _fallen(before, after)
    if fallen:
        yield Fact("counters", f"{z}:down", {"z": z, "what": "down", "counter": fallen})
    elif after.opening is not None and after.opening != before.counters:
        yield Fact("counters", f"{z}:opening", {"z": z, "what": "opening"})
    elif not _fvc_joined(before, after):
        facts = {"z": z, "what": "fvc", "start": after.fvc_start, "end": before.fvc_end}
        yield Fact("counters", f"{z}:fvc", facts)


def joined(before: ClosureRecord, after: ClosureRecord) -> bool:
    """Whether `after` names `before` as the closure before it. A box too old to name one is taken at its word."""
    if not after.ledger_id:
        return True
    return after.previous_id == before.id and (not before.head or after.previous_head == before.head)


def _fallen(before: ClosureRecord, after: ClosureRecord) -> str:
    names = ("TC", "FVC", "FRC")
    fallen = [name for name, was, now in zip(names, before.counters, after.counters, strict=True) if now < was]
    return ", ".join(fallen)


def _fvc_joined(before: ClosureRecord, after: ClosureRecord) -> bool:
    """An empty period, or one of credit notes alone, begins at the last FVC known; any other at the next one."""
    if after.fvc_end < after.fvc_start:
        return False
    return before.fvc_end <= after.fvc_start <= before.fvc_end + 1 + after.unexplained


def gap_of(missing: Missing) -> Fact:
    key, facts = f"{missing.first}-{missing.last}", {"first": missing.first, "last": missing.last}
    return Fact("gap", f"{key}:{GONE}", {**facts, "what": GONE}) if missing.is_gone else Fact("gap", key, {**facts})


def facts_of(
    presence: Presence, *, at: int, now: int, newest: str, last: ClosureRecord | None, closed_at: int
) -> Iterator[Fact]:
    """`at` and `now` are the box's clock and ours in milliseconds, `last` the last closure we hold, made at `closed_at`;
    `newest` the version that boxes should have, empty when it does not matter."""
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
    if last is not None and presence.mode == "live":
        yield from _against_last(presence, at, last, closed_at)


def _against_last(presence: Presence, at: int, last: ClosureRecord, closed_at: int) -> Iterator[Fact]:
    """A box that does not know what it has sent was put back, or has a new ledger; one that knows it otherwise was altered."""
    if last.ledger_id and presence.ledger != last.ledger_id:
        facts: Facts = {"z": last.z, "what": "ledger", "ledger": presence.ledger, "held": last.ledger_id}
        yield Fact("fork", f"ledger:{presence.ledger}", facts)
    elif presence.z < last.z and at > closed_at + SETTLED_MILLIS:
        yield Fact("fork", f"{presence.z}<{last.z}", {"z": last.z, "what": "behind", "knows": presence.z})
    elif presence.z == last.z and presence.z_head and last.head and presence.z_head != last.head[:16]:
        facts = {"z": last.z, "what": "head", "has": presence.z_head, "held": last.head[:16]}
        yield Fact("fork", f"{last.z}:{presence.z_head}", facts)


def _number(version: str) -> tuple[int, ...]:
    """`1.4.0` and `1.4.0+git` are the same; what is no number counts as 0."""
    parts = version.partition("+")[0].partition("-")[0].split(".")
    return tuple(int(part) if part.isdecimal() else 0 for part in parts)


def due(requests: Sequence[RequestedRange], missing: Sequence[Missing], now: int) -> list[Missing]:
    """What may be requested now. A last time that is still to come is none: the clock was wrong."""
    before = {one.first: one for one in requests}
    return [one for one in missing if _is_due(before.get(one.first), now)][:MOST_RANGES]


def counted(
    requests: Sequence[RequestedRange], missing: Sequence[Missing], new: Sequence[Missing], now: int
) -> list[RequestedRange]:
    """What was requested, after these requests; of what is missing still."""
    before = {one.first: one for one in requests}
    for one in new:
        times = before[one.first].times if one.first in before else 0
        before[one.first] = RequestedRange(one.first, times + 1, now)
    return [before[one.first] for one in missing if one.first in before]


def _is_due(last: RequestedRange | None, now: int) -> bool:
    if last is None:
        return True
    wait = FIRST_MILLIS << (last.times - 1)
    return last.times < MOST_TIMES and (now >= last.at + wait or now < last.at - FIRST_MILLIS)
