"""A ledger file that is gone while the file of its Z numbers is still there: what it gave is not given again, and an operator is asked."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from support.memory_shop import MemoryShop, activated, in_service

from daemon.core.errors import MachineAttention, StorageFull, ZNumberUnknown
from daemon.core.ledger.attempt import DuplicateInvoice
from daemon.core.ledger.entries import CashMove
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book import acts
from daemon.store.tables.book.books import book_state
from simulator.line.session import LineSession
from simulator.machine.fiscal_memory import Snapshot

pytestmark = pytest.mark.quick_timers


async def three_days(path: Path) -> LineSession:
    """Three sales and three Z, and a sale in the fourth period; then the ledger vanishes, and what SQLite keeps beside it."""
    async with in_service(path) as shop:
        for day in range(1, 4):
            await shop.certify(f"F-{day}")
            assert (await shop.close_period()).value.z_number == day
        await shop.certify("F-4")
    vanish(path)
    return shop.session


def vanish(path: Path) -> None:
    for left in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", ".lock"))):
        left.unlink(missing_ok=True)


async def test_the_attention_of_a_vanished_ledger_is_there_after_a_restart(tmp_path: Path) -> None:
    """Asked, not decided: the next process asks again, and so does one that found no machine in between."""
    session = await three_days(tmp_path / "ledger")
    session.unplug(0.0, 0.0)
    async with MemoryShop(tmp_path / "ledger"):
        pass
    for _ in range(2):
        async with MemoryShop(tmp_path / "ledger", on=session) as shop:
            await shop.until(lambda: shop.worker.attention, "attention")
    async with in_service(tmp_path / "ledger", on=session) as shop:
        await shop.decide("adopt")
        assert (await shop.close_period()).value.z_number == 4


async def test_a_machine_that_was_activated_again_since_its_ledger_vanished_is_asked_about(tmp_path: Path) -> None:
    """Its counters begin at zero: they say nothing of what it certified before."""
    session = await three_days(tmp_path / "ledger")
    activated(session, reset=True)
    async with MemoryShop(tmp_path / "ledger", on=session) as shop:
        await shop.until(lambda: shop.worker.attention, "attention")


async def test_a_machine_with_nothing_on_it_goes_on_after_the_numbers_without_a_question(tmp_path: Path) -> None:
    """Its memory was erased with the ledger: there is no invoice that the ledger could lack, but a Z number is still given once;
    how many were is known from the first meeting on."""
    session = await three_days(tmp_path / "ledger")
    session.machine.restore(Snapshot())
    async with in_service(tmp_path / "ledger", on=session) as shop:
        assert not shop.worker.attention
        assert (shop.store.ledger.peek(book_state, shop.worker.book)).z_number == 3
        assert (await shop.close_period()).value.z_number == 4
    assert verify(tmp_path / "ledger").problems == ()


async def test_a_new_installation_on_a_used_machine_works(tmp_path: Path) -> None:
    """Nothing remembers a ledger here, also after a start at which the machine was not there: no question, and Z 1."""
    session = await three_days(tmp_path / "elsewhere")
    async with MemoryShop(tmp_path / "ledger") as shop:
        shop.line.cancel()
    async with in_service(tmp_path / "ledger", on=session) as shop:
        assert not shop.worker.attention
        await shop.certify("F-5")
        assert (await shop.close_period()).value.z_number == 1


def put_back(copy: Path, ledger: Path) -> None:
    restore(copy, ledger, at=2)


PUT_BACK = pytest.mark.parametrize("put_back", [put_back, shutil.copy], ids=["restore", "by hand"])


@PUT_BACK
async def test_a_backup_from_before_the_machine_was_met_waits_for_an_operator_on_a_new_disk(
    tmp_path: Path, put_back: Callable[[Path, Path], object]
) -> None:
    """The disk is lost, and the only backup was made before the machine was first connected: what it has certified since is in no ledger, so nothing is
    certified before somebody has looked, and no Z is given before somebody has said which was the last."""
    (tmp_path / "new").mkdir()
    async with MemoryShop(tmp_path / "ledger") as shop:
        shop.line.cancel()
    backup(tmp_path / "ledger", tmp_path / "copy", at=1)
    session = await three_days(tmp_path / "ledger")
    put_back(tmp_path / "copy", tmp_path / "new" / "ledger")
    async with in_service(tmp_path / "new" / "ledger", on=session) as shop:
        assert "'F-4'" in shop.worker.attention
        with pytest.raises(MachineAttention):
            await shop.certify("F-4")
        await shop.decide("adopt")
        with pytest.raises(DuplicateInvoice):
            await shop.certify("F-4")
        assert (shop.store.ledger.peek(book_state, shop.worker.book)).needs_last_z
        with pytest.raises(ZNumberUnknown):
            await shop.close_period()
        await shop.store.decisions.set_last_z(shop.worker.book, 3)
        assert (await shop.close_period()).value.z_number == 4


@PUT_BACK
async def test_a_backup_from_before_the_second_taxpayer_waits_for_an_operator_on_a_new_disk(
    tmp_path: Path, put_back: Callable[[Path, Path], object]
) -> None:
    """The lost ledger had that taxpayer's book, of which the copy knows nothing."""
    (tmp_path / "new").mkdir()
    async with in_service(tmp_path / "ledger") as shop:
        await shop.certify("F-1")
    backup(tmp_path / "ledger", tmp_path / "copy", at=1)
    shop.session.cut_power(0.0, 0.0)
    shop.session.machine.change(ifu="00099999X")
    shop.session.machine.restore(Snapshot())
    async with in_service(tmp_path / "ledger", on=shop.session) as second:
        await second.certify("G-1")
        await second.close_period()
    put_back(tmp_path / "copy", tmp_path / "new" / "ledger")
    async with in_service(tmp_path / "new" / "ledger", on=shop.session) as after:
        with pytest.raises(MachineAttention):
            await after.certify("G-1")
        await after.decide("adopt")
        with pytest.raises(DuplicateInvoice):
            await after.certify("G-1")
        with pytest.raises(ZNumberUnknown):
            await after.close_period()


