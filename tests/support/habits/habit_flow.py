"""One day at a machine with any habits: each type, credit notes, Z, what is refused, lost answers, a kill, a stranger, an operator.

What the ledger holds at its end is compared with what the machine itself knows: each invoice once, with its VAT.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.memory_shop import MemoryShop, quick
from support.shop import NIM

from bridge.commands import MachineHabits
from daemon.core.errors import MachineAttention, MachineRefused
from daemon.core.ledger.attempt import Record
from daemon.store.decisions import DecisionNote
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book.settlements import read_evidence
from simulator.machine.fiscal_memory import CertifiedInvoice
from simulator.machine.invoice import InvoiceUnderway
from simulator.machine.options import SimulatorOptions

NAME = "Café moulu Kénédougou, « grand » paquet & filtre"
LOST = "drop-reply@38h#1,drop-reply@38h#2,drop-reply@38h#3"
SALES = ("FV", "FT", "EV", "ET")
MODES = ("TTC", "HT")


class Day:
    def __init__(self, path: Path, options: SimulatorOptions) -> None:
        self.path = path
        self.options = options
        self.shop = MemoryShop(path, options=options, timers=quick(), habits=wants(options))
        self.session = self.shop.session
        self.numbers = 0

    async def run(self) -> None:
        async with self.shop:
            await self.shop.connected()
            sold = [await self.sell(kind, MODES[at % 2]) for at, kind in enumerate(SALES)]
            await self.credit("FA", sold[0])
            await self.credit("EA", sold[2])
            await self.refused(sold[0])
            await self.lose_answers()
            closure = (await self.shop.close_period()).value
            assert closure.certs_count == 9
            await self.kill_at_close()
        self.session.plan.clear()
        async with self.again():
            await self.shop.connected()
            await self.sell("FV", "TTC")
            await self.compare()
        stranger = self.session.machine.certify_foreign(total=777)
        async with self.again():
            await self.settle(stranger.number)
            await self.sell("EV", "HT")
            closure = (await self.shop.close_period()).value
            assert (closure.certs_count, closure.unexplained) == (3, 1), (closure.certs_count, closure.unexplained)
            await self.compare()
        assert verify(self.path).clean

    # -- what happens ---------------------------------------------------------------------------------------------------

    async def sell(self, kind: str, mode: str, **more: Any) -> Record:
        self.numbers += 1
        number = f"Vente-{self.numbers}"
        record = (await self.shop.certify(number, invoiceType=kind, **basket(mode), **more)).value
        assert (record.state, record.number, record.type) == ("certified", number, kind)
        return record

    async def credit(self, kind: str, original: Record) -> Record:
        self.numbers += 1
        assert original.counters
        reference = f"{NIM}-{original.counters.fvc}"
        note = await self.shop.certify(
            f"Avoir-{self.numbers}", 40, credit=True, invoiceType=kind, creditNoteRef=reference
        )
        assert note.value.state == "certified"
        return note.value

    async def refused(self, original: Record) -> None:
        """The tax server cannot be reached: the machine refuses at 38h, and the invoice is cancelled. Its number is free."""
        fiscal = self.session.machine.fiscal
        fiscal.reachable = False
        with pytest.raises(MachineRefused):
            await self.credit("FA", original)
        fiscal.reachable = True
        self.numbers -= 1
        await self.credit("FA", original)

    async def lose_answers(self) -> None:
        """38h is carried out, and its answer is lost: the machine is asked at the next connection."""
        for kind in ("FT", "EV"):
            await self.shop.connected()
            self.session.plan.add(LOST)
            record = await self.sell(kind, "HT" if kind == "EV" else "TTC")
            assert self.session.plan.struck["drop-reply"] >= 3
            self.session.plan.clear()
            assert record.machine_time
        await self.shop.connected()

    async def kill_at_close(self) -> None:
        """The daemon goes away between what the machine did at 38h and its answer."""
        before = len(self.shop.on_machine)
        self.session.plan.add(LOST)
        sale = asyncio.ensure_future(self.sell("FV", "HT"))
        await self.shop.until(lambda: len(self.shop.on_machine) > before, "38h at the machine")
        sale.cancel()
        await asyncio.gather(sale, return_exceptions=True)

    async def settle(self, stranger: str) -> None:
        """Somebody else's invoice, found at the start: nothing is certified until an operator has looked."""
        shop = self.shop
        await shop.until(lambda: shop.worker.attention and shop.worker.connected, "attention")
        with pytest.raises(MachineAttention):
            await self.sell("FV", "TTC")
        book, decisions = shop.worker.book, shop.store.decisions
        evidence = await decisions.read(read_evidence, book)
        assert evidence.state.last is not None
        last = evidence.state.last
        assert last.number.casefold() == stranger.casefold()
        await decisions.write(
            decisions.adopt, book, evidence.state, unexplained=1, note=DecisionNote("a stranger's", shop.worker.now())
        )
        await shop.until(lambda: not shop.worker.attention and shop.worker.connected, "the machine in service again")

    def again(self) -> MemoryShop:
        self.shop = MemoryShop(self.path, on=self.session, timers=quick(), habits=wants(self.options))
        return self.shop

    # -- what has to be true --------------------------------------------------------------------------------------------

    async def compare(self) -> None:
        """Each invoice once, on both sides, with the machine's total, VAT and code."""
        content = {entry.number: entry for entry in self.shop.on_machine if not entry.foreign}
        ours = {record.number: record for record in await self.shop.certified() if record.invoice.items}
        assert Counter(entry.number for entry in self.shop.on_machine if not entry.foreign) == Counter(list(ours))
        for number, record in ours.items():
            entry = content[number]
            assert (record.total_ttc, record.type) == (entry.total, entry.type)
            assert {tax.group: (tax.tva, tax.ttc) for tax in record.invoice.taxes} == vat_of(entry, self.options)
            assert all(tax.ht + tax.tva == tax.ttc for tax in record.invoice.taxes)
            assert record.code in (entry.code, "" if self.options.no_codes else entry.code)


