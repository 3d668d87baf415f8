"""What a box is asked to send again, and how often: each missing range at once, then at growing intervals, and at last no more. What is
refused whenever it comes is not asked for for ever; its finding stays."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headquarters.core.checks import Missing

FIRST_MILLIS = 3_600_000
MOST_TIMES = 10
"""At twice the interval each time: the last request is three weeks after the first."""
MOST_RANGES = 20
"""In one answer."""


class RequestedRange(msgspec.Struct, frozen=True, array_like=True):
    """A range is known by its first number: its end may move on each day."""

    first: int
    times: int
    at: int
    """ms, of the last time"""


def due(requests: Sequence[RequestedRange], missing: Sequence[Missing], now: int) -> list[Missing]:
    """What may be asked for now. A last time that is still to come is none: the clock was wrong."""
    before = {one.first: one for one in requests}
    return [one for one in missing if _is_due(before.get(one.first), now)][:MOST_RANGES]


def counted(
    requests: Sequence[RequestedRange], missing: Sequence[Missing], new: Sequence[Missing], now: int
) -> list[RequestedRange]:
    """What was asked, after those were; of what is missing still."""
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
