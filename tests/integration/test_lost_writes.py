"""A bit of the WAL that flipped while the daemon was dead: what was acknowledged is gone, and an operator is asked before anything is certified."""

import shutil
from pathlib import Path

import pytest
from support.memory_shop import in_service

from daemon.core.errors import MachineAttention
from daemon.core.ledger.entries import CashMove
from daemon.store.maintenance.verify import verify
from daemon.store.tables.book import acts

pytestmark = pytest.mark.quick_timers


async def test_lost_withdrawals_wait_for_an_operator(tmp_path: Path) -> None:
    """The machine's counters agree, so nothing but the mark tells; after adopt the shop goes on, and the finding is gone."""
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
