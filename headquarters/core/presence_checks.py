"""What a box's own word shows."""

from __future__ import annotations

from collections.abc import Iterator

from common.wire.instants import instant_millis
from common.wire.presence import Presence
from headquarters.core.finding import Fact, Facts
from headquarters.core.held import Held

CLOCK_SECONDS = 300
"""As far as a signature's time may be off; a box that is further off cannot deliver by HTTPS."""
TAX_DAYS = 5
SETTLED_MILLIS = 1000
HOUR_MILLIS = 3_600_000
DEFERRED_HOURS = 40
"""Age of a sale that is not certified yet, by the box's clock; the law leaves 48."""


def facts_of(
    presence: Presence, *, at: int, now: int, newest: str, last: Held | None, closed_at: int
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
        yield from _against_held(presence, at, last, closed_at)


def _against_held(presence: Presence, at: int, last: Held, closed_at: int) -> Iterator[Fact]:
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
