"""Who has no key may send as much as he likes: the shops' closures do not wait for him."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import event
from support.hq.store import UTC

from headquarters.core.reception import Message, Refused
from headquarters.intake.reception import Reception
from headquarters.intake.threads import Threads


@pytest.fixture
def threads():
    found = Threads()
    yield found
    found.close()


async def test_strangers_by_the_hundred(store, threads):
    """Three hundred at once are three hundred in the count, and a few transactions."""
    reception = Reception(store, threads, UTC)
    commits = []
    store.evidence.counted("0001-01-01")  # opens a connection
    event.listen(store.database.engine, "commit", commits.append)

    async def stranger(number):
        with pytest.raises(Refused):
            await reception.closure(Message(via="https", headers={}, body=b"%d" % number))

    async with asyncio.timeout(60), reception.running():
        await asyncio.gather(*map(stranger, range(300)))
    assert [(row.reason, row.count) for row in store.evidence.counted("0001-01-01")] == [("malformed", 300)]
    assert len(store.evidence.samples(1000)) == 200
    assert len(commits) < 30
