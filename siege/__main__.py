"""`python -m siege [--only NAMES] [--seconds N] [--plain | --tls]`: every attack alone, then all together."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from siege import RESULTS
from siege.attacks import ATTACKS
from siege.fortress import Fortress, put_first, standing, wait_until_calm
from siege.gauge import Peak, watched
from siege.table import SLOWER, Row, markdown, shown
from siege.till import Seen

TOGETHER = "all together"
GRACE = 10.0
"""Seconds more than its time that an attacker may need to be gone."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m siege", description="A daemon under attack.")
    parser.add_argument("--only", default="", metavar="NAMES", help=f"some of {', '.join(ATTACKS)}, {TOGETHER}")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each attack")
    parser.add_argument("--calm", type=float, default=30.0, help="seconds without an attack, before them and after")
    parser.add_argument(
        "--place", type=Path, default=RESULTS, help="where the ledger is: in memory, when others keep the disk busy"
    )
    parser.add_argument("--plain", action="store_true", help="only without TLS")
    parser.add_argument("--tls", action="store_true", help="only with TLS")
    parser.add_argument(
        "--first", action="store_true", help="till, daemon and simulator before other work of a busy box"
    )
    parser.add_argument("--strict", action="store_true", help="exit 1 when a goal is missed")
    options = parser.parse_args()
    wanted = [name.strip() for name in options.only.split(",") if name.strip()] or [*ATTACKS, TOGETHER]
    both = options.plain == options.tls
    rows: list[Row] = []
    for tls in (False, True):
        if both or tls == options.tls:
            with standing(tls=tls, place=options.place) as fortress:
                if options.first:
                    put_first(fortress)
                rows += besiege(fortress, wanted, Times(options.seconds, options.calm))
    (RESULTS / "siege.json").write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=1))
    (RESULTS / "siege.md").write_text(markdown(rows) + "\n")
    missed = [row for row in rows if row.missed]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} held; the table is in {RESULTS / 'siege.md'}")
    return 1 if missed and options.strict else 0


@dataclass(frozen=True)
class Times:
    """Seconds of each attack, and without one: before them, and after."""

    attack: float
    calm: float


def besiege(fortress: Fortress, names: Sequence[str], times: Times) -> list[Row]:
    suffix = ", TLS" if fortress.target.tls else ""
    print(f"\n{'TLS' if suffix else 'plain'}", flush=True)
    rows = []
    for row in attacked(fortress, names, times):
        print(shown(row), flush=True)
        rows.append(msgspec.structs.replace(row, attack=row.attack + suffix))
    calm = max(rows[0].p99, rows[-1].p99)  # of both together, as it is the slowest of fewer than a hundred
    return [msgspec.structs.replace(row, ratio=row.p99 / calm) for row in rows]


@dataclass(frozen=True)
class Used:
    """What the daemon needed, and the longest time (s) between two of its beats."""

    peak: Peak
    gap: float
    calm_after: float = 0.0


def attacked(fortress: Fortress, names: Sequence[str], times: Times) -> Iterator[Row]:
    """`ratio` is by the calm before: that after is not there yet."""
    fortress.till.work(2)  # what is loaded at the first invoice
    before = _calm(fortress, "calm before", times.calm)
    yield before
    for name in names:
        yield _under(fortress, name, times.attack, before.p99)
    after = _calm(fortress, "calm after", times.calm)
    yield msgspec.structs.replace(after, ratio=after.p99 / before.p99)


def _calm(fortress: Fortress, name: str, seconds: float) -> Row:
    began = time.monotonic()
    with watched(fortress.shop.pid, fortress.shop.folder) as peak:
        seen = fortress.till.work(seconds)
    return _row(name, seen, seen.quantile(0.99), Used(peak, fortress.manager.longest_gap(began, time.monotonic())))


def _under(fortress: Fortress, name: str, seconds: float, bound: float) -> Row:
    began = time.monotonic()
    with watched(fortress.shop.pid, fortress.shop.folder) as peak:
        attackers = fortress.attack(list(ATTACKS) if name == TOGETHER else [name], seconds, idle=True)
        seen = fortress.till.work(seconds)
        for attacker in attackers:
            attacker.wait(GRACE + seconds)
        gap = fortress.manager.longest_gap(began, time.monotonic())
        calm_after = wait_until_calm(fortress, SLOWER * bound)
    for error in sorted(set(seen.errors))[:3]:
        print(f"      {error}", flush=True)
    return _row(name, seen, bound, Used(peak, gap, calm_after))


def _row(name: str, seen: Seen, calm: float, used: Used) -> Row:
    return Row(
        attack=name,
        p50=seen.quantile(0.5),
        p99=seen.quantile(0.99),
        ratio=seen.quantile(0.99) / calm,
        errors=len(seen.errors),
        gap=used.gap,
        memory=used.peak.resident,
        descriptors=used.peak.descriptors,
        disk=used.peak.disk,
        calm_after=used.calm_after,
    )


if __name__ == "__main__":
    sys.exit(main())
