"""The wire arithmetic: how many bytes each command of an invoice moves, from the driver's own frames and the simulator's.

python -m bench.shop.wire
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial
from itertools import islice

from bench.shop.invoices import bodies
from bench.shop.shops import line_seconds
from bridge.frame import Decoder, Reply, Request
from bridge.link import Link
from bridge.machine import Machine
from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.invoice.invoice import Invoice, Payment
from daemon.core.machine.agreement import agree
from daemon.core.machine.state import FiscalCounters, Subtotal
from daemon.machines.adapter import ConnectedMachine
from simulator.line.memory_port import MemoryPort
from simulator.line.session import Session
from simulator.machine.machine import Machine as FiscalMachine
from simulator.machine.options import Options
from simulator.machine.taxes import DEFAULT_RATES

NAMES = {
    0xC3: "C3h customer",
    0xC0: "C0h open",
    0x31: "31h item",
    0x33: "33h subtotal",
    0x35: "35h payment",
    0x38: "38h certify",
}


class Tap:
    """A port that notes the length of every frame in both directions: (command, sent, received), and what was `written`."""

    def __init__(self, port: MemoryPort) -> None:
        self._port = port
        self._requests, self._replies = Decoder(), Decoder()
        self.frames: list[list[int]] = []
        self.written: list[bytes] = []

    def attach(self, on_bytes: Callable[[bytes], None], on_lost: Callable[[Exception], None]) -> None:
        def tapped(data: bytes) -> None:
            self._replies.receive(data)
            if isinstance(self._replies.next_event(), Reply):
                self.frames[-1][2] = len(data)
            on_bytes(data)

        self._port.attach(tapped, on_lost)

    def write(self, data: bytes) -> None:
        self._requests.receive(data)
        request = self._requests.next_event()
        assert isinstance(request, Request)
        self.frames.append([request.cmd, len(data), 0])
        self.written.append(data)
        self._port.write(data)

    def close(self) -> None:
        self._port.close()


async def tapped(requests: Iterable[bytes]) -> AsyncIterator[Tap]:
    """After each of these invoices, certified one after the other by the driver itself, what it alone moved."""
    tap = Tap(MemoryPort(Session(FiscalMachine(Options()))))
    link = Link(tap)
    machine = ConnectedMachine(Machine(link))
    await machine.state()
    for count, body in enumerate(requests):
        sale = read_invoice(
            json.loads(body, parse_float=Decimal),
            defaults=Defaults("1", "Caisse 1", "1", "EL02000015-1"),
            rates=DEFAULT_RATES,
        )
        tap.frames, tap.written = [], []
        await machine.enter(sale, "00084440Y", partial(_payments, sale))
        await machine.certify(sale, sale.total_ttc, FiscalCounters(count, count, 0))
        yield tap
    link.close()


def _payments(sale: Invoice, subtotal: Subtotal) -> Sequence[Payment]:
    return agree(sale, subtotal).payments


async def frames(items: int) -> list[list[int]]:
    """Of one invoice of the bench with so many items, as (command, bytes out, bytes back)."""
    (moved,) = [tap.frames async for tap in tapped(islice(bodies(items), 1))]
    return moved


def main() -> None:
    for items in (1, 10, 100):
        moved = asyncio.run(frames(items))
        total = sum(sent + received for _, sent, received in moved)
        print(f"\n{items} item(s): {len(moved)} commands, {total} bytes, {line_seconds(total) * 1000:.1f} ms")
        for command, name in NAMES.items():
            of_it = [(sent, received) for found, sent, received in moved if found == command]
            sent, received = (sum(side) / len(of_it) for side in zip(*of_it, strict=True))
            print(f"  {name:14} {len(of_it):4} ×  out {sent:5.1f}  back {received:5.1f}")


if __name__ == "__main__":
    main()
