"""Shops to measure: machines and daemon as processes of their own, ledgers on this disk, gone when done."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
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
BITS_PER_BYTE = 10
BAUD = 115_200
MEMORY = Path("/dev/shm")  # noqa: S108  that it is memory is what it is taken for


def line_seconds(count: int) -> float:
    """What a real line at 115 200 bit/s, 8N1, needs for so many bytes, both directions together."""
    return count * BITS_PER_BYTE / BAUD


def nim(number: int) -> str:
    return f"EL020000{number:02d}-1"


@contextmanager
def folder() -> Iterator[Path]:
    """On the disk of the working copy: /tmp may be memory, where an fsync costs nothing."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix="run-", dir=RESULTS))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def in_memory(ledger: Path) -> Iterator[Path]:
    """A copy of a ledger that nobody has open, with what stands beside it; where there is no room for it, the ledger itself."""
    files = [file for file in ledger.parent.glob(f"{ledger.name}*") if file.is_file()]
    if shutil.disk_usage(MEMORY).free < 2 * sum(file.stat().st_size for file in files):
        yield ledger
        return
    with tempfile.TemporaryDirectory(prefix="mcfd-bench-", dir=MEMORY) as there:
        for file in files:
            shutil.copy(file, there)
        yield Path(there) / ledger.name


@dataclass(frozen=True)
class Bench:
    """A running shop. `syncs` is where `slow_disk` counts."""

    shop: Shop
    syncs: Path

    @property
    def machines(self) -> tuple[Machine, ...]:
        return self.shop.machines

    def till(self, number: int = 0, mode: Mode = "live") -> Endpoint:
        name = self.machines[number].nim
        return Endpoint(self.shop.port, f"/v1/mcf/{name}/certify", self.shop.key(mode, name))

    def closing(self, number: int = 0, mode: Mode = "live") -> Endpoint:
        name = self.machines[number].nim
        return Endpoint(self.shop.port, f"/v1/mcf/{name}/reports/z", self.shop.key(mode, name))

    def sales(self) -> list[int]:
        """That each machine has counted."""
        return [machine.counters[0] for machine in self.machines]

    def moved(self, number: int = 0) -> int:
        """Bytes that have gone over that machine's line, both directions together."""
        counted = self.machines[number].order("snapshot", log=False)["bytes"]
        total: int = counted["in"] + counted["out"]
        return total

    def resident(self) -> float:
        """MB of the daemon's memory that is in use."""
        status = Path(f"/proc/{self.shop.pid}/status").read_text()
        kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
        return int(kilobytes) / 1024

    def busy(self) -> float:
        """Seconds of processor time that the daemon has had, all its threads together."""
        threads = Path(f"/proc/{self.shop.pid}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    def written(self) -> int:
        """Bytes that the daemon has made the disk write."""
        lines = Path(f"/proc/{self.shop.pid}/io").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("write_bytes")))


@contextmanager
def running(
    machines: int = 1,
    *options: str,
    config: Mapping[str, Mapping[str, Any]] | None = None,
    disk: float | None = None,
    ledger: Path | None = None,
    known: Sequence[int] = (),
    per_machine: Mapping[str, Any] | None = None,
    verified: bool = True,
) -> Iterator[Bench]:
    """`options` are the simulators'; `disk`: milliseconds that every fsync takes longer (0 only counts them); `known`: sales
    of the first machines that `ledger` holds already; `per_machine`: settings of every machine.

    The configuration is the default one, aggregation delay included. It ends with `mcfd verify` on the ledger, or without it
    where another shop goes on with that ledger."""
    with folder() as path:
        lines = tuple(Machine(path, nim(number), IFU, *options, lasting=False) for number in range(1, machines + 1))
        settings = {"reports": {"aggregation_delay": 2.0}, **(config or {})}
        with Shop(path, machines=lines, config=settings, per_machine=per_machine) as shop:
            bench = Bench(shop, path / "syncs")
            if disk is not None:
                shop.command = (sys.executable, "-m", "bench.shop.slow_disk", str(bench.syncs), str(disk))
                shop.environ["PYTHONPATH"] = str(ROOT)
            if ledger is not None:
                shop.ledger = ledger
            with ThreadPoolExecutor(machines) as beside:
                list(beside.map(Machine.start, lines))
            for line, sales in zip(lines, known, strict=False):
                line.order("counters", tc=sales, fvc=sales)
            shop.start_daemon()
            yield bench
            shop.stop_daemon()
            if verified:
                verify(shop)


def verify(shop: Shop) -> None:
    """`mcfd verify`, for as long as it takes: the bench is worth nothing if what it hurried is wrong."""
    command = [str(BIN / "mcfd"), "verify", "--config", str(shop.config_file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"mcfd verify found something wrong:\n{done.stdout}{done.stderr}")


def revision() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
