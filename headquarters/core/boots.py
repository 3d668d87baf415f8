"""Two boxes with one identity, as of a card that was copied: each start of a daemon has a name of its own (`boot` of its presence), and a start that
is heard again after another one has begun is a second box."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import msgspec

MOST = 4
"""Starts that are remembered of a machine."""
MARGIN_MILLIS = 60_000
"""The last word of a daemon that ends may come after the first one of its next start; never that long after."""
FORGETS_MILLIS = 3_600_000
"""Who was not heard for so long is there no more."""


class HeardBoot(msgspec.Struct, frozen=True, array_like=True):
    """Times by our clock, in ms."""

    boot: str
    first: int
    last: int


def heard(boots: Sequence[HeardBoot], boot: str, at: int) -> list[HeardBoot]:
    """With that word, the start that was heard last behind the others."""
    known = next((one for one in boots if one.boot == boot), HeardBoot(boot, at, at))
    others = [one for one in boots if one.boot != boot]
    return [*others[-(MOST - 1) :], HeardBoot(boot, known.first, max(known.last, at))]


def two_at_once(boots: Sequence[HeardBoot], now: int) -> tuple[str, str] | None:
    """The names of two starts that speak in turn; None where there is one box."""
    recent = [one for one in boots if abs(now - one.last) <= FORGETS_MILLIS]
    for older, newer in permutations(recent, 2):
        if older.first < newer.first <= older.last - MARGIN_MILLIS:
            return older.boot, newer.boot
    return None
