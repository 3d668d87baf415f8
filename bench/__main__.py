"""`python -m bench [--only line-1,memory] [--record] [--strict]`: all rows of the table, in six minutes on two
cores."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import msgspec
import structlog

from bench import RESULTS, keep_byte_code
from bench.figures import LIMITS, Row, box, differences, kind_of, last_recorded, record, significant, table, values_of
from bench.rows import network, sales

PARTS: dict[str, Callable[[], Iterable[Row]]] = {
    "sale line-1 line-10 line-100 processor": sales.beside_the_line,
    "slow-disk": sales.slow_disk,
    "machines": sales.machines,
    "upstream": sales.upstream,
    "syncs": sales.syncs,
    "memory": sales.memory,
    "start reports memory-large today first-load search command": sales.large_ledger,
    "relay relay-rate relay-idle": network.relay,
    "waiting start-waiting": sales.waiting,
    "hq": network.intake,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What the service costs beside the line.")
    parser.add_argument("--only", default="", metavar="ROWS", help=f"some of: {', '.join(LIMITS)}")
    parser.add_argument("--record", action="store_true", help="keep the figures in bench/history/")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a limit is missed")
    options = parser.parse_args()
    wanted = set(options.only.split(",")) if options.only else set(LIMITS)
    if unknown := wanted - set(LIMITS):
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}")
    keep_byte_code()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    rows: list[Row] = []
    seconds: dict[str, int] = {}
    for names, part in PARTS.items():
        if wanted & set(names.split()):
            began = time.perf_counter()
            for row in part():
                value = "–" if row.value is None else significant(row.value)
                print(f"  {row.row:13} {row.verdict:12} {value:>8}  {LIMITS[row.row].what}", flush=True)
                rows.append(row)
            seconds[names] = round(time.perf_counter() - began)
    rows.sort(key=lambda row: list(LIMITS).index(row.row))
    print("\n" + table(rows))
    missed = _finish(rows, seconds)
    _compare(rows, keep=options.record)
    return 1 if missed and options.strict else 0


def _finish(rows: list[Row], seconds: dict[str, int]) -> int:
    missed = sum(row.verdict == "MISS" for row in rows)
    reached = sum(row.verdict == "pass" for row in rows)
    report: dict[str, Any] = {"at": _now(), "box": box(), "rows": [row.as_json() for row in rows], "seconds": seconds}
    target = RESULTS / "bench.json"
    target.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=1))
    print(f"\n{reached} of {reached + missed} limits reached; every ledger verified; figures in {target}")
    return missed


def _compare(rows: list[Row], *, keep: bool) -> None:
    """Compares with the last recorded runs on the same kind of machine."""
    values, kind = values_of(rows), kind_of(box())
    if before := last_recorded(kind):
        print(f"\nagainst {len(before.runs)} runs of {before.release} on {before.kind}, {before.at}:")
        print(*differences(before, values), sep="\n")
    if keep:
        print(f"\nrecorded in {record(version('mcfd'), kind, _now(), values)}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    sys.exit(main())
