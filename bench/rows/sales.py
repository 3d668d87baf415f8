"""Time of a sale beyond its bytes on the line, its syncs and memory, and the cost of 10 000 deferred sales for tills
and the start."""

import asyncio
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median

import httpx
from support.browser import PASSWORD, create_user
from support.receivers.headquarters import HttpHeadquarters
from support.shop import IFU, Machine
from support.slow_disk import read_count

from bench.figures import Row, milliseconds, quantile
from bench.shop.ledger import PER_DAY, add_waiting, make
from bench.shop.shops import PACED, UNPACED, Bench, folder, line_seconds, nim, running, seconds_to_ready
from bench.shop.till import BareScript, Crowd, Till, bodies, rate
from daemon.store.sqlite.file import open_to_read

SIZES = ((1, 60), (10, 20), (100, 3))
"""Items, and number of sales."""
BARE_SALES = 60
WARM_UP = 8
SLOW_SYNC_MS = 20.0
QUEUE = 6
TILLS_EACH = 3
UPSTREAM_SALES = 100
MACHINES = 8
TILLS = 64
COUNT = 10_000
SALES = 300
RUSH = 8
"""Sales in a row; then a pause, in which a deferred sale may be certified."""
PAUSE = (1.0, 1.6)
STARTS = 5

SIZE = 1_000_000
VIEWS = 15
SEARCHES = ("/ui/journal?q=0050005", "/ui/journal?amount=123456")
REPORTS = ("reports/x", "reports/a?from=2020-01-01", "reports?from=2020-01-01")
ASSET = re.compile(r'(?:src|href)="(/ui/static/[^"]+)"')


class SalesAtTill(Iterator[float]):
    """Seconds of each sale at one till, made by `next`. `lines`: time that its bytes need on the line."""

    def __init__(self, bench: Bench, requests: Iterator[bytes]) -> None:
        self.lines: list[float] = []
        self._bench, self._requests = bench, requests
        self._till = Till(bench.till())

    def __next__(self) -> float:
        request = next(self._requests)
        before = self._bench.moved()
        took = self._till.post(request)
        self.lines.append(line_seconds(self._bench.moved() - before))
        return took

    def close(self) -> None:
        self._till.close()


def compare(row: str, pair: Sequence[Iterator[float]], count: int) -> Row:
    """Median seconds of the first / of the second, alternating, so that load of the host affects both."""
    times: list[list[float]] = [[], []]
    for turn in range(count + WARM_UP):
        for side in (0, 1) if turn % 2 else (1, 0):
            took = next(pair[side])
            if turn >= WARM_UP:
                times[side].append(took)
    ours, other = median(times[0]), median(times[1])
    return Row(row, ours / other, f"{milliseconds(ours)} / {milliseconds(other)}, {count} of each")


def beside_the_line() -> Iterator[Row]:
    """One till, one invoice at a time, on a paced line."""
    with running(1, *PACED) as bench:
        yield _beside_script("sale", bench)
        for items, count in SIZES:
            busy = bench.busy()
            times, lines = one_by_one(bench, bodies(items, series=f"L{items}", walk_in=True), count)
            busy = bench.busy() - busy
            note = f"{milliseconds(median(times))} / {milliseconds(median(lines))}, {count} sales"
            yield Row(f"line-{items}", median(times) / median(lines), note)
            if items == 1:
                yield Row("processor", busy * 1000 / (count + WARM_UP), note)


def through_haproxy() -> Iterator[Row]:
    """One till, one invoice at a time, through HAProxy with TLS, beside the same without."""
    with running(1, *PACED, tls=True) as bench, running(1, *PACED) as loopback:
        yield _beside_script("tls-sale", bench)
        for items, count in SIZES:
            pair = [SalesAtTill(each, bodies(items, series=f"L{items}", walk_in=True)) for each in (bench, loopback)]
            yield compare(f"tls-{items}", pair, count)
            for sales in pair:
                sales.close()


