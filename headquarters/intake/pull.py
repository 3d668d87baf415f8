"""Messages of a JetStream consumer, as many as there are and as soon as they are there.

nats-py's own `fetch` asks with `no_wait` and `expires` together, which the server takes as: wait until the batch is full."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

EXPIRES_SECONDS = 5.0
ANSWER_SECONDS = 5.0
TOGETHER_SECONDS = 0.1
"""Given to others after a first message: what comes together is one transaction."""
STATUS = "Status"


@contextlib.asynccontextmanager
async def pulling(client: Client, stream: str, durable: str, most: int) -> AsyncIterator[Pull]:
    subscription = await client.subscribe(client.new_inbox())
    try:
        yield Pull(client, subscription, f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}", most)
    finally:
        if client.is_connected:  # with the connection gone there is nothing left to end
            await subscription.unsubscribe()


class Pull:
    """For one task. Asks for `most` messages at a time; what is not acknowledged comes again, as with any consumer."""

    def __init__(self, client: Client, subscription: Subscription, subject: str, most: int) -> None:
        self._client = client
        self._subscription = subscription
        self._next = subject
        self._most = most
        self._owed = 0
        """Messages of the request that is out."""

    async def take(self) -> list[Msg]:
        """At least one, or none after some seconds without any. nats.errors.Error when the server does not answer, or refuses."""
        if self._owed <= 0:
            await self._ask()
        first = await self._received(EXPIRES_SECONDS + ANSWER_SECONDS)
        if first is None:
            return []
        await asyncio.sleep(TOGETHER_SECONDS)
        found = [first]
        while self._subscription.pending_msgs and len(found) < self._most:
            msg = await self._received(ANSWER_SECONDS)
            if msg is not None:
                found.append(msg)
        return found

    async def _ask(self) -> None:
        request = {"batch": self._most, "expires": int(EXPIRES_SECONDS * 1e9)}
        await self._client.publish(self._next, msgspec.json.encode(request), reply=self._subscription.subject)
        self._owed = self._most

    async def _received(self, wait: float) -> Msg | None:
        """None for the end of a request: it has expired, or something else than messages has come of it."""
        msg = await self._subscription.next_msg(wait)
        status = (msg.headers or {}).get(STATUS)
        if status is None or msg.reply:
            self._owed -= 1
            return msg
        self._owed = 0
        if status not in ("404", "408", "409"):
            raise nats.errors.Error(f"{self._next}: {status} {(msg.headers or {}).get('Description', '')}")
        return None
