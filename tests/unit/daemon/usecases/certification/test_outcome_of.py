"""An outcome that is not known yet is waited for, within bounds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.ledgers.ledger import Till, invoice, opened
from support.ledgers.worker import worker_of

from daemon.core.errors import LineLost, MachineAttention
from daemon.usecases.certification.idempotency import outcome_of
from daemon.usecases.worker.machine_worker import Limits


async def test_an_outcome_is_waited_for_as_long_as_there_is_time(tmp_path: Path) -> None:
    """Until it is known; when the patience is over, or the daemon stops, the till is told to come again; an operator who has to tell is named."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        till = await Till.of(store)
        worker = worker_of(till)
        attempt_id = await till.begin(invoice("A"))
        worker.limits = Limits(doubt_patience=0.02)
        async with asyncio.timeout(60):
            with pytest.raises(LineLost, match="not known yet"):
                await outcome_of(worker, attempt_id)
        worker.limits = Limits(doubt_patience=3600.0)
        waiting = asyncio.ensure_future(outcome_of(worker, attempt_id))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        record = await till.finish(attempt_id, invoice("A"))
        worker.attempts.settle([record])
        async with asyncio.timeout(60):
            assert await waiting == record
        other = await till.begin(invoice("B"))
        worker.closing = True
        with pytest.raises(LineLost, match="not known yet"):
            await outcome_of(worker, other)
        worker.attempts.attention = "another machine"
        with pytest.raises(MachineAttention, match="another machine"):
            await outcome_of(worker, other)
