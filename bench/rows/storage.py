"""What a sale asks of the disk, and what the daemon takes of memory."""

from __future__ import annotations

from collections.abc import Iterator

from support.slow_disk import read_count

from bench.figures import Row
from bench.shop.shops import PACED, UNPACED, Bench, running
from bench.shop.till import Crowd, Till, bodies
from daemon.store.sqlite.connection import open_file

MACHINES = 8
TILLS = 64


def syncs(count: int = 150) -> Iterator[Row]:
    """One till at a paced machine, one item; ticks and checkpoints are counted too."""
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
    """64 tills at 8 machines without pace."""
    with running(MACHINES, *UNPACED) as bench:
        crowd = Crowd()
        for number in range(MACHINES):
            requests = bodies(1, series=f"M{number}")
            for _ in range(TILLS // MACHINES):
                crowd.join(bench.till(number), requests)
        crowd.run_until(count)
        crowd.close()
        yield Row("memory", bench.resident(), f"{MACHINES} machines, {TILLS} tills, {count} sales")


def file_size(count: int = 900) -> Iterator[Row]:
    """One till, ten varied items; the ledger's pages before and after."""
    with running(1, *UNPACED) as bench:
        till = Till(bench.till())
        requests = bodies(10, series="D")
        for _ in range(count // 5):
            till.post(next(requests))
        size = _size(bench)
        for _ in range(count):
            till.post(next(requests))
        grown = _size(bench) - size
        till.close()
    yield Row("bytes", grown / count, f"{count} sales")


def _size(bench: Bench) -> int:
    """Bytes of the ledger's pages, those in the WAL included."""
    connection = open_file(bench.shop.ledger, "rw")
    try:
        pages, free, page_size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    finally:
        connection.close()
    return int((pages - free) * page_size)
