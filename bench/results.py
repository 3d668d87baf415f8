"""Where a run ends: the table on stdout, everything as JSON beside it."""

from __future__ import annotations

import logging
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog

from bench import RESULTS
from bench.figures import Row, table
from bench.shop.shops import revision

SYNCS = 100


def quiet() -> None:
    """What opens a ledger inside this process has nothing to say between the rows."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


def finish(name: str, rows: Sequence[Row], more: Mapping[str, Any]) -> int:
    """How many goals were missed."""
    missed = sum(row.verdict == "MISS" for row in rows)
    reached = sum(row.verdict == "pass" for row in rows)
    report = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "box": box(), "rows": [r.as_json() for r in rows]}
    target = RESULTS / f"{name}.json"
    target.write_bytes(msgspec.json.format(msgspec.json.encode({**report, **more}), indent=1))
    print("\n" + table(rows))
    print(f"\n{reached} of {reached + missed} goals reached; every ledger verified; figures in {target}")
    return missed


def box() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),  # those that it was given
        "load": os.getloadavg()[0],
        "fsync_ms": round(fsync_seconds() * 1000, 3),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "revision": revision(),
    }


def fsync_seconds() -> float:
    """Median of a commit's worth of writing where the ledgers of the bench lie."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    times = []
    with tempfile.TemporaryFile(dir=RESULTS, buffering=0) as file:
        for turn in range(SYNCS):
            os.pwrite(file.fileno(), bytes(20_480), turn * 20_480)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return names[-1] if names else platform.machine()
