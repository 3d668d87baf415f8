"""`make bench-large`: the rows that need ten years of 1 000 invoices a day (9 and 12), on a ledger of 3.65 million.

    python -m bench.large [--days 3650]

The ledger is made in bulk (bench/shop/ledger.py), checked by `mcfd verify`, measured, and removed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Generator
from pathlib import Path

from bench import keep_byte_code
from bench.figures import Row, median
from bench.results import finish, quiet
from bench.rows.reports import range_rows, ranges, start_of
from bench.shop.invoices import bodies
from bench.shop.ledger import DAY, PER_DAY, make
from bench.shop.shops import PACED, Bench, folder, running
from bench.shop.till import Till

STARTS = 5
LOOK = 0.004
"""Seconds between two looks whether it is ready; the tests' own wait looks every 35 ms by then."""
CERTIFICATIONS = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.large", description="The bench on ten years of invoices.")
    parser.add_argument("--days", type=int, default=3650, help=f"days of {PER_DAY} invoices (default 3650)")
    days = parser.parse_args().days
    keep_byte_code()
    quiet()
    with folder() as path:
        ledger = path / "large.sqlite3"
        _make(ledger, days)
        rows = [*_reports(ledger, days), *daemon_rows(ledger, days * PER_DAY, verified=True)]
    finish("large", rows, {"certifications": days * PER_DAY})
    return 0


def _make(ledger: Path, days: int) -> None:
    began = time.perf_counter()
    make(ledger, days * PER_DAY, start=start_of(days), progress=lambda done: _say(f"  {done:,} certifications"))
    took = time.perf_counter() - began
    _say(f"made {days * PER_DAY:,} in {took:.0f} s, {ledger.stat().st_size / 1e6:,.0f} MB")


def _reports(ledger: Path, days: int) -> list[Row]:
    month, whole = asyncio.run(ranges(ledger, days, start_of(days) + (days + 1) * DAY, rounds=1))
    return range_rows(month, whole, days * PER_DAY)


def daemon_rows(ledger: Path, size: int, *, verified: bool) -> Generator[Row, None, list[int]]:
    """Rows 12b and 12c: the daemon on that ledger and a paced machine; from the start of the process until it is ready. In the end
    how many sales of each machine the ledger holds."""
    on = f"ledger of {size:,}"
    with running(1, *PACED, ledger=ledger, known=[size], verified=verified) as bench:
        starts = [_start_again(bench) for _ in range(STARTS)]
        till = Till(bench.till())
        requests = bodies(10, series="LARGE")
        for _ in range(CERTIFICATIONS):
            till.post(next(requests))
        till.close()
        for report in ("reports/x", "reports/a", "reports/a?from=2025-01-01", "reports?from=2025-01-01"):
            answer = bench.shop.get(report, nim=bench.machines[0].nim)
            assert answer.is_success, answer.text
        resident, sales = bench.resident(), bench.sales()
    yield Row("12b", resident, f"{on}; {CERTIFICATIONS} certifications, X, A and history over all of it")
    yield Row("12c", median(starts), f"{on}, median of {STARTS}", {"starts_s": starts})
    return sales


def _start_again(bench: Bench) -> float:
    bench.shop.stop_daemon()
    began = time.perf_counter()
    bench.shop.launch_daemon()
    while not bench.shop.is_ready():
        time.sleep(LOOK)
    return time.perf_counter() - began


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
