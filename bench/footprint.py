"""`make footprint`: what the package takes in each Debian, booted: the table of docs/install.md, "What it takes".

As root, with mmdebstrap and systemd-nspawn; the trees are those of the box tests. Some minutes.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from support.box.debian import BOOKWORM, SID, TRIXIE, Debian, debian, need_debian
from support.box.package import built
from support.box.shop import Shop

SALES = 5
STARTS = 5
NAMES = {BOOKWORM: "Debian 12", TRIXIE: "Debian 13", SID: "Debian sid"}


@dataclass(frozen=True)
class Footprint:
    """Sizes in MB; `starts` in seconds, each from `systemctl restart` until the daemon says that it is ready."""

    python: str
    package: float
    disk: float
    resident: float
    starts: tuple[float, ...]


def measured(suite: str) -> Footprint:
    with debian(suite) as box:
        box.boot()
        shop = Shop(box, built())
        shop.open()
        for _ in range(SALES):
            shop.sell()
        resident = _resident(box, shop.unit("MainPID"))
        starts = tuple(_start(box) for _ in range(STARTS))
        python = box.run("python3", "--version").stdout.split()[1]
        disk = int(box.run("du", "-sk", "/usr/lib/mcfd").stdout.split()[0]) * 1024 / 1e6
        shop.sell()
        shop.assert_nothing_is_lost()
        return Footprint(python, shop.package.stat().st_size / 1e6, disk, resident, starts)


def _resident(box: Debian, process: str) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", box.run("cat", f"/proc/{process}/status").stdout)
    assert found
    return int(found[1]) * 1024 / 1e6


def _start(box: Debian) -> float:
    began = time.monotonic()
    box.run("systemctl", "restart", "mcfd.service")
    return time.monotonic() - began


def table(found: dict[str, Footprint]) -> str:
    rows: tuple[tuple[str, Callable[[Footprint], str]], ...] = (
        ("package", lambda each: f"{each.package:.0f} MB"),
        ("disk, with byte code", lambda each: f"{each.disk:.0f} MB"),
        ("memory, resident", lambda each: f"{each.resident:.0f} MB"),
        ("`systemctl restart mcfd` until it serves", lambda each: f"{statistics.median(each.starts):.1f} s"),
    )
    lines = ["| | " + " | ".join(f"{NAMES[suite]}, Python {each.python}" for suite, each in found.items()) + " |"]
    lines.append("|---|" + "---|" * len(found))
    lines += [f"| {name} | " + " | ".join(show(each) for each in found.values()) + " |" for name, show in rows]
    return "\n".join(lines)


def main() -> None:
    need_debian()
    suites = sys.argv[1:] or [BOOKWORM, TRIXIE]
    found = {}
    for suite in suites:
        found[suite] = measured(suite)
        starts = ", ".join(f"{each:.1f}" for each in found[suite].starts)
        print(f"{NAMES[suite]}: starts {starts} s", flush=True)
    print(f"\n{table(found)}")


if __name__ == "__main__":
    main()