def basket(mode: str) -> dict[str, Any]:
    """Three lines in two groups, whose VAT is a matter of rounding: half a franc and less, in each line and together."""
    prices = (("B", 40), ("B", 4043), ("A", 777))
    items = [
        {"name": f"{NAME} {at}", "taxGroup": group, "unitPrice": price, "quantity": 1, "amountTtc": price}
        for at, (group, price) in enumerate(prices)
    ]
    paid = sum(price for _, price in prices)
    if mode == "HT":
        for item in items:
            if item["taxGroup"] == "B":
                item["amountTtc"] = int((item["unitPrice"] * 118 + 50) // 100)
        paid = sum(item["amountTtc"] for item in items)
    return {"items": items, "priceMode": mode, "payments": [{"method": "E", "amount": paid}]}


def vat_of(entry: CertifiedInvoice, options: SimulatorOptions) -> dict[str, tuple[int, int]]:
    """VAT and total of each group as the machine counted them, VAT in whole francs."""
    assert entry.opening is not None
    assert entry.customer is not None
    invoice = InvoiceUnderway(entry.opening, entry.customer, options)
    invoice.lines.extend(entry.lines)
    return {group: ((share.tva + 50) // 100, share.ttc // 100) for group, share in invoice.shares().items()}


def wants(options: SimulatorOptions) -> MachineHabits:
    """The settings of the driver for what such a machine insists on."""
    return MachineHabits(
        code_page=options.code_page,
        name_bytes=options.name_most,
        walk_in="fields" if options.full_customer else "nothing",
        close_total="whole" if options.whole_close else "decimals",
    )


def options_of(habits: Mapping[str, Any]) -> SimulatorOptions:
    return SimulatorOptions(nim=NIM, **habits)