def _beside_script(row: str, bench: Bench) -> Row:
    _fill_wal(bench)
    with folder() as path:
        machine = Machine(path, nim(1), IFU, *PACED, lasting=False)
        machine.start()
        try:
            sales = SalesAtTill(bench, bodies(1, series="SALE", walk_in=True))
            script = BareScript(machine.link, 1, BARE_SALES + WARM_UP)
            found = compare(row, [sales, script], BARE_SALES)
            sales.close()
        finally:
            machine.stop()
    return found


def one_by_one(bench: Bench, requests: Iterator[bytes], count: int) -> tuple[list[float], list[float]]:
    """Seconds of each sale, and of its line."""
    sales = SalesAtTill(bench, requests)
    warm_up = min(WARM_UP, max(1, count // 5))
    times = list(islice(sales, count + warm_up))
    sales.close()
    return times[warm_up:], sales.lines[warm_up:]


def _fill_wal(bench: Bench) -> None:
    """Sells in the sandbox beyond the first checkpoints: then the WAL has its full size."""
    crowd = Crowd()
    requests = bodies(1, series="W")
    for _ in range(4):
        crowd.join(bench.till(mode="test"), requests)
    crowd.run_until(300)
    crowd.close()


def slow_disk(count: int = 40) -> Iterator[Row]:
    """Tills queue at one machine, and every sync takes 20 ms longer."""
    with running(1, *PACED, disk=SLOW_SYNC_MS) as bench:
        crowd = Crowd()
        requests = bodies(10, series="B")
        for _ in range(QUEUE):
            crowd.join(bench.till(), requests)
        crowd.run_until(WARM_UP)
        crowd.done.clear()
        before = bench.moved()
        crowd.run_until(count)
        crowd.close()
        done = len(crowd.done)
        pace = 1 / rate([at for at, _ in crowd.done], 0)
        line = line_seconds(bench.moved() - before) / (done + QUEUE - 1)  # unfinished sales moved bytes too
    yield Row("slow-disk", pace / line, f"{milliseconds(pace)} / {milliseconds(line)} a sale, {done} of them")


def machines(seconds: float = 4.0) -> Iterator[Row]:
    """Sales of one item, the most work for the daemon."""
    with running(MACHINES, *PACED) as bench:
        alone = median(_rates(bench, [number], 1.2)[number] for number in (1, 4, 6))
        together = _rates(bench, range(MACHINES), seconds)
    shares = [found / alone for found in together.values()]
    note = f"slowest of {MACHINES}, median {median(shares):.3f}; {sum(together.values()):.0f}/s in all"
    yield Row("machines", min(shares), note)


def _rates(bench: Bench, numbers: Sequence[int], seconds: float) -> dict[int, float]:
    """Sales per second of each machine, with enough tills to keep it busy."""
    crowd = Crowd()
    for number in numbers:
        requests = bodies(1, series=f"T{time.monotonic_ns()}")
        for _ in range(TILLS_EACH):
            crowd.join(bench.till(number), requests, nim(number + 1))
    crowd.run_for(seconds)
    crowd.close()
    return {number: rate([at for at, name in crowd.done if name == nim(number + 1)], TILLS_EACH) for number in numbers}


def upstream() -> Iterator[Row]:
    """The same shop twice: with headquarters, and with dead headquarters."""
    with ExitStack() as stack:
        pair = [stack.enter_context(_selling(gone=gone)) for gone in (True, False)]
        yield compare("upstream", pair, UPSTREAM_SALES)


@contextmanager
def _selling(*, gone: bool) -> Iterator[Iterator[float]]:
    with folder() as path:
        headquarters = HttpHeadquarters(path)
        asyncio.run(headquarters.up())
        if gone:
            headquarters.kill()
        section = {
            "kind": "https",
            "url": headquarters.url,
            "secret_file": str(headquarters.keys.file),
            "retry_max": 1.0,  # so that the shop with dead headquarters retries all the time
        }
        try:
            with running(1, *PACED, config={"upstream": section}) as bench:
                closing = Till(bench.till(path="reports/z"))
                for _ in range(3):
                    closing.post(b"{}")
                yield SalesAtTill(bench, bodies(1, series="U"))
                closing.close()
        finally:
            headquarters.kill()


def syncs(count: int = 150) -> Iterator[Row]:
    """One till at a paced machine, one item; includes syncs of ticks and checkpoints."""
    with running(1, *PACED, disk=0) as bench:
        till = Till(bench.till())
        requests = bodies(1, series="S")
        for _ in range(20):
            till.post(next(requests))
        before = read_count(bench.syncs)
        for _ in range(count):
            till.post(next(requests))
        counted = read_count(bench.syncs) - before
        till.close()
    yield Row("syncs", counted / count, f"{counted} syncs, {count} sales")


def memory(count: int = 10_000) -> Iterator[Row]:
    """64 tills at 8 machines without pacing, through HAProxy with TLS."""
    with running(MACHINES, *UNPACED, tls=True) as bench:
        first = Till(bench.till())
        first.post(next(bodies(1, series="FIRST")))  # the address then has the larger limits
        first.close()
        crowd = Crowd()
        for number in range(MACHINES):
            requests = bodies(1, series=f"M{number}")
            for _ in range(TILLS // MACHINES):
                crowd.join(bench.till(number), requests)
        crowd.run_until(count)
        crowd.close()
        note = f"{MACHINES} machines, {TILLS} tills, {count} sales"
        yield Row("memory", bench.resident(), note)
        yield Row("memory-pair", bench.resident(with_haproxy=True), note)


def waiting() -> Iterator[Row]:
    """The same shop twice, alternating: one certifies deferred sales beside its till, the other has none."""
    with folder() as path, ExitStack() as stack:
        ledger = path / "waiting.sqlite3"
        add_waiting(ledger, COUNT)
        loaded = stack.enter_context(running(1, *PACED, ledger=ledger))
        idle = stack.enter_context(running(1, *PACED))
        yield _slower(loaded, idle)
        starts = {bench: [seconds_to_ready(bench.shop) for _ in range(STARTS)] for bench in (loaded, idle)}
    found, none = median(starts[loaded]), median(starts[idle])
    yield Row("start-waiting", found - none, f"{found:.2f} s / {none:.2f} s, median of {STARTS}")


def _slower(loaded: Bench, idle: Bench) -> Row:
    dice = random.Random("waiting")
    pair = [SalesAtTill(bench, bodies(1, series="Q", walk_in=True)) for bench in (loaded, idle)]
    times: list[list[float]] = [[], []]
    before = _left(loaded)
    for turn in range(SALES):
        if turn % RUSH == 0:
            time.sleep(dice.uniform(*PAUSE))
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side].append(next(pair[side]))
    worked_off = before - _left(loaded)
    if not worked_off:
        raise RuntimeError("nothing that waited was certified meanwhile")
    for sales in pair:
        sales.close()
    ours, other = (quantile(each, 0.99) for each in times)
    note = f"{milliseconds(ours)} / {milliseconds(other)}, {SALES} of each, {worked_off} worked off"
    return Row("waiting", ours / other, note)


def _left(bench: Bench) -> int:
    """Number of deferred sales."""
    with closing(open_to_read(bench.shop.ledger)) as connection:
        return int(
            connection.execute("SELECT count(*) FROM deferred WHERE state IN ('waiting', 'begun')").fetchone()[0]
        )


def large_ledger() -> Iterator[Row]:
    with folder() as path:
        ledger = path / "large.sqlite3"
        make(ledger, SIZE // PER_DAY)
        with running(1, *PACED, ledger=ledger, sales_before=[SIZE]) as bench:
            starts = [seconds_to_ready(bench.shop) for _ in range(STARTS)]
            yield Row("start", median(starts), f"median of {STARTS}")
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
    return Row("reports", 1000 * times[slowest], f"{slowest}, median of {VIEWS}")


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
    yield Row("today", 1000 * median(today), f"median of {VIEWS}")
    yield Row("first-load", size / 1000, f"Today with {len(files)} files, as it comes over the wire")
    yield Row("search", 1000 * max(searches), "slowest: by part of a number, by amount")


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
    return Row("command", median(times), f"median of {len(times)}")
