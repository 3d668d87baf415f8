"""What a shop would write itself: a blocking pyserial script that writes an invoice's frames and reads each reply. No HTTP, no disk."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path

import serial
from support.shop import IFU

from bench.shop.invoices import bodies
from bridge.frame import Decoder, MachineReply
from bridge.link import Link
from bridge.machine import LinkedMachine
from daemon.core.invoice.intake import Defaults, read_invoice
from daemon.core.invoice.invoice import Invoice, Payment
from daemon.core.machine.agreement import agree
from daemon.core.machine.state import FiscalCounters, Subtotal
from daemon.machines.adapter import ConnectedMachine
from simulator.line.memory_port import MemoryPort
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions
from simulator.machine.taxes import DEFAULT_RATES


class BareScript(Iterator[float]):
    """Sales of `items` items to a walk-in customer, each made when it is requested: its seconds. `count` of them are prepared."""

    def __init__(self, link: Path, items: int, count: int) -> None:
        self._sales = iter(asyncio.run(_frames(items, count)))
        self._port = serial.Serial(str(link), 115_200, timeout=10)

    def __next__(self) -> float:
        frames = next(self._sales)
        began = time.perf_counter()
        for frame in frames:
            self._exchange(frame)
        return time.perf_counter() - began

    def _exchange(self, frame: bytes) -> None:
        replies = Decoder()
        self._port.write(frame)
        while True:
            replies.receive(self._port.read(max(1, self._port.in_waiting)))
            if isinstance(replies.next_event(), MachineReply):
                return


class _Tap(MemoryPort):
    """A port that notes what was `written`, frame by frame."""

    written: list[bytes]

    def write(self, data: bytes) -> None:
        self.written.append(data)
        super().write(data)


async def _frames(items: int, count: int) -> list[list[bytes]]:
    """Of each invoice, as the driver itself writes them when it certifies one after the other."""
    tap = _Tap(LineSession(SimulatedMachine(SimulatorOptions())))
    tap.written = []
    link = Link(tap)
    machine = ConnectedMachine(LinkedMachine(link))
    await machine.state()
    frames = []
    for at, body in enumerate(islice(bodies(items, series="BARE", walk_in=True), count)):
        sale = read_invoice(
            json.loads(body, parse_float=Decimal), defaults=Defaults("1", "Caisse 1", "1"), rates=DEFAULT_RATES
        )
        tap.written = []
        await machine.enter(sale, IFU, partial(_payments, sale))
        await machine.certify(sale, sale.total_ttc, FiscalCounters(at, at, 0))
        frames.append(tap.written)
    link.close()
    return frames


def _payments(sale: Invoice, subtotal: Subtotal) -> Sequence[Payment]:
    return agree(sale, subtotal).payments
