"""Rows 1 to 5, 15, 17 and 18d: what a certification takes beside the time its bytes need on the line."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice

from bench.figures import Row, median, milliseconds, quantile
from bench.rows.pairs import compare
from bench.shop.invoices import bodies
from bench.shop.shops import PACED, Bench, line_seconds, nim, running
from bench.shop.till import Crowd, Till, rate

COMPANY = (("1", "15a", 1, 80), ("2", "15b", 10, 28), ("3", "15c", 100, 4))
"""Row beside the line, row beside a shop that does not record, items, how many."""
UNRECORDED = {"recording_mb": 0}
WALK_IN = (("17a", 1, 80), ("17b", 10, 24), ("17c", 100, 3))
PAUSED = ("17d", 1, 16)
PAUSE = 0.4
"""Seconds between two invoices, as tills really sell: meanwhile the processor forgets us."""
WARM_UP = 8
SLOW_SYNC_MS = 20.0
SLOWEST_SYNC_MS = 60.0
NO_DELAY_MS = 0.0
BACKLOG_TILLS = 6
TOGETHER = 8
ALONE = (1, 4, 6)
"""Machines whose rate alone is measured: they are all the same."""
TILLS_EACH = 3


class Sales(Iterator[float]):
    """Certifications at one till, one after the other, each made when it is asked for: its seconds. `lines`: what the line needed for the bytes that were
    really moved for each."""

    def __init__(self, bench: Bench, requests: Iterator[bytes], pause: float = 0.0) -> None:
        self.lines: list[float] = []
        self._bench, self._requests, self._pause = bench, requests, pause
        self._till = Till(bench.till())

    def __next__(self) -> float:
        request = next(self._requests)
        time.sleep(self._pause)
        before = self._bench.moved()
        took = self._till.post(request)
        self.lines.append(line_seconds(self._bench.moved() - before))
        return took

    def close(self) -> None:
        self._till.close()


def latency() -> Iterator[Row]:
    """Rows 1 to 3, 15, 17 and 18d: one till, one invoice after the other, on a paced line."""
    with running(1, *PACED) as bench:
        wear_in(bench)
        yield from _beside_unrecorded(bench)
        for row in sold(bench, WALK_IN):
            yield row
            if row.row == "17a":
                yield Row("18d", row.detail["busy_ms"], f"walk-in customer, {row.note}")
        yield from sold(bench, (PAUSED,), pause=PAUSE)


def _beside_unrecorded(bench: Bench) -> Iterator[Row]:
    """The same sales are rows 1 to 3, and one side of row 15: the shop as it is shipped, which records what moves on its line, and one that does
    not, turn and turn about."""
    with running(1, *PACED, per_machine=UNRECORDED) as unrecorded:
        wear_in(unrecorded)
        for row, compared, items, count in COMPANY:
            pair = [Sales(shop, bodies(items, series=f"L{row}")) for shop in (bench, unrecorded)]
            beside = compare(compared, pair, ("recorded", "unrecorded"), count)
            yield _line_row(row, beside.detail["recorded_s"], pair[0].lines[-count:])
            yield beside
            for sales in pair:
                sales.close()
        for shop, recorded in ((bench, True), (unrecorded, False)):
            if any((shop.shop.folder / "recordings").rglob("*")) is not recorded:
                raise RuntimeError("what was to be recorded was not, or the other way round")


def sold(bench: Bench, sizes: Sequence[tuple[str, int, int]], *, pause: float = 0.0) -> Iterator[Row]:
    """To a walk-in customer, a row for each (row, items, how many). `busy_ms` in the details is the daemon's processor time for one."""
    for row, items, count in sizes:
        times, lines, busy = _one_by_one(bench, bodies(items, series=f"L{row}", walk_in=True), count, pause)
        yield _line_row(row, times, lines, busy_ms=busy * 1000)


def _line_row(row: str, times: Sequence[float], lines: Sequence[float], **more: float) -> Row:
    details = {
        "certify_ms": median(times) * 1000,
        "certify_p90_ms": quantile(times, 0.9) * 1000,
        "line_ms": median(lines) * 1000,
        "bytes": round(median(lines) / line_seconds(1)),
        "count": len(times),
        **more,
    }
    note = f"{milliseconds(median(times))} / {milliseconds(median(lines))}, {len(times)} certifications"
    return Row(row, median(times) / median(lines), note, details)


def wear_in(bench: Bench) -> None:
    """Through the first checkpoints, in the sandbox: from then on the WAL is written over and grows no more."""
    crowd = Crowd()
    requests = bodies(1, series="W")
    for _ in range(4):
        crowd.join(bench.till(mode="test"), requests)
    crowd.run_until(300)
    crowd.close()


