"""Rows 6, 11 and 12a: what a certification asks of the disk, and what the daemon keeps in memory."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Row
from bench.shop.invoices import bodies
from bench.shop.shops import PACED, UNPACED, Bench, running
from bench.shop.slow_disk import read_count
from bench.shop.till import Crowd, Till
from daemon.store.sqlite.connection import open_file

MACHINES = 8
TILLS = 64
WARM_UP = 20


def alone(count: int = 150) -> Iterator[Row]:
    """Row 6a: one till at a paced machine, one item; ticks and checkpoints are counted too."""
    with running(1, *PACED, disk=0) as bench:
        till = Till(bench.till())
        requests = bodies(1, series="S")
        for _ in range(WARM_UP):
            till.post(next(requests))
        before = read_count(bench.syncs)
        for _ in range(count):
            till.post(next(requests))
        syncs = read_count(bench.syncs) - before
        till.close()
    yield Row("6a", syncs / count, f"{syncs} fsyncs, {count} certifications", {"fsyncs": syncs, "count": count})


def crowded(count: int = 10_000) -> tuple[Row, Row]:
    """Rows 6b and 12a: 64 tills at 8 machines without pace, 10 000 certifications."""
    with running(MACHINES, *UNPACED, disk=0) as bench:
        crowd = Crowd()
        for number in range(MACHINES):
            requests = bodies(1, series=f"M{number}")
            for _ in range(TILLS // MACHINES):
                crowd.join(bench.till(number), requests)
        crowd.run_until(TILLS * 4)
        crowd.done.clear()
        before = read_count(bench.syncs)
        crowd.run_until(count)
        syncs = read_count(bench.syncs) - before
        crowd.close()
        certified = len(crowd.done) + TILLS - 1
        resident = bench.resident()
    share = syncs / certified
    return (
        Row("6b", share, f"{syncs} fsyncs, {certified} certifications", {"fsyncs": syncs, "count": certified}),
        Row("12a", resident, f"{MACHINES} machines, {TILLS} tills", {"certifications": certified + TILLS * 5}),
    )


def bytes_kept(count: int = 900) -> tuple[Row, Row]:
    """Row 11: one till, ten varied items, an Idempotency-Key on none; the file before and after, and what the kernel wrote."""
    with running(1, *UNPACED) as bench:
        till = Till(bench.till())
        requests = bodies(10, series="D")
        for _ in range(count // 5):
            till.post(next(requests))
        size, written = _size(bench), bench.written()
        for _ in range(count):
            till.post(next(requests))
        grown, wrote = _size(bench) - size, bench.written() - written
        till.close()
    return (
        Row("11a", grown / count, f"{count} certifications", {"bytes": grown, "count": count}),
        Row("11b", wrote / count / 1000, "from /proc/PID/io, WAL and checkpoints", {"bytes": wrote, "count": count}),
    )


def _size(bench: Bench) -> int:
    """Bytes of the ledger's pages, those that are still in the WAL included."""
    connection = open_file(bench.shop.ledger, "rw")
    try:
        pages, free, page_size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    finally:
        connection.close()
    return int((pages - free) * page_size)
