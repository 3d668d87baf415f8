"""What the closures of one book say of themselves and of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from headquarters.core.finding import GONE, Fact, Facts
from headquarters.core.held import Held


def alone(held: Held) -> Iterator[Fact]:
    """What one closure shows by itself."""
    z = held.z
    if held.proven is False:
        yield Fact("chain", f"{z}", {"z": z, "what": "head", "has": held.head[:16]})
    if held.unexplained > 0:
        yield Fact("unexplained", f"{z}", {"z": z, "count": held.unexplained})
    if held.opening is None:
        return
    grown = held.counters[1] + held.counters[2] - held.opening[1] - held.opening[2]
    if grown != held.certs + held.unexplained:
        told = held.certs + held.unexplained
        yield Fact("counters", f"{z}:sum", {"z": z, "what": "sum", "grown": grown, "told": told})


def pair(before: Held, after: Held) -> Iterator[Fact]:
    """What a closure and the next one of the same book show; `after.z` is `before.z + 1`."""
    z = after.z
    if not joined(before, after):
        facts: Facts = {"z": z, "what": "previous", "has": after.previous_head[:16], "held": before.head[:16]}
        yield Fact("chain", f"{z}:previous", facts)
    if before.nim != after.nim:
        return  # another activation of the machine: its counters may start again (decision 33)
    fallen = _fallen(before, after)
    if fallen:
        yield Fact("counters", f"{z}:down", {"z": z, "what": "down", "counter": fallen})
    elif after.opening is not None and after.opening != before.counters:
        yield Fact("counters", f"{z}:opening", {"z": z, "what": "opening"})
    elif not _fvc_joined(before, after):
        facts = {"z": z, "what": "fvc", "start": after.fvc_start, "end": before.fvc_end}
        yield Fact("counters", f"{z}:fvc", facts)


def joined(before: Held, after: Held) -> bool:
    """Whether `after` names `before` as the closure before it. A box too old to name one is taken at its word."""
    if not after.ledger_id:
        return True
    return after.previous_id == before.id and (not before.head or after.previous_head == before.head)


def _fallen(before: Held, after: Held) -> str:
    names = ("TC", "FVC", "FRC")
    fallen = [name for name, was, now in zip(names, before.counters, after.counters, strict=True) if now < was]
    return ", ".join(fallen)


def _fvc_joined(before: Held, after: Held) -> bool:
    """An empty period, or one of credit notes alone, begins at the last FVC known; any other at the next one."""
    if after.fvc_end < after.fvc_start:
        return False
    return before.fvc_end <= after.fvc_start <= before.fvc_end + 1 + after.unexplained


def missing(numbers: Iterable[int], last: int) -> list[tuple[int, int]]:
    """The ranges of 1…`last`, both ends included, of which `numbers` (sorted) has none."""
    ends = [0, *numbers, last + 1]
    return [(before + 1, after - 1) for before, after in pairwise(ends) if after - before > 1]


class Missing(msgspec.Struct, frozen=True):
    """Z numbers `first` to `last`; `is_gone` when the box says that its ledger never had them."""

    first: int
    last: int
    is_gone: bool = False


def gaps(found: Iterable[Missing]) -> list[Fact]:
    return [_gap(one) for one in found]


def _gap(missing: Missing) -> Fact:
    key, facts = f"{missing.first}-{missing.last}", {"first": missing.first, "last": missing.last}
    return Fact("gap", f"{key}:{GONE}", {**facts, "what": GONE}) if missing.is_gone else Fact("gap", key, {**facts})
