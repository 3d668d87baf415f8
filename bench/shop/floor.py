"""Row 0: what is left beside the line without mcfd, for a client that does nothing but write an invoice's frames and wait for each reply.

    python -m bench.shop.floor [--items 1] [--company] [--pause 0.4] [--count 60]

Without HTTP, ledger and loop, it meets the same simulator and the same pseudo-terminal, so what it needs beside the time of its bytes is theirs
and the kernel's. No exchange may be quicker than its line: the quickest one is told.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from support.shop import IFU, Machine

from bench.figures import Row, median, milliseconds, quantile
from bench.shop.invoices import bodies
from bench.shop.shops import PACED, folder, line_seconds, nim
from bench.shop.wire import tapped
from bridge.frame import Decoder, Reply

SIZES = (("0a", 1, 48), ("0b", 10, 12), ("0c", 100, 3))
WARM_UP = 8

Exchange = tuple[float, float]
"""Seconds from the write to the last byte of the reply, and those of their bytes."""


def floor() -> Iterator[Row]:
    """What rows 17a to c would be with nothing but the simulator, the pseudo-terminal and the kernel."""
    with _machine() as machine:
        for row, items, count in SIZES:
            measured = _measured(machine, items, count)
            times, lines = zip(*map(_whole, measured), strict=True)
            note = f"{milliseconds(median(times))} / {milliseconds(median(lines))}, {count} invoices"
            yield Row(row, median(times) / median(lines), note, {"count": count})


@contextmanager
def _machine() -> Iterator[Machine]:
    with folder() as path:
        machine = Machine(path, nim(1), IFU, *PACED, lasting=False)
        machine.start()
        try:
            yield machine
        finally:
            machine.stop()


def _measured(
    machine: Machine, items: int, count: int, *, walk_in: bool = True, pause: float = 0.0
) -> list[list[Exchange]]:
    """The exchanges of each invoice, without those that warm up."""
    warm_up = min(WARM_UP, max(1, count // 5))
    invoices = asyncio.run(_written(items, count + warm_up, walk_in=walk_in))
    return _exchanges(machine.link, invoices, pause)[warm_up:]


def _whole(invoice: Sequence[Exchange]) -> Exchange:
    return sum(took for took, _ in invoice), sum(line for _, line in invoice)


async def _written(items: int, count: int, *, walk_in: bool) -> list[list[bytes]]:
    requests = islice(bodies(items, series="FLOOR", walk_in=walk_in), count)
    return [list(tap.written) async for tap in tapped(requests)]


def _exchanges(link: Path, invoices: Sequence[Sequence[bytes]], pause: float) -> list[list[Exchange]]:
    descriptor = os.open(link, os.O_RDWR | os.O_NOCTTY)
    made = []
    for invoice in invoices:
        time.sleep(pause)
        made.append([_exchanged(descriptor, request) for request in invoice])
    os.close(descriptor)
    return made


def _exchanged(descriptor: int, request: bytes) -> Exchange:
    replies, moved = Decoder(), len(request)
    began = time.monotonic()
    os.write(descriptor, request)
    while True:
        select.select([descriptor], [], [])
        data = os.read(descriptor, 4096)
        ended = time.monotonic()
        moved += len(data)
        replies.receive(data)
        if isinstance(replies.next_event(), Reply):
            return ended - began, line_seconds(moved)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.shop.floor")
    parser.add_argument("--items", type=int, default=1)
    parser.add_argument("--company", action="store_true", help="instead of a walk-in customer")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two invoices")
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    with _machine() as machine:
        measured = _measured(machine, options.items, options.count, walk_in=not options.company, pause=options.pause)
    times, lines = zip(*map(_whole, measured), strict=True)
    beside = [took - line for invoice in measured for took, line in invoice]
    value = median(took / line for took, line in zip(times, lines, strict=True))
    print(f"{value:.4f}  {milliseconds(median(times))} / {milliseconds(median(lines))}, {options.count} invoices")
    print(
        f"an exchange beside its line, \u00b5s: least {min(beside) * 1e6:.0f}, "
        f"median {median(beside) * 1e6:.0f}, p90 {quantile(beside, 0.9) * 1e6:.0f}"
    )


if __name__ == "__main__":
    main()
