"""What the ways upstream share: a ledger with an outbox, and the two kinds of headquarters."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.ledgers.outbox import LedgerOutbox
from support.receivers.headquarters import NatsHeadquarters, started


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[LedgerOutbox]:
    async with LedgerOutbox.open(tmp_path / "mcfd.sqlite3") as opened:
        yield opened


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[NatsHeadquarters]:
    async with started(NatsHeadquarters(tmp_path)) as made:
        yield made
