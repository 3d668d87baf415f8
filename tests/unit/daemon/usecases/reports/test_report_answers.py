"""Cash is an entry of the ledger, for which there has to be room."""

from pathlib import Path

import pytest
from support.ledgers.ledger import MINUTE, START, Till, opened
from support.ledgers.worker import worker_of

from daemon.core.audit import Call
from daemon.core.errors import StorageFull
from daemon.usecases.reports.acts import cash_moves, move_cash

EVER = START + 365 * 24 * 60 * MINUTE
DEPOSIT: dict[str, object] = {"kind": "deposit", "amount": 500, "reason": "float"}


async def test_no_cash_is_moved_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked before anything is written: what is left is for sales."""

    async def full(_: object) -> None:
        raise StorageFull("the disk is full")

    async with opened(tmp_path / "ledger.sqlite3") as store:
        worker = worker_of(await Till.of(store))
        monkeypatch.setattr(worker.ledger, "check_free_space", full)
        with pytest.raises(StorageFull, match="the disk is full"):
            await move_cash(worker, DEPOSIT, Call("r1", "", b""))
        assert (await cash_moves(worker, 0, EVER, 0, 1)).count == 0
