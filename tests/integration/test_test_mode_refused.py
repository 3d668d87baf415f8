"""A machine in test mode behind a live key: its codes begin with TESTFACT, and what it certifies has no fiscal value."""

from pathlib import Path

import msgspec
import pytest
from support.memory_shop import SECOND, MemoryShop, activated, in_service

from daemon.core.errors import MachineAttention
from daemon.core.report.fiscal_reports import x_report
from daemon.core.report.receipt import receipt
from daemon.store.maintenance.verify import verify

pytestmark = pytest.mark.quick_timers


def set_test_mode(shop: MemoryShop, *, on: bool) -> None:
    fiscal = shop.session.machine.fiscal
    fiscal.options = msgspec.structs.replace(fiscal.options, test_mode=on)


async def test_the_first_test_code_is_told_and_the_next_invoice_refused(tmp_path: Path) -> None:
    """Nothing tells before the first code. It is told with the receipt, and nothing is certified after it: neither in this process nor in the
    next one, which knows it from the ledger before it meets the machine, and from the machine after."""
    path = tmp_path / "ledger"
    async with MemoryShop(path) as shop:
        set_test_mode(shop, on=True)
        await shop.connected()
        record = (await shop.certify("F-1")).value
        assert record.code.startswith("TESTFACT")
        assert [warning.code for warning in receipt(record).warnings] == ["TEST_MODE"]
        assert shop.worker.in_test_mode
        with pytest.raises(MachineAttention, match="TESTFACT"):
            await shop.certify("F-2")
        session = shop.session
    async with MemoryShop(path, on=session) as shop:
        assert shop.worker.in_test_mode
        await shop.connected()
        with pytest.raises(MachineAttention, match="TESTFACT"):
            await shop.certify("F-2")
    assert [entry.number for entry in session.machine.fiscal.log] == ["F-1"]
    async with in_service(tmp_path / "another", on=session) as shop:
        with pytest.raises(MachineAttention, match="TESTFACT"):
            await shop.certify("F-2")
    assert len(session.machine.fiscal.log) == 1


@pytest.mark.parametrize("ifu", ["", "00099999X"])
@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_machine_that_was_activated_since_is_in_service(
    tmp_path: Path, ifu: str, is_reset: bool, is_restarted: bool
) -> None:
    """Its last invoice has a test code still: one of the activation before. Also where the test was another taxpayer's."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        set_test_mode(shop, on=True)
        await shop.connected()
        await shop.certify("F-1")
        session = shop.session
        if not is_restarted:
            activated(shop.session, reset=is_reset, test_mode=False, **({"ifu": ifu} if ifu else {}))
            await shop.until(lambda: shop.worker.book.nim == SECOND and shop.worker.connected, "the activation")
            assert not (await shop.certify("F-2")).value.code.startswith("TESTFACT")
    if is_restarted:
        activated(shop.session, reset=is_reset, test_mode=False, **({"ifu": ifu} if ifu else {}))
    async with in_service(tmp_path / "ledger", on=session) as shop:
        assert not (await shop.certify("F-3")).value.code.startswith("TESTFACT")
    assert verify(tmp_path / "ledger").clean


@pytest.mark.logs("machine.activated")
async def test_a_machine_that_was_activated_and_tests_still_is_refused(tmp_path: Path) -> None:
    """After the first code of the new activation."""
    async with MemoryShop(tmp_path / "ledger") as shop:
        set_test_mode(shop, on=True)
        await shop.connected()
        await shop.certify("F-1")
        activated(shop.session, reset=False, test_mode=False)
        set_test_mode(shop, on=True)
        await shop.until(lambda: shop.worker.book.nim == SECOND and shop.worker.connected, "the activation")
        await shop.certify("F-2")
        with pytest.raises(MachineAttention, match="TESTFACT"):
            await shop.certify("F-3")


@pytest.mark.logs("machine.test_mode")
async def test_a_machine_that_may_be_in_test_mode_certifies_and_reports_say_so(tmp_path: Path) -> None:
    """`test_mode = true`; the totals say how many, and a machine that was activated meanwhile is one like others from its first code on."""
    path = tmp_path / "ledger"
    async with MemoryShop(path) as shop:
        shop.worker.test_mode_allowed = True
        set_test_mode(shop, on=True)
        await shop.connected()
        await shop.certify("F-1")
        await shop.certify("F-2")
        set_test_mode(shop, on=False)
        record = (await shop.certify("F-3")).value
        assert receipt(record).warnings == ()
        assert not shop.worker.in_test_mode
        shop.worker.test_mode_allowed = False
        await shop.certify("F-4")
        aggregate = await shop.store.ledger.aggregate(shop.worker.book)
        report = x_report(shop.worker.book, aggregate, now=shop.worker.now())
        assert (report.certs_count, report.test) == (4, 2)
    assert verify(path).clean
