"""The frames of an invoice, as the driver itself writes them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from decimal import Decimal
from functools import partial

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


class Tap(MemoryPort):
    """A port that notes what was `written`, frame by frame."""

    written: list[bytes]

    def write(self, data: bytes) -> None:
        self.written.append(data)
        super().write(data)


async def tapped(requests: Iterable[bytes]) -> AsyncIterator[Tap]:
    """After each of these invoices, certified one after the other by the driver itself, what it alone moved."""
    tap = Tap(Session(FiscalMachine(Options())))
    tap.written = []
    link = Link(tap)
    machine = ConnectedMachine(Machine(link))
    await machine.state()
    for count, body in enumerate(requests):
        sale = read_invoice(
            json.loads(body, parse_float=Decimal),
            defaults=Defaults("1", "Caisse 1", "1"),
            rates=DEFAULT_RATES,
        )
        tap.written = []
        await machine.enter(sale, "00084440Y", partial(_payments, sale))
        await machine.certify(sale, sale.total_ttc, FiscalCounters(count, count, 0))
        yield tap
    link.close()


def _payments(sale: Invoice, subtotal: Subtotal) -> Sequence[Payment]:
    return agree(sale, subtotal).payments
