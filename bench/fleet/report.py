"""`python -m bench.fleet.report UNDISTURBED KILLED`: two runs (`--out`) as the table of docs/headquarters.md, between its marks, and the picture
beside it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from bench.fleet.plan import GROUPS, Run
from bench.plots import Axis, Line, chart

DOCS = Path(__file__).parents[2] / "docs"
TABLE = re.compile("(?<=<!-- fleet begins -->\n).*?(?=<!-- fleet ends -->)", re.DOTALL)
PICTURE = "headquarters-fleet.svg"
PHASES = {"drained": "after the outage", "live": "while boxes send", "killed": "and all is killed"}
STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def table(runs: tuple[Run, Run]) -> str:
    """A column for each run, beside the goals."""
    rows = [
        ("", "goal", *(f"{len(run.result.kills) or 'no'} kills" for run in runs)),
        *[("---",) * 4],
        (
            "boxes in the register, closures",
            "",
            *(f"{_number(GROUPS * r.plan.boxes)}, {_number(r.result.closures)}" for r in runs),
        ),
        ("wrong: lost, doubled, findings too many or not found", "0", *(str(len(run.result.wrong)) for run in runs)),
        (
            "drained after the outage",
            "≥ 1 667 a second",
            *(_rate(r.result.drained, r.result.drain_seconds) for r in runs),
        ),
        (_WORK, "", *(_work(run.result.drain_cpu, run.result.drained) for run in runs)),
        (
            "cluster, headquarters and PostgreSQL together while boxes send",
            "≥ 3 000 a second",
            *(_rate(run.result.live, run.result.live_seconds) for run in runs),
        ),
        (_WORK, "", *(_work(run.result.cpu, run.result.live) for run in runs)),
        ("largest instance", "≤ 150 MB", *(f"{run.result.peak_mib} MB" for run in runs)),
        (
            "presence of 10 000 boxes, at their pace, on both ways, both instances",
            "≤ 5 % of a core",
            *(f"{run.result.presence_core_percent:.1f} %" for run in runs),
        ),
        ("the same with nobody speaking", "", *(f"{run.result.idle_core_percent:.1f} %" for run in runs)),
        ("load average at the end", "", *(f"{run.result.load:.0f}" for run in runs)),
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


_WORK = "work for a closure then: headquarters, PostgreSQL, cluster"


def _work(cpu: Mapping[str, float], closures: int) -> str:
    parts = (f"{1e6 * cpu[what] / max(1, closures):.0f}" for what in ("headquarters", "PostgreSQL", "cluster"))
    return f"{' + '.join(parts)} µs of a core"


def _rate(count: int, seconds: float) -> str:
    return f"{_number(round(count / seconds))} a second"


def _number(count: int) -> str:
    return f"{count:,}".replace(",", " ")


def picture(run: Run) -> str:
    """Closures in the table against seconds, a line for each phase."""
    lines = [Line(name, run.result.taken[phase]) for phase, name in PHASES.items()]
    seconds, closures = (max(point[n] for line in lines for point in line.points) for n in (0, 1))
    return chart(
        "Closures taken by headquarters",
        Axis("seconds", _marks(seconds), lambda value: f"{value:g}"),
        Axis("closures, thousands", _marks(closures / 1000), lambda value: f"{value:g}"),
        [Line(line.name, [(at, count / 1000) for at, count in line.points]) for line in lines],
    )


def _marks(most: float) -> list[float]:
    step = next((step for step in STEPS if most <= 6 * step), STEPS[-1])
    return [float(n * step) for n in range(int(most // step) + 2)]


def main() -> None:
    undisturbed, killed = (msgspec.json.decode(Path(name).read_bytes(), type=Run) for name in sys.argv[1:3])
    page = DOCS / "headquarters.md"
    text = f"{table((undisturbed, killed))}\n![Closures taken by headquarters, second by second, of the run with kills]({PICTURE})\n"
    page.write_text(TABLE.sub(lambda _: text, page.read_text()))
    (DOCS / PICTURE).write_text(picture(killed))


if __name__ == "__main__":
    main()
