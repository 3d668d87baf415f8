"""Row 7: certifications a second on machines that cost nothing, beside an endpoint as a guide would write it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench import ROOT
from bench.figures import Row, median
from bench.rows.baseline_api import KEY
from bench.shop.invoices import bodies
from bench.shop.shops import Bench, folder, nim, running
from bench.shop.till import Crowd, Endpoint, rate

SERIES = iter(range(1, 10**6))
MACHINES = 8
ROUNDS = 3
SECONDS = 1.2
CROWD = 64


def throughput() -> Iterator[Row]:
    """Turn and turn about, so that what else the box does meets both."""
    with running(MACHINES) as bench, baseline() as naive:
        for row, clients in (("7a", 1), ("7b", CROWD)):
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(_rate(_sandboxes(bench, clients)))
                theirs.append(_rate([naive[number % min(MACHINES, clients)] for number in range(clients)]))
            yield Row(
                row,
                median(ours) / median(theirs),
                f"{median(ours):.0f}/s / {median(theirs):.0f}/s, {ROUNDS} rounds",
                {"ours_per_s": ours, "baseline_per_s": theirs, "clients": clients},
            )


def _sandboxes(bench: Bench, clients: int) -> list[Endpoint]:
    """One machine for one client, all of them for many."""
    return [bench.till(number % min(MACHINES, clients), "test") for number in range(clients)]


def _rate(endpoints: list[Endpoint]) -> float:
    crowd = Crowd()
    shared: dict[str, Iterator[bytes]] = {}
    for endpoint in endpoints:
        requests = shared.setdefault(endpoint.path, bodies(1, series=f"R{next(SERIES)}"))
        crowd.join(endpoint, requests)
    crowd.run_for(SECONDS)
    crowd.close()
    times = [at for at, _ in crowd.done]
    return rate(times, len(times) // 5)


@contextmanager
def baseline() -> Iterator[list[Endpoint]]:
    """The other endpoint as a process under uvicorn, its ledger on the same disk."""
    with folder() as path:
        port = _free_port()
        nims = [nim(number) for number in range(1, MACHINES + 1)]
        command = [sys.executable, "-m", "bench.rows.baseline_api", str(path / "ledger.sqlite3"), str(port), *nims]
        with (path / "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        try:
            _wait_for(port, process, path / "log")
            yield [Endpoint(port, f"/v1/mcf/{name}/certify", f"{KEY}-{name}") for name in nims]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"the baseline did not start: {log.read_text()[-2000:]}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
