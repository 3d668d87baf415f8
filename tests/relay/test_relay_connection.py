"""The relay's connection to NATS."""

import asyncio

import pytest

from common.wire.nats_client import Client
from common.wire.nats_pull import NatsServers
from relay.connection import Connection


async def test_who_waits_in_the_moment_of_a_loss():
    """The connection has ended and its owner does not know it yet: a task that waits for the next one leaves the event loop to the others, and gets it."""
    connection = Connection(NatsServers(url="nats://127.0.0.1:1"))
    lost = Client()
    using = asyncio.create_task(connection._use(lost))
    await asyncio.sleep(0)
    assert await connection.opened() is lost
    await lost.close()
    waiting = asyncio.create_task(connection.opened())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    with pytest.raises(Exception, match="connection"):
        await using
    following = Client()
    using = asyncio.create_task(connection._use(following))
    assert await asyncio.wait_for(waiting, 5) is following
    await following.close()
    with pytest.raises(Exception, match="connection"):
        await using
