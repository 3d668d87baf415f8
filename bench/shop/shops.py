"""Shops to measure: processes of machines and daemon, and ledgers on this disk, removed at the end."""

import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.shop import BIN, IFU, Machine, Shop

from bench import RESULTS, ROOT
from bench.shop.till import Endpoint
from daemon.core.ledger.attempt import Mode

PACED = ("--baud", "115200")
UNPACED = ("--baud", "0")
LOOK = 0.004
"""Seconds between two checks whether a daemon is ready."""
BITS_PER_BYTE = 10
BAUD = 115_200


def line_seconds(count: int) -> float:
    """Time of `count` bytes on a real line at 115 200 bit/s, 8N1, both directions together."""
    return count * BITS_PER_BYTE / BAUD


def nim(number: int) -> str:
    return f"EL020000{number:02d}-1"


@contextmanager
def folder() -> Iterator[Path]:
    """A folder on the working copy's disk: /tmp may be in memory, where an fsync is free."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix="run-", dir=RESULTS))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class Bench:
    """A running shop. `syncs`: file in which `slow_disk` counts."""

    shop: Shop
    syncs: Path
    tls: ssl.SSLContext | None = None

    @property
    def machines(self) -> tuple[Machine, ...]:
        return self.shop.machines

    def till(self, number: int = 0, mode: Mode = "live", path: str = "certify") -> Endpoint:
        name = self.machines[number].nim
        return Endpoint(self.shop.port, f"/v1/mcf/{name}/{path}", self.shop.key(mode, name), self.tls)

    def moved(self, number: int = 0) -> int:
        """Bytes on that machine's line so far, both directions together."""
        counted = self.machines[number].order("snapshot", log=False)["bytes"]
        total: int = counted["in"] + counted["out"]
        return total

    def resident(self, *, with_haproxy: bool = False) -> float:
        """Resident memory in MB of the daemon, or of it and its children."""
        pid = self.shop.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split() if with_haproxy else ()
        pages = (int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in (pid, *children))
        return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def busy(self) -> float:
        """Processor time of all the daemon's threads, in seconds."""
        threads = Path(f"/proc/{self.shop.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


@contextmanager
def running(
    machines: int = 1,
    *options: str,
    config: Mapping[str, Mapping[str, Any]] | None = None,
    disk: float | None = None,
    ledger: Path | None = None,
    sales_before: Sequence[int] = (),
    tls: bool = False,
) -> Iterator[Bench]:
    """`options` are the simulators'; `disk`: additional ms of every fsync (0 only counts them); `sales_before`: sales
    of the first machines already in `ledger`; `tls`: behind HAProxy. The configuration is otherwise the default one.
    Ends with `mcfd verify`."""
    with folder() as path:
        lines = tuple(Machine(path, nim(number), IFU, *options, lasting=False) for number in range(1, machines + 1))
        server: dict[str, Any] = {"server": {"tls": "internal"}} if tls else {}
        settings = {"reports": {"aggregation_delay": 2.0}, **server, **(config or {})}
        with Shop(path, machines=lines, config=settings) as shop:
            bench = Bench(shop, path / "syncs", shop.use_https() if tls else None)
            if disk is not None:
                shop.command = (sys.executable, "-m", "support.slow_disk", str(bench.syncs), str(disk))
                shop.environ["PYTHONPATH"] = str(ROOT / "tests")
            if ledger is not None:
                shop.ledger = ledger
            with ThreadPoolExecutor(machines) as beside:
                list(beside.map(Machine.start, lines))
            for line, sales in zip(lines, sales_before, strict=False):
                line.order("counters", tc=sales, fvc=sales)
            shop.start_daemon()
            yield bench
            shop.stop_daemon()
            _verify(shop)


def seconds_to_ready(shop: Shop) -> float:
    """Restarts the daemon; seconds until it is ready."""
    shop.stop_daemon()
    began = time.perf_counter()
    shop.launch_daemon()
    while not shop.is_ready():
        time.sleep(LOOK)
    return time.perf_counter() - began


def _verify(shop: Shop) -> None:
    """Figures of a faulty ledger are worthless. Unlike `Shop.verify` without time limit: a million sales take
    minutes."""
    command = [str(BIN / "mcfd"), "verify", "--config", str(shop.config_file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"mcfd verify found something wrong:\n{done.stdout}{done.stderr}")
