"""The command line with a ledger behind it."""

from pathlib import Path

import pytest
from support.cli.command import Command
from support.ledgers.ledger import opened_till


@pytest.fixture
async def mcfd(tmp_path: Path) -> Command:
    """A ledger with two sales, a Z and another sale in it."""
    command = Command(tmp_path)
    async with opened_till(command.ledger) as (store, till):
        await till.sell()
        await till.sell(600, "A")
        await store.ledger.aggregate(till.book)
        await till.close()
        await till.sell()
        await store.ledger.aggregate(till.book)
    return command
