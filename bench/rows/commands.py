"""Row 16: how long a person waits for the first sign of a command, on a box whose daemon does not run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.figures import Row, median
from bench.shop.ledger import DAY, make
from bench.shop.shops import folder
from daemon.cli import COMMANDS

TRIES = 5
AGAIN = 5
"""Commands that are tried that often: the slowest of all when each was tried once, two at a time."""
BUSY = (
    *("keys list", "users list", "audit", "machine list", "machine settle", "time show", "report x", "journal"),
    *("verify", "upstream status", "config check", "doctor"),
)
"""Those that read the configuration and the ledger, beside the help of each command."""
CONFIG = """
[server]
port = 1

[storage]
path = "mcfd.sqlite3"

[[machine]]
nim = "EL02000015-1"
port = "/nowhere"
"""


def commands() -> Iterator[Row]:
    with folder() as path:
        (path / "mcfd.toml").write_text(CONFIG)
        make(path / "mcfd.sqlite3", 20, start=time.time_ns() // 1_000_000 - DAY)
        environ = {**os.environ, "MCFD_CONFIG": str(path / "mcfd.toml")}
        uses = ["--help", *(f"{name} --help" for name in COMMANDS), *BUSY]
        with ThreadPoolExecutor(2) as beside:  # only to find the slow ones
            once = dict(zip(uses, beside.map(lambda use: _first_output(use, environ), uses), strict=True))
        slow = sorted(once, key=once.__getitem__)[-AGAIN:]
        again = {*slow, "--help", "keys list"}
        times = {use: median([_first_output(use, environ) for _ in range(TRIES)]) for use in again}
    slowest = max(slow, key=lambda use: times[use])
    yield Row(
        "16a", times[slowest], f"mcfd {slowest}; --help {times['--help']:.2f} s, of {len(once)}", {**once, **times}
    )
    yield Row("16b", times["keys list"], f"median of {TRIES}", {})


def _first_output(use: str, environ: Mapping[str, str]) -> float:
    began = time.perf_counter()
    with subprocess.Popen(
        [Path(sys.executable).with_name("mcfd"), *use.split()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environ,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(1), use
        took = time.perf_counter() - began
        process.stdout.read()
    return took
