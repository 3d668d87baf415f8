"""Which of a box's waiting sales comes next after one has failed; and the relay's connection to NATS."""

import asyncio
from collections import deque
from typing import Any

import pytest
from support.receivers.nats_server import NIM

from common.wire.call import LaterCall, RelayedReply, encode
from common.wire.nats_client import Client
from common.wire.nats_pull import NatsServers
from relay.connection import Connection
from relay.later import LaterCalls
from relay.problems import BoxOffline, BoxSilent


class WaitingSale:
    """A message of the stream CALLS: `outcome` is how long it is put off, or that it was acknowledged."""

    def __init__(self, name: str) -> None:
        self.data = encode(LaterCall(2**53 - 1, name.encode()))
        self.outcome: float | str = ""

    def nak(self, delay: float) -> None:
        self.outcome = delay

    def ack(self) -> None:
        self.outcome = "acknowledged"


class OneBox:
    """`bad` is what its answer to the sale of that name is, or raises."""

    def __init__(self, bad: RelayedReply | Exception) -> None:
        self.bad = bad

    def millis(self) -> int:
        return 0

    limit = millis

    async def ask(self, nim: str, call: Any) -> RelayedReply:
        del nim
        if call.sealed != b"bad":
            return RelayedReply("boot", status=202)
        if isinstance(self.bad, Exception):
            raise self.bad
        return self.bad


@pytest.mark.parametrize(
    ("bad", "delays"),
    [
        (BoxSilent(), [60, 30]),
        (RelayedReply("boot", status=500), [60, 30]),
        (BoxOffline(), [30, 30]),
        (RelayedReply("boot", status=401), ["acknowledged", "acknowledged"]),
    ],
)
async def test_a_sale_that_fails_by_itself_holds_up_no_other(
    bad: RelayedReply | Exception, delays: list[object]
) -> None:
    """It comes again after those behind it, which were not tried; where the box is off all come at once."""
    sales = [WaitingSale(name) for name in ("good", "bad", "behind")]
    by_subject: dict[str, Any] = {f"mcf.{NIM}.later": deque(sales)}
    later = LaterCalls(None, OneBox(bad))  # type: ignore[arg-type]  # it stores nothing here
    await later._hand_over(f"mcf.{NIM}.later", by_subject)
    assert [sale.outcome for sale in sales] == ["acknowledged", *delays]
    assert by_subject == {}


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
