"""Presence over NATS: what boxes ask (`mcf.<NIM>.ask`), answered; and the last word of each, kept by the stream PRESENCE."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

import msgspec
import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from exchange.cancellation import ended
from exchange.subjects import ASK, CLOSURE, PRESENCE_STREAM
from headquarters.core.reception import Message, Refused
from headquarters.intake.connection import NatsOptions
from headquarters.intake.pull import pulling
from headquarters.intake.reception import Reception
from headquarters.intake.stream import lowered, nim_of_subject, read_stream
from headquarters.store.database import StoreError

log = structlog.get_logger(__name__)

AT_ONCE = 200
AGAIN_SECONDS = 5.0
LOOK_EVERY_SECONDS = 10.0
"""Nobody waits for an answer to a word in the stream: those of some seconds come together, when most have been asked with and are kept."""
AT_THE_SAME_TIME = 1000
READING_AGAIN = 8
"""Boxes whose part of the stream is read at the same time."""


class Presences:
    """For one connection."""

    def __init__(self, client: Client, options: NatsOptions, reception: Reception) -> None:
        self._client = client
        self._options = options
        self._reception = reception
        self._tasks: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(AT_THE_SAME_TIME)
        self._reading_again = asyncio.Semaphore(READING_AGAIN)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        subscription = await self._client.subscribe(f"mcf.*.{ASK}", queue=self._options.durable, cb=self._asked)
        self._begin(self._reading())
        try:
            yield
        finally:
            await ended(*self._tasks)
            with contextlib.suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _asked(self, msg: Msg) -> None:
        self._begin(self._answer(msg))

    async def _answer(self, msg: Msg) -> None:
        """With what the box has to send again: only what the stream does not have either, since the stream takes no message
        twice within its duplicate window."""
        with contextlib.suppress(Refused, StoreError, nats.errors.Error, OSError, TimeoutError):
            async with self._places:
                message = _message(msg)
                answer = await self._reception.presence(message)
                if answer.replay and await self._read_again(nim_of_subject(msg.subject)):
                    answer = await self._reception.presence(message)
                if msg.reply:
                    await self._client.publish(msg.reply, msgspec.json.encode(answer))

    async def _read_again(self, nim: str) -> bool:
        """Whether the stream had closures of that box at all."""
        found = False
        try:
            async with self._reading_again:
                async for messages in read_stream(self._client, 1, f"mcf.{nim}.{CLOSURE}"):
                    found = True
                    await self._reception.closures(messages)
        except (nats.errors.Error, TimeoutError):
            log.warning("stream.not_readable", nim=nim)
        return found

    async def _reading(self) -> None:
        """For as long as the connection lasts; where there is no such stream, presence comes by `ask` alone."""
        trouble = ""
        while self._client.is_connected:
            try:
                await self._read()
            except nats.js.errors.NotFoundError:
                log.info("presence.no_stream")
                return
            except (nats.errors.Error, nats.js.errors.Error, StoreError, OSError) as error:
                reason = f"{type(error).__name__}: {error}"
                if reason != trouble:
                    trouble = reason
                    log.warning("presence.interrupted", reason=reason)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _read(self) -> None:
        await self._client.jetstream(timeout=5).consumer_info(PRESENCE_STREAM, self._options.durable)
        async with pulling(self._client, PRESENCE_STREAM, self._options.durable, AT_ONCE, waits=False) as pull:
            while True:
                messages = await pull.take()
                await self._hear(messages)
                if len(messages) < AT_ONCE:
                    await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _hear(self, messages: Sequence[Msg]) -> None:
        unheard = await self._reception.unheard([_message(msg) for msg in messages])
        await asyncio.gather(*map(self._heard, unheard))
        for msg in messages:
            await msg.ack()

    async def _heard(self, message: Message) -> None:
        with contextlib.suppress(Refused):
            await self._reception.presence(message)


def _message(msg: Msg) -> Message:
    return Message(via="nats", headers=lowered(msg.headers), body=msg.data, nim=nim_of_subject(msg.subject))
