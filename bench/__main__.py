"""`python -m bench`: every row of the table, in about five minutes on two cores.

python -m bench [--only 1,7] [--publish] [--record]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from bench import RESULTS, ROOT, curves, history, keep_byte_code
from bench.figures import Row, shown
from bench.goals import GOALS
from bench.large import daemon_rows
from bench.results import box, finish, quiet
from bench.rows import commands, disk, lines, page, reports, sixteen, slow_box, throughput, upstream
from bench.shop import floor
from bench.shop.ledger import growing_beside, verified_beside
from bench.shop.shops import folder, in_memory

SIZES = (10_000, 31_000, 100_000, 365_000)
"""Certifications of the growing ledger; `make bench-large` goes on to 3.65 million."""
LARGE = 1_000_000
"""What it grows to: it takes longer to make than anything else, so all rows on a large ledger use the same one after each other."""


class Run:
    """The parts of the bench, each with the rows it measures, and what the plots are drawn from."""

    def __init__(self) -> None:
        self.plots: dict[str, str] = {}
        self._a: reports.Curve = []
        self._beside = ExitStack()
        self._large = Path()
        self._growing: Future[None] | None = None

    def parts(self) -> dict[str, Callable[[], Iterable[Row]]]:
        return {
            "0": floor.floor,
            "1 2 3 15 17 18d": lines.latency,
            "5": self._together,
            "7": throughput.throughput,
            "18a 18b 18c": slow_box.slow_box,
            "4 4b 4c 4d 13": self._waiting,
            "9": self._ranges,
            "6b 12a": disk.crowded,
            "12 14 19": self._ledger,
            "6a 11": self._counted,
            "8 10": self._period,
            "16": commands.commands,
        }

    def close(self) -> None:
        """What still runs beside the last rows, which are counted or have room enough: who verifies the large ledger."""
        self._beside.close()

    def _waiting(self) -> Iterator[Row]:
        """All of them wait for slow disks or lines most of the time: beside each other."""
        with ThreadPoolExecutor() as beside:
            slow = beside.map(lines.backlog, ("4", "4d"), (lines.SLOW_SYNC_MS, lines.SLOWEST_SYNC_MS))
            others = [beside.submit(list, part()) for part in (lines.idle, upstream.upstream)]
            yield from slow
            for part in others:
                yield from part.result()

    def _counted(self) -> Iterator[Row]:
        """Counts of one daemon each, whatever the clock says: beside each other."""
        with ThreadPoolExecutor() as beside:
            kept = beside.submit(disk.bytes_kept)
            yield from disk.alone()
            yield from kept.result()

    def _together(self) -> Iterator[Row]:
        row, steps = lines.together()
        self.plots["performance-machines"] = curves.machine_throughput(steps)
        yield row

    def _period(self) -> Iterator[Row]:
        with folder() as path:
            x, z, curve = reports.growing_period(path / "period.sqlite3")
        if self._a:
            self.plots["performance-reports"] = curves.report_latency(curve, self._a)
        yield from (x, z)

    def _ranges(self) -> list[Row]:
        """Afterwards the ledger grows on, beside rows that count and are not timed."""
        self._large = self._beside.enter_context(folder()) / "ledger.sqlite3"
        rows, self._a, maker = reports.growing_ledger(self._large, SIZES, LARGE)
        self._growing = self._beside.enter_context(growing_beside(maker, LARGE))
        return rows

    def _ledger(self) -> Iterator[Row]:
        if self._growing is None:  # nobody has asked for row 9
            self._ranges()
        assert self._growing is not None
        self._growing.result()
        ledger = self._large
        sales = yield from daemon_rows(ledger, LARGE, verified=False)
        sales = yield from sixteen.sixteen(ledger, sales)
        ledger = self._beside.enter_context(in_memory(ledger))
        yield from page.page(ledger, LARGE, sales)
        self._beside.enter_context(verified_beside(ledger))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What the service costs beside the line.")
    parser.add_argument("--only", default="", metavar="ROWS", help="numbers of rows, as 1,7")
    parser.add_argument("--publish", action="store_true", help="put the plots into docs/")
    parser.add_argument("--record", action="store_true", help="keep the figures in bench/history/")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a goal is missed")
    options = parser.parse_args()
    wanted = set(options.only.split(",")) if options.only else set()
    keep_byte_code()
    quiet()
    run = Run()
    began = time.perf_counter()
    rows: list[Row] = []
    seconds: dict[str, int] = {}
    with closing(run):
        for numbers, part in run.parts().items():
            if not wanted or any(_asks_for(row, number) for row in wanted for number in numbers.split()):
                at = time.perf_counter()
                rows += _told(part)
                seconds[numbers] = round(time.perf_counter() - at)
    order = list(GOALS)
    rows.sort(key=lambda row: order.index(row.row))
    for folder_ in (RESULTS, ROOT / "docs")[: 1 + options.publish]:
        _draw(folder_, run.plots)
    took = round(time.perf_counter() - began)
    missed = finish("bench", rows, {"seconds": took, "parts": seconds})
    print(f"{took // 60} min {took % 60} s:", *(f"{numbers}: {of} s" for numbers, of in seconds.items()), sep="  ")
    _compare(rows, keep=options.record)
    return 1 if missed and options.strict else 0


def _asks_for(row: str, number: str) -> bool:
    """12 asks for 12a as well, and who asks for 12c asks for the part that has all of 12."""
    return row == number or row == number.rstrip(ascii_lowercase) or row.rstrip(ascii_lowercase) == number


def _told(part: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """Each row as soon as it is there: five minutes of silence are long."""
    for row in part():
        value = "–" if row.value is None else shown(row.value)
        print(f"  {row.row:>3}  {row.verdict:12} {value:>8}  {GOALS[row.row].what}", flush=True)
        yield row


def _compare(rows: list[Row], *, keep: bool) -> None:
    """With the last recorded runs on such a machine; then this one is among them, if it is to be kept."""
    values, kind = history.values_of(rows), history.kind_of(box())
    if before := history.last_recorded(kind):
        print(f"\nagainst {len(before.runs)} runs of {before.release} on {before.kind}, {before.at}:")
        print(*history.differences(before, values), sep="\n")
    if keep:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        print(f"\nkept in {history.record(version('mcfd'), kind, at, values)}")


def _draw(target: Path, plots: dict[str, Any]) -> None:
    for name, text in plots.items():
        (target / f"{name}.svg").write_text(text)


if __name__ == "__main__":
    sys.exit(main())
