"""Messages of a JetStream consumer, as many as there are and as soon as they are there.

nats-py's own `fetch` asks with `no_wait` and `expires` together, which the server takes as: wait until the batch is full. And its
`next_msg` begins a task for each message, which costs more than all else that is done to receive it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

EXPIRES_SECONDS = 5.0
ANSWER_SECONDS = 5.0
TOGETHER_SECONDS = 0.25
"""Given to others after a first message: what comes together is one transaction."""
LOOK_SECONDS = 1.0
"""How soon it is seen that the connection is gone."""
STATUS = "Status"


@contextlib.asynccontextmanager
async def pulling(client: Client, stream: str, durable: str, most: int, *, waits: bool = True) -> AsyncIterator[Pull]:
    """Without `waits` what is there is taken, and nothing is asked for ahead."""
    inbox = client.new_inbox()
    pull = Pull(client, inbox, f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}", most, waits=waits)
    subscription = await client.subscribe(inbox, cb=pull.heard)
    try:
        yield pull
    finally:
        if client.is_connected:  # with the connection gone there is nothing left to end
            await subscription.unsubscribe()


class Pull:
    """For one task. Asks for `most` messages at a time, and for the next ones before these are at work; what is not acknowledged comes
    again, as with any consumer."""

    def __init__(self, client: Client, inbox: str, subject: str, most: int, *, waits: bool) -> None:
        self._client = client
        self._inbox = inbox
        self._next = subject
        self._most = most
        self._waits = waits
        self._here: deque[Msg] = deque()
        self._owed = 0
        """Messages of the request that is out."""
        self._refused = ""
        self._awaited = 1
        self._woken = asyncio.Event()

    async def heard(self, msg: Msg) -> None:
        """Called by the client: a message, or the end of a request: it has expired, or something else has come of it."""
        status = (msg.headers or {}).get(STATUS)
        if status is None or msg.reply:
            self._owed -= 1
            self._here.append(msg)
            if len(self._here) < self._awaited and self._owed > 0:
                return
        else:
            self._owed = 0
            if status not in ("404", "408", "409"):
                self._refused = f"{self._next}: {status} {(msg.headers or {}).get('Description', '')}"
        self._woken.set()

    async def take(self) -> list[Msg]:
        """At least one, or none after some seconds without any, or at once. nats.errors.Error when the server does not answer, or refuses."""
        if not self._here:
            await self._ask()
            await self._wait(EXPIRES_SECONDS + ANSWER_SECONDS, 1)
        if self._here:
            await self._wait(TOGETHER_SECONDS, self._most)
        found = [self._here.popleft() for _ in range(min(len(self._here), self._most))]
        if found and self._waits:
            await self._ask()
        return found

    async def _ask(self) -> None:
        if self._owed > 0 and self._waits:
            return
        self._owed = self._most  # of what is there: nobody says when that was all
        how = {"expires": int(EXPIRES_SECONDS * 1e9)} if self._waits else {"no_wait": True}
        request = {"batch": self._most, **how}
        await self._client.publish(self._next, msgspec.json.encode(request), reply=self._inbox)

    async def _wait(self, seconds: float, count: int) -> None:
        """Until so many are here, the request has ended, or the time is over, which is an error while there is none and one is owed."""
        end = asyncio.get_running_loop().time() + seconds
        self._awaited = count
        while len(self._here) < count and self._owed > 0:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, LOOK_SECONDS)):
                    await self._woken.wait()
            if self._client.is_closed:
                raise nats.errors.ConnectionClosedError
        if self._refused:
            raise nats.errors.Error(self._refused)
        if not self._here and self._owed > 0:
            raise nats.errors.TimeoutError
