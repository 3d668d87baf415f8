"""`python -m bench.siege [--only NAMES] [--seconds N]`: every attack alone, then all together."""

import argparse
import time
from collections.abc import Iterator, Sequence

import msgspec

from bench import RESULTS
from bench.siege.attacked_shop import AttackedShop, open_attacked_shop, wait_until_calm, watched
from bench.siege.attacks import ATTACKS
from bench.siege.target import InvoiceTimes

TOGETHER = "all together"
WARM_UP = 10.0
"""Seconds of sales before the first row: loads all modules, and fills the WAL to its first checkpoints."""
CALM = 30.0
"""Seconds without an attack, before them and after."""
GRACE = 10.0
"""Seconds beyond its time that an attacker may need to end."""
SLOWER, GAP, MEMORY, CALM_AFTER = 2.0, 2.0, 128.0, 5.0
"""Limits: p99 relative to the calm, seconds between two watchdog messages, MB, seconds until it is calm again."""
EXCEPTIONS = {"drops, TLS": 12.0, "key-updates, TLS": 20.0, "all together": 6.0, "all together, TLS": 6.0}
"""Other limits of p99; docs/security.md has the reasons."""
HEADS = ("attack", "p50", "p99", "× calm", "errors", "beat gap", "memory", "descriptors", "calm after", "")


class AttackRow(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, memory in MB; `ratio` is p99 relative to the calm."""

    attack: str
    p50: float
    p99: float
    ratio: float
    errors: int
    gap: float
    memory: float
    descriptors: int
    calm_after: float

    @property
    def missed(self) -> list[str]:
        limits = {
            "p99": self.ratio <= EXCEPTIONS.get(self.attack, SLOWER),
            "errors": not self.errors,
            "beat": self.gap <= GAP,
            "memory": self.memory <= MEMORY,
            "calm after": self.calm_after <= CALM_AFTER,
        }
        return [name for name, reached in limits.items() if not reached]

    def cells(self) -> tuple[str, ...]:
        return (
            self.attack,
            f"{self.p50 * 1000:.0f} ms",
            f"{self.p99 * 1000:.0f} ms",
            f"{self.ratio:.2f}",
            str(self.errors),
            f"{self.gap:.1f} s",
            f"{self.memory:.0f} MB",
            str(self.descriptors),
            f"{self.calm_after:.1f} s",
            "MISS " + ", ".join(self.missed) if self.missed else "ok",
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.siege", description="A daemon under attack.")
    parser.add_argument("--only", default="", metavar="NAMES", help=f"some of {', '.join(ATTACKS)}, {TOGETHER}")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each attack")
    options = parser.parse_args()
    wanted = [name.strip() for name in options.only.split(",") if name.strip()] or [*ATTACKS, TOGETHER]
    rows: list[AttackRow] = []
    for tls in (False, True):
        with open_attacked_shop(tls=tls) as site:
            rows += run_attacks(site, wanted, options.seconds)
    lines = [HEADS, ("---", *["--:"] * 8, "---"), *(row.cells() for row in rows)]
    (RESULTS / "siege.md").write_text("".join("| " + " | ".join(cells) + " |\n" for cells in lines))
    missed = [row for row in rows if row.missed]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} pass; the table is in {RESULTS / 'siege.md'}")


def run_attacks(site: AttackedShop, names: Sequence[str], seconds: float) -> list[AttackRow]:
    suffix = ", TLS" if site.target.tls else ""
    print(f"\n{'TLS' if suffix else 'plain'}", flush=True)
    rows = []
    for row in _rows(site, names, seconds):
        rows.append(msgspec.structs.replace(row, attack=row.attack + suffix))
        print("  {:20} {:>8} {:>9} {:>7} {:>6} {:>7} {:>7} {:>6} {:>7}  {}".format(*rows[-1].cells()), flush=True)
    calm = max(rows[0].p99, rows[-1].p99)  # the higher one: it is the slowest of fewer than a hundred
    return [msgspec.structs.replace(row, ratio=row.p99 / calm) for row in rows]


def _rows(site: AttackedShop, names: Sequence[str], seconds: float) -> Iterator[AttackRow]:
    site.till.work(WARM_UP)
    before = _under(site, "calm before", (), CALM, None)
    yield before
    for name in names:
        attacks = list(ATTACKS) if name == TOGETHER else [name]
        yield _under(site, name, attacks, seconds, before.p99)
    yield _under(site, "calm after", (), CALM, before.p99)


def _under(site: AttackedShop, name: str, attacks: Sequence[str], seconds: float, calm: float | None) -> AttackRow:
    began = time.monotonic()
    with watched(site.shop.pid) as peak:
        attackers = site.attack(attacks, seconds, idle=True)
        seen: InvoiceTimes = site.till.work(seconds)
        for attacker in attackers:
            attacker.wait(GRACE + seconds)
        gap = site.manager.longest_gap(began, time.monotonic())
        calm = calm or seen.quantile(0.99)
        calm_after = wait_until_calm(site, SLOWER * calm) if attacks else 0.0
    for error in sorted(set(seen.errors))[:3]:
        print(f"      {error}", flush=True)
    return AttackRow(
        attack=name,
        p50=seen.quantile(0.5),
        p99=seen.quantile(0.99),
        ratio=seen.quantile(0.99) / calm,
        errors=len(seen.errors),
        gap=gap,
        memory=peak.resident,
        descriptors=peak.descriptors,
        calm_after=calm_after,
    )


if __name__ == "__main__":
    main()
