"""An invoice number that is under way is waited for, within bounds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.ledgers.ledger import Till, opened
from support.ledgers.worker import worker_of

from daemon.core.errors import MachineBusy, MachineOffline
from daemon.core.ledger.phases import Phase, Step
from daemon.usecases.certification import certify


async def test_a_number_under_way_is_waited_for_as_long_as_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until its end; not at all once the patience is over or the daemon stops, nor for a machine that has to tell first and is away."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        worker = worker_of(await Till.of(store))
        now = asyncio.get_running_loop().time()
        live = worker.attempts.intend("A")
        waiting = asyncio.ensure_future(certify.number_decided(worker, live, now + 3600))
        await asyncio.sleep(0)
        assert not waiting.done()
        with monkeypatch.context() as clock:
            clock.setattr(asyncio.get_running_loop(), "time", lambda: now, raising=False)
            still = certify.number_decided(worker, live, now + 0.5)
            still.send(None)  # it waits
            still.close()
        with pytest.raises(MachineBusy, match="is being certified"):
            certify.number_decided(worker, live, now).send(None)
        worker.closing = True
        with pytest.raises(MachineBusy, match="is being certified"):
            certify.number_decided(worker, live, now + 3600).send(None)
        worker.closing = False
        live.phase = Phase.IN_DOUBT
        with pytest.raises(MachineOffline):
            certify.number_decided(worker, live, now + 3600).send(None)
        worker.attempts.step(live, Step.SETTLED)
        async with asyncio.timeout(60):
            await waiting