async def test_a_power_cut_at_the_first_meeting_is_no_vanished_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name reaches the file after the ledger has met the machine, not before: a used machine is not asked about for nothing."""
    session = await three_days(tmp_path / "elsewhere")
    tried = asyncio.Event()

    def cut(*_: object) -> NoReturn:
        tried.set()
        raise StorageFull("the power went")

    with monkeypatch.context() as patch:
        patch.setattr("daemon.store.tables.book.books.reconcile", cut)
        async with MemoryShop(tmp_path / "ledger", on=session) as shop:
            await shop.until(tried.is_set, "a try")
            assert not shop.worker.connected
    async with in_service(tmp_path / "ledger", on=session) as shop:
        assert not shop.worker.attention


async def test_lost_withdrawals_wait_for_an_operator(tmp_path: Path) -> None:
    """A bit of the WAL flipped while the daemon was dead. The machine's counters agree, so nothing but the mark tells; after adopt the shop goes on, and the finding is gone."""
    path, left = tmp_path / "ledger", tmp_path / "left"
    left.mkdir()
    async with in_service(path) as shop:
        await shop.certify("F-1")
        begin = path.with_name("ledger-wal").stat().st_size
        for _ in range(3):
            move = CashMove("withdrawal", 500, "change", "1", "Awa")
            await shop.store.ledger.write(
                acts.move_cash, shop.worker.book, move, at=shop.worker.now(), answer=lambda _: b""
            )
        for name in ("ledger", "ledger-wal", "ledger.commits"):
            shutil.copy(tmp_path / name, left / name)
    session = shop.session
    shutil.copy(path.with_name("ledger.high-water"), left / "ledger.high-water")
    damaged = bytearray((left / "ledger-wal").read_bytes())
    damaged[begin + 24 + 100] ^= 1
    (left / "ledger-wal").write_bytes(damaged)
    async with in_service(left / "ledger", on=session) as shop:
        assert "acknowledged writes are missing from the ledger" in shop.worker.attention
        with pytest.raises(MachineAttention):
            await shop.certify("F-2")
        assert not verify(left / "ledger").clean
        await shop.decide("adopt")
        await shop.certify("F-2")
    assert verify(left / "ledger").clean
    async with in_service(left / "ledger", on=session) as shop:
        assert not shop.worker.attention
