"""`python -m bench.published`: the last recorded runs on this kind of machine, as the table of docs/performance.md.

Three whole runs with `make bench ARGS=--record`, then this: it writes what stands between the marks, and nothing else.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import ROOT
from bench.figures import shown
from bench.goals import GOALS
from bench.history import RUNS, Recorded, kind_of, last_recorded
from bench.results import box

PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- table: made by python -m bench.published -->\n", "<!-- table -->\n"


def table(recorded: Recorded, runs: int = RUNS) -> str:
    """A line for each goal, a column for each of the last runs; what a run did not measure is a dash."""
    last = recorded.runs[-runs:]
    lines = ["| # | what | goal |" + " value |" * len(last) + " |", "|---|---|---|" + "--:|" * len(last) + "---|"]
    for goal in GOALS.values():
        values = [run.get(goal.row) for run in last]
        found = [value for value in values if value is not None]
        reached = sum(goal.is_met(value) for value in found)
        cells = (goal.row, goal.what, str(goal), *("–" if value is None else shown(value) for value in values))
        if goal.limit is None:
            said = "for comparison"
        else:
            said = (
                "" if reached == len(last) else "not measured" if not found else f"reached in {reached} of {len(found)}"
            )
        lines.append(f"| {' | '.join(cells)} | {said} |")
    return "\n".join(lines) + "\n"


def published(page: str, recorded: Recorded, runs: int = RUNS) -> str:
    """The page with that table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"no place for the table: {BEGIN.strip()} … {END.strip()}")
    count = min(runs, len(recorded.runs))
    said = f"Release {recorded.release}, {recorded.kind}, whole runs: {count}, the last one {recorded.at[:10]}."
    return f"{before}{BEGIN}{said}\n\n{table(recorded, runs)}{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.published")
    parser.add_argument("--runs", type=int, default=RUNS, help="of the last recorded (default 3)")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    kind = kind_of(box())
    recorded = last_recorded(kind)
    if recorded is None:
        print(f"no run is recorded for {kind}: make bench ARGS=--record")
        return 1
    options.page.write_text(published(options.page.read_text(), recorded, options.runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
