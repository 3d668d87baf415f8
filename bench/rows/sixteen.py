"""Row 19: sixteen machines on one box, while somebody reads a journal of a million."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import ROOT
from bench.figures import Row, median
from bench.rows.lines import rates
from bench.shop.shops import PACED, Bench, running

MACHINES = 16
ALONE = (1, 6, 11)
"""Machines whose rate alone is measured: they are all the same."""
ALONE_SECONDS = 1.5
SECONDS = 7.0
ITEMS = 10


def sixteen(ledger: Path, sales: Sequence[int]) -> Generator[Row, None, list[int]]:
    """Every machine with tills enough to keep it busy; the journal of the first is the million; `sales` as `daemon_rows` left them,
    in the end, how many of each machine the ledger holds. Somebody else goes on with it and verifies it."""
    with running(MACHINES, *PACED, ledger=ledger, known=sales, verified=False) as bench:
        alone = median(rates(bench, [number], ALONE_SECONDS, ITEMS)[number] for number in ALONE)
        with _reading(bench) as pages:
            together = rates(bench, range(MACHINES), SECONDS, ITEMS)
        slowest, sales = min(together.values()), bench.sales()
    shares = [rate / alone for rate in together.values()]
    yield Row(
        "19",
        slowest / alone,
        f"slowest of {MACHINES}, median {median(shares):.3f}; {sum(together.values()):.0f}/s in all, {ITEMS} items, {pages[0]} pages read",
        {"alone_per_s": alone, "shares": shares, "pages": pages[0]},
    )
    return sales


@contextmanager
def _reading(bench: Bench) -> Iterator[list[int]]:
    """How many pages were read is known at the end."""
    till = bench.till()
    command = [sys.executable, "-m", "bench.shop.reader", str(till.port), till.path.removesuffix("/certify"), till.key]
    pages: list[int] = []
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield pages
        out, _ = process.communicate("")
    pages.append(int(out))