def _one_by_one(
    bench: Bench, requests: Iterator[bytes], count: int, pause: float = 0.0
) -> tuple[list[float], list[float], float]:
    """Seconds of each certification, what the line needed for each, and the daemon's processor time of one."""
    sales = Sales(bench, requests, pause)
    warm_up = min(WARM_UP, max(1, count // 5))
    for _ in range(warm_up):
        next(sales)
    busy = bench.busy()
    times = list(islice(sales, count))
    busy = bench.busy() - busy
    sales.close()
    return times, sales.lines[warm_up:], busy / count


def backlog(row: str = "4", delay: float = SLOW_SYNC_MS, count: int = 40) -> Row:
    """Rows 4 and 4d: tills wait in line at one machine, and every fsync takes 20 ms or 60 ms longer."""
    with running(1, *PACED, disk=delay) as bench:
        crowd = Crowd()
        requests = bodies(10, series="B")
        for _ in range(BACKLOG_TILLS):
            crowd.join(bench.till(), requests)
        crowd.run_until(WARM_UP)
        crowd.done.clear()
        before = bench.moved()
        crowd.run_until(count)
        crowd.close()
        done = len(crowd.done)
        pace = 1 / rate([at for at, _ in crowd.done], 0)
        # The requests under way at the end are answered too, and their bytes have been moved.
        line = line_seconds(bench.moved() - before) / (done + BACKLOG_TILLS - 1)
    return Row(
        row,
        pace / line,
        f"{milliseconds(pace)} / {milliseconds(line)} an invoice, {done} of them, {BACKLOG_TILLS} tills",
        {"invoice_ms": pace * 1000, "line_ms": line * 1000, "count": done, "sync_delay_ms": delay},
    )


def idle(count: int = 30) -> Iterator[Row]:
    """Rows 4b and 4c: one till, one invoice after the other. The intent's commit is hidden behind the line (decision 29), the outcome's is not: of
    a disk whose every fsync takes 20 or 60 ms longer, an invoice notices one; of 60 ms, which the line is not long enough for, a little more."""
    without = _beside_the_line(NO_DELAY_MS, count)
    for row, delay in (("4b", SLOW_SYNC_MS), ("4c", SLOWEST_SYNC_MS)):
        beside = _beside_the_line(delay, count)
        yield Row(
            row,
            (beside - without) * 1000 / delay,
            f"{milliseconds(beside)} beside the line, {milliseconds(without)} without them",
            {"beside_slow_ms": beside * 1000, "beside_ms": without * 1000, "sync_delay_ms": delay, "count": count},
        )


def _beside_the_line(delay: float, count: int) -> float:
    """Seconds of an invoice of one item beside its line time, with fsyncs that take `delay` milliseconds longer."""
    with running(1, *PACED, disk=delay) as bench:
        times, lines, _ = _one_by_one(bench, bodies(1, series="I"), count)
    return median(times) - median(lines)


def together(seconds: float = 4.0, alone_seconds: float = 1.2) -> tuple[Row, list[tuple[int, float]]]:
    """Row 5, and the throughput of 1, 2, 4 and 8 machines for the plot. Invoices of one item, the hardest for us."""
    with running(TOGETHER, *PACED) as bench:
        alone = median(rates(bench, [number], alone_seconds)[number] for number in ALONE)
        some = [(machines, sum(rates(bench, range(machines), alone_seconds).values())) for machines in (2, 4)]
        together = rates(bench, range(TOGETHER), seconds)
    steps = [(1, alone), *some, (TOGETHER, sum(together.values()))]
    shares = [rate / alone for rate in together.values()]
    return (
        Row(
            "5",
            min(shares),
            f"slowest of {TOGETHER}, median {median(shares):.3f}; {sum(together.values()):.0f}/s in all, 1 item",
            {"shares": shares, "alone_per_s": alone, "together_per_s": list(together.values())},
        ),
        steps,
    )


_series = iter(range(1, 1_000_000))


def rates(bench: Bench, numbers: Sequence[int], seconds: float, items: int = 1) -> dict[int, float]:
    """Certifications a second of each of these machines, with tills enough to keep it busy."""
    crowd = Crowd()
    for number in numbers:
        requests = bodies(items, series=f"T{next(_series)}")
        for _ in range(TILLS_EACH):
            crowd.join(bench.till(number), requests, nim(number + 1))
    crowd.run_for(seconds)
    crowd.close()
    found = {}
    for number in numbers:
        times = [at for at, name in crowd.done if name == nim(number + 1)]
        found[number] = rate(times, TILLS_EACH)
    return found
