"""The daemon, its reports, its page and a command on a ledger of a million sales."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
from support.browser import PASSWORD, create_user

from bench.figures import Row, median
from bench.shop.ledger import DAY, PER_DAY, make
from bench.shop.shops import PACED, Bench, folder, running, seconds_to_ready

SIZE = 1_000_000
STARTS = 5
VIEWS = 15
SEARCHES = ("/ui/journal?q=0050005", "/ui/journal?amount=123456")
REPORTS = ("reports/x", "reports/a?from=2020-01-01", "reports?from=2020-01-01")
ASSET = re.compile(r'(?:src|href)="(/ui/static/[^"]+)"')


def start_of(days: int) -> int:
    """The midnight (ms, UTC) from which a ledger of so many days ends yesterday: a daemon that finds its ledger a year behind the
    box's clock asks an operator first (decision 21)."""
    return (time.time_ns() // 1_000_000 // DAY - days) * DAY


def large_ledger() -> Iterator[Row]:
    with folder() as path:
        ledger = path / "large.sqlite3"
        make(ledger, SIZE, start=start_of(SIZE // PER_DAY))
        with running(1, *PACED, ledger=ledger, sales_before=[SIZE]) as bench:
            starts = [seconds_to_ready(bench.shop) for _ in range(STARTS)]
            yield Row("start", median(starts), f"median of {STARTS}", {"seconds": starts})
            yield _reports(bench)
            yield from _page(bench)
            yield Row("memory-large", bench.resident(), "after X, A, history and the page")
            yield _command(bench)


def _reports(bench: Bench) -> Row:
    name = bench.machines[0].nim
    headers = bench.shop.headers(nim=name)
    times = {}
    for path in REPORTS:
        url = f"/v1/mcf/{name}/{path}"
        times[path] = median(_seconds(bench.shop.http, url, headers) for _ in range(VIEWS))
    slowest = max(times, key=times.__getitem__)
    return Row("reports", 1000 * times[slowest], f"{slowest}, median of {VIEWS}", {"seconds": times})


def _page(bench: Bench) -> Iterator[Row]:
    create_user(bench.shop, "bench", "technician")
    base = f"http://127.0.0.1:{bench.shop.port}"
    with httpx.Client(base_url=base, timeout=60, trust_env=False) as client:
        client.post("/ui/login", data={"name": "bench", "password": PASSWORD}, headers={"Origin": base})
        first = client.get("/ui/").raise_for_status()
        files = sorted(set(ASSET.findall(first.text)))
        answers = [first, *(client.get(file).raise_for_status() for file in files)]
        size = sum(answer.num_bytes_downloaded for answer in answers)
        today = [_seconds(client, "/ui/") for _ in range(VIEWS)]
        searches = [_seconds(client, path) for path in SEARCHES for _ in range(3)]
    yield Row("today", 1000 * median(today), f"median of {VIEWS}", {"seconds": today})
    yield Row("first-load", size / 1000, f"Today with {len(files)} files, as it comes over the wire")
    yield Row("search", 1000 * max(searches), "slowest: by part of a number, by amount", {"seconds": searches})


def _seconds(client: httpx.Client, path: str, headers: dict[str, str] | None = None) -> float:
    began = time.perf_counter()
    client.get(path, headers=headers).raise_for_status()
    return time.perf_counter() - began


def _command(bench: Bench) -> Row:
    command = [str(Path(sys.executable).with_name("mcfd")), "keys", "list"]
    times = []
    for _ in range(5):
        began = time.perf_counter()
        environ = {**os.environ, "MCFD_CONFIG": str(bench.shop.config_file)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ) as process:
            assert process.stdout is not None
            assert process.stdout.read(1)
            times.append(time.perf_counter() - began)
            process.stdout.read()
    return Row("command", median(times), f"median of {len(times)}", {"seconds": times})
