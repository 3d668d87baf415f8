"""The last word of each box, kept by the stream PRESENCE."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import structlog

from common.wire.nats_client import Client, NatsError
from common.wire.nats_headers import PRESENCE, PRESENCE_STREAM
from common.wire.nats_pull import NatsOptions, pulling
from headquarters.core.reception import Message, MessageRefused
from headquarters.intake.reception import Reception
from headquarters.intake.stream import NoSuchStream, call, message_of_consumer, read_stream

log = structlog.get_logger(__name__)

AT_ONCE = 200
LOOK_EVERY_SECONDS = 10.0
"""Nobody waits for an answer to a word in the stream: those of some seconds come together, when most have been asked with and are kept."""


class PresenceEvents:
    """Between the session of the presences and that of the closures."""

    def __init__(self) -> None:
        self.has_read = asyncio.Event()
        """The words that had waited in the stream are kept."""
        self.put_back = asyncio.Event()
        """The database may lack words that were acknowledged."""
        self.put_back.set()


class PresenceIntake:
    """For one connection."""

    def __init__(self, client: Client, options: NatsOptions, reception: Reception, events: PresenceEvents) -> None:
        self._client = client
        self._options = options
        self._reception = reception
        self._events = events

    async def run(self) -> None:
        """Until the connection is lost, which is a NatsError; where there is no such stream, presence comes by `ask` alone."""
        try:
            await self._read()
        except NoSuchStream:
            log.info("presence.no_stream")
            self._events.has_read.set()
            await self._client.within(asyncio.Event().wait(), None)

    async def _read(self) -> None:
        await call(self._client, f"CONSUMER.INFO.{PRESENCE_STREAM}.{self._options.durable}", {})
        async with pulling(self._client, PRESENCE_STREAM, self._options.durable, AT_ONCE, waits=False) as pull:
            while True:
                messages = await pull.take()
                await self._hear([message_of_consumer(msg) for msg in messages])
                for msg in messages:
                    msg.ack()
                self._events.has_read.set()
                if self._events.put_back.is_set():
                    await self._read_all()
                if len(messages) < AT_ONCE:
                    await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _read_all(self) -> None:
        """The last word of every box once more: a shop that is silent now does not say it again."""
        self._events.put_back.clear()
        try:
            async for messages in read_stream(self._client, 1, f"mcf.*.{PRESENCE}", PRESENCE_STREAM):
                await self._hear(messages)
        except NatsError as error:
            log.warning("presence.not_readable", reason=str(error))
        except BaseException:
            self._events.put_back.set()
            raise

    async def _hear(self, messages: Sequence[Message]) -> None:
        unheard = await self._reception.unheard(messages)
        await asyncio.gather(*map(self._heard, unheard))

    async def _heard(self, message: Message) -> None:
        with contextlib.suppress(MessageRefused):
            await self._reception.presence(message)
