"""Row 14: the shop's page on a ledger of a million invoices that ends today, and what its clicks cost a till."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from support.browser import PASSWORD, create_user

from bench import ROOT
from bench.figures import Row, median, milliseconds, quantile
from bench.shop.invoices import bodies
from bench.shop.processor import machines_first
from bench.shop.shops import MEMORY, PACED, Bench, running
from bench.shop.till import Till

PEOPLE = 8
MACHINES = 2
"""Each with a till, both at once: so many sales in half the time."""
ROUNDS = 4
CERTIFICATIONS = 50
"""Of one item at each machine, in each round, calm and with people: three seconds each. A round has a hundred sales, or its p99 is its slowest one."""
VIEWS = 15
SEARCHES = ("/ui/journal?q=0050005", "/ui/journal?amount=123456")
ASSET = re.compile(r'(?:src|href)="(/ui/static/[^"]+)"')


def page(ledger: Path, size: int, sales: Sequence[int]) -> Iterator[Row]:
    """On a ledger in memory, if there is room for it: the p99 of a sale is otherwise its disk's. `sales` are those of each machine that it holds. Somebody else
    verifies it."""
    on = f"ledger of {size:,} {'in memory' if ledger.is_relative_to(MEMORY) else 'on the disk, memory has no room for it'}"
    with running(MACHINES, *PACED, ledger=ledger, known=sales, verified=False) as bench:
        create_user(bench.shop, "bench", "technician")
        with _logged_in(bench) as client:
            yield from _screens(client, size)
            yield _clicked(bench, client, on)
        yield Row("14d", bench.resident(), f"{on}, after all of that", {})


@contextmanager
def _logged_in(bench: Bench) -> Iterator[httpx.Client]:
    base = f"http://127.0.0.1:{bench.shop.port}"
    with httpx.Client(base_url=base, timeout=60, trust_env=False) as client:
        who = {"name": "bench", "password": PASSWORD}
        client.post("/ui/login", data=who, headers={"Origin": base})
        yield client


def _screens(client: httpx.Client, size: int) -> Iterator[Row]:
    first = client.get("/ui/").raise_for_status()
    files = sorted(set(ASSET.findall(first.text)))
    bytes_ = len(first.content) + sum(len(client.get(file).raise_for_status().content) for file in files)
    today = [_took(client, "/ui/") for _ in range(VIEWS)]
    found = [_took(client, path) for path in SEARCHES for _ in range(3)]
    yield Row("14a", 1000 * median(today), f"ledger of {size:,}, median of {VIEWS}", {"views_s": today})
    yield Row("14b", bytes_ / 1000, f"Today with {len(files)} files, not compressed", {"files": files})
    yield Row("14e", 1000 * max(found), f"slowest of {len(found)}, by part of a number and by amount, {size:,}")


def _took(client: httpx.Client, path: str) -> float:
    began = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - began


def _clicked(bench: Bench, client: httpx.Client, on: str) -> Row:
    """Calm and clicked rounds by turns, and by turns which comes first, so that whatever else the host does meets both."""
    tills = [(Till(bench.till(number)), bodies(1, series=f"PAGE{number}")) for number in range(MACHINES)]

    def sold(till: Till, requests: Iterator[bytes]) -> list[float]:
        return [till.post(next(requests)) for _ in range(CERTIFICATIONS)]

    def sales() -> list[float]:
        with ThreadPoolExecutor(MACHINES) as beside:
            return [took for times in beside.map(sold, *zip(*tills, strict=True)) for took in times]

    order = machines_first(machine.pid for machine in bench.machines)
    sales()  # warm-up
    calm: list[list[float]] = []
    clicked: list[list[float]] = []
    with _people(bench, client) as people:
        for number in range(ROUNDS):
            if number % 2 == 0:
                calm.append(sales())
            with people.clicking():
                clicked.append(sales())
            if number % 2:
                calm.append(sales())
    for till, _ in tills:
        till.close()
    if people.refused:
        raise RuntimeError(f"{people.refused} screens of {people.seen + people.refused} were refused")
    slow, quiet = _usual_p99(clicked), _usual_p99(calm)
    less, more = sorted(_usual_p99(calm[at::2]) for at in (0, 1))
    note = (
        f"{milliseconds(slow)} / {milliseconds(quiet)}, p99 of {len(calm[0])}, median of {ROUNDS} rounds each; calm against calm {more / less:.3f};"
        f" of all of them {_of_all(clicked) / _of_all(calm):.3f}; {people.seen} screens seen, {order}, {on}"
    )
    beside = {"calm_s": calm, "clicked_s": clicked, "calm": more / less, "screens": people.seen}
    return Row("14c", slow / quiet, note, beside)


def _of_all(rounds: Sequence[Sequence[float]]) -> float:
    return quantile([took for times in rounds for took in times], 0.99)


def _usual_p99(rounds: Sequence[Sequence[float]]) -> float:
    """The p99 of a round, the median of them: what the page does to tills it does in each, the host now and then."""
    return median(quantile(times, 0.99) for times in rounds)


@dataclass
class _People:
    """How many screens they have seen, and how many were refused to them."""

    process: subprocess.Popen[str]
    seen: int = 0
    refused: int = 0

    @contextmanager
    def clicking(self) -> Iterator[None]:
        """Nothing of it is under way any more in the end."""
        assert self.process.stdin
        assert self.process.stdout
        print(file=self.process.stdin, flush=True)
        yield  # they begin one after the other, so that from the start there are as many clicks in a second as later
        print(file=self.process.stdin, flush=True)
        seen, refused = map(int, self.process.stdout.readline().split())
        self.seen += seen
        self.refused += refused


@contextmanager
def _people(bench: Bench, client: httpx.Client) -> Iterator[_People]:
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    command = [sys.executable, "-m", "bench.shop.clicker", str(bench.shop.port), cookie, str(PEOPLE)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield _People(process)
