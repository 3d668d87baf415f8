"""Credit notes after a change of the shop's rates of withholding."""

from pathlib import Path

import msgspec
import pytest
from support.memory_shop import MemoryShop
from support.shop import invoice

from daemon.core.invoice.rules import PSVB_RATES
from daemon.store.maintenance.verify import verify
from daemon.usecases.certification.certify import certify, dry_run

pytestmark = pytest.mark.quick_timers


async def test_a_credit_note_takes_off_what_its_sale_withheld(tmp_path: Path) -> None:
    """The rate of the sale counts, also in a dry run, and nothing of it is left in the totals; another sale has the present rate."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        await shop.connected()
        worker = shop.worker
        body = invoice("A", 10_000, psvbGroup="B")
        sale = (await certify(worker, body, shop.call(body, "A"))).value
        rules = msgspec.structs.replace(worker.defaults.rules, psvb_rates={**PSVB_RATES, "B": 150})
        worker.defaults = msgspec.structs.replace(worker.defaults, rules=rules)
        credit = invoice("C", 10_000, psvbGroup="B", invoiceType="FA", creditNoteRef=f"{sale.nim}-{sale.counters.fvc}")
        dry = await dry_run(worker, credit, shop.call(credit), credit=True)
        credited = (await certify(worker, credit, shop.call(credit, "C"), credit=True)).value
        for found in (dry, credited.invoice):
            assert found.psvb is not None
            assert sale.invoice.psvb is not None
            assert found.psvb == sale.invoice.psvb
        later = invoice("D", 10_000, psvbGroup="B")
        sold = (await certify(worker, later, shop.call(later, "D"))).value
        assert (sold.invoice.psvb.rate, sold.invoice.psvb.amount) == (150, 150)
    assert verify(tmp_path / "ledger").clean
