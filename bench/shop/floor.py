"""What is left beside the line without mcfd: a client that does nothing but write an invoice's frames and wait for each reply.

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
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from support.shop import IFU, Machine

from bench.figures import median, milliseconds, quantile
from bench.shop.invoices import bodies
from bench.shop.shops import PACED, folder, line_seconds, nim
from bench.shop.wire import tapped
from bridge.frame import Decoder, Reply

WARM_UP = 8


async def _written(items: int, count: int, *, walk_in: bool) -> list[list[bytes]]:
    requests = islice(bodies(items, series="FLOOR", walk_in=walk_in), count)
    return [list(tap.written) async for tap in tapped(requests)]


def _exchanges(link: Path, invoices: Sequence[Sequence[bytes]], pause: float) -> list[list[tuple[float, float]]]:
    """Of each invoice its exchanges: seconds from the write to the last byte of the reply, and those of their bytes."""
    descriptor = os.open(link, os.O_RDWR | os.O_NOCTTY)
    made = []
    for invoice in invoices:
        time.sleep(pause)
        made.append([_exchanged(descriptor, request) for request in invoice])
    os.close(descriptor)
    return made


def _exchanged(descriptor: int, request: bytes) -> tuple[float, float]:
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
    invoices = asyncio.run(_written(options.items, options.count + WARM_UP, walk_in=not options.company))
    with folder() as path:
        machine = Machine(path, nim(1), IFU, *PACED, lasting=False)
        machine.start()
        try:
            measured = _exchanges(machine.link, invoices, options.pause)[WARM_UP:]
        finally:
            machine.stop()
    times = [sum(took for took, _ in invoice) for invoice in measured]
    lines = [sum(line for _, line in invoice) for invoice in measured]
    beside = [took - line for invoice in measured for took, line in invoice]
    value = median(took / line for took, line in zip(times, lines, strict=True))
    print(f"{value:.4f}  {milliseconds(median(times))} / {milliseconds(median(lines))}, {options.count} invoices")
    print(
        f"an exchange beside its line, \u00b5s: least {min(beside) * 1e6:.0f}, "
        f"median {median(beside) * 1e6:.0f}, p90 {quantile(beside, 0.9) * 1e6:.0f}"
    )


if __name__ == "__main__":
    main()
