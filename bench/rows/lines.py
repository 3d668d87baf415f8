"""Rows 1 to 5: what a certification takes beside the time its bytes need on the line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.figures import Row, median, milliseconds, quantile
from bench.shop.invoices import bodies
from bench.shop.shops import PACED, Bench, line_seconds, nim, running
from bench.shop.till import Crowd, Till, rate

SIZES = (("1", 1, 150), ("2", 10, 70), ("3", 100, 20))
WARM_UP = 8
SLOW_SYNC_MS = 20.0
NO_DELAY_MS = 0.0
BACKLOG_TILLS = 6
TOGETHER = 8
TILLS_EACH = 3


def latency() -> Iterator[Row]:
    """Rows 1 to 3: one till, one invoice after the other, on a paced line."""
    with running(1, *PACED) as bench:
        _wear_in(bench)
        till = Till(bench.till())
        for row, items, count in SIZES:
            times, lines = _one_by_one(bench, till, bodies(items, series=f"L{items}"), count)
            value = median(times) / median(lines)
            yield Row(
                row,
                value,
                f"{milliseconds(median(times))} / {milliseconds(median(lines))}, {count} certifications",
                {
                    "certify_ms": median(times) * 1000,
                    "certify_p90_ms": quantile(times, 0.9) * 1000,
                    "line_ms": median(lines) * 1000,
                    "bytes": round(median(lines) / line_seconds(1)),
                    "count": count,
                },
            )
        till.close()


def _wear_in(bench: Bench) -> None:
    """Through the first checkpoints, in the sandbox: from then on the WAL is written over and grows no more."""
    crowd = Crowd()
    requests = bodies(1, series="W")
    for _ in range(4):
        crowd.join(bench.till(mode="test"), requests)
    crowd.run_until(300)
    crowd.close()


def _one_by_one(bench: Bench, till: Till, requests: Iterator[bytes], count: int) -> tuple[list[float], list[float]]:
    """Seconds of each certification, and what the line needed for the bytes that were really moved meanwhile."""
    times, lines = [], []
    for turn in range(count + WARM_UP):
        before = bench.moved()
        took = till.post(next(requests))
        if turn >= WARM_UP:
            times.append(took)
            lines.append(line_seconds(bench.moved() - before))
    return times, lines


def backlog(count: int = 60) -> Row:
    """Row 4: tills wait in line at one machine, and every fsync takes 20 ms longer."""
    with running(1, *PACED, disk=SLOW_SYNC_MS) as bench:
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
        "4",
        pace / line,
        f"{milliseconds(pace)} / {milliseconds(line)} an invoice, {done} of them, {BACKLOG_TILLS} tills",
        {"invoice_ms": pace * 1000, "line_ms": line * 1000, "count": done, "sync_delay_ms": SLOW_SYNC_MS},
    )


def idle(count: int = 60) -> Row:
    """Row 4b: one till, one invoice after the other. The intent's commit is hidden behind the line (decision 29), the outcome's is not: of a disk
    whose every fsync takes 20 ms longer, an invoice notices one."""
    beside = {delay: _beside_the_line(delay, count) for delay in (NO_DELAY_MS, SLOW_SYNC_MS)}
    added = beside[SLOW_SYNC_MS] - beside[NO_DELAY_MS]
    return Row(
        "4b",
        added * 1000 / SLOW_SYNC_MS,
        f"{milliseconds(beside[SLOW_SYNC_MS])} beside the line, {milliseconds(beside[NO_DELAY_MS])} without them",
        {
            "beside_slow_ms": beside[SLOW_SYNC_MS] * 1000,
            "beside_ms": beside[NO_DELAY_MS] * 1000,
            "sync_delay_ms": SLOW_SYNC_MS,
            "count": count,
        },
    )


def _beside_the_line(delay: float, count: int) -> float:
    """Seconds of an invoice of one item beside its line time, with fsyncs that take `delay` milliseconds longer."""
    with running(1, *PACED, disk=delay) as bench:
        till = Till(bench.till())
        times, lines = _one_by_one(bench, till, bodies(1, series="I"), count)
        till.close()
    return median(times) - median(lines)


def together(seconds: float = 8.0, alone_seconds: float = 3.0) -> tuple[Row, list[tuple[int, float]]]:
    """Row 5, and the throughput of 1, 2, 4 and 8 machines for the plot. Invoices of one item, the hardest for us."""
    with running(TOGETHER, *PACED) as bench:
        alone = [_rates(bench, [number], alone_seconds)[number] for number in range(TOGETHER)]
        some = [(machines, sum(_rates(bench, range(machines), alone_seconds).values())) for machines in (2, 4)]
        rates = _rates(bench, range(TOGETHER), seconds)
    steps = [(1, median(alone)), *some, (TOGETHER, sum(rates.values()))]
    shares = [rates[number] / alone[number] for number in range(TOGETHER)]
    return (
        Row(
            "5",
            min(shares),
            f"slowest of {TOGETHER}, median {median(shares):.3f}; {sum(rates.values()):.0f}/s in all, 1 item",
            {"shares": shares, "alone_per_s": alone, "together_per_s": [rates[n] for n in range(TOGETHER)]},
        ),
        steps,
    )


_series = iter(range(1, 1_000_000))


def _rates(bench: Bench, numbers: Sequence[int], seconds: float) -> dict[int, float]:
    """Certifications a second of each of these machines, with tills enough to keep it busy."""
    crowd = Crowd()
    for number in numbers:
        requests = bodies(1, series=f"T{next(_series)}")
        for _ in range(TILLS_EACH):
            crowd.join(bench.till(number), requests, nim(number + 1))
    crowd.run_for(seconds)
    crowd.close()
    found = {}
    for number in numbers:
        times = [at for at, name in crowd.done if name == nim(number + 1)]
        found[number] = rate(times, TILLS_EACH)
    return found
