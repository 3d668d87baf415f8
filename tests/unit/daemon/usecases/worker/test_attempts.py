"""The attempts of one machine: who waits for whom, and for how long."""

from __future__ import annotations

import asyncio

import pytest

from daemon.core.errors import StorageFull
from daemon.core.ledger.phases import Phase
from daemon.usecases.worker.attempts import Attempts


async def test_a_disk_that_takes_nothing_is_waited_for_a_while_only() -> None:
    """An end that does not become durable: whoever needs it is told within its patience that it could not be stored."""
    attempts = Attempts()
    attempts.intend("A").phase = Phase.ENDING
    async with asyncio.timeout(60):
        with pytest.raises(StorageFull):
            await attempts.all_durable(patience=0.02)
