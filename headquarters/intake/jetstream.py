"""Closures from the stream: fetched by the hundred, kept, then acknowledged; any number of instances share one consumer.

What is acknowledged is in the database, or is evidence. A database that was put back shows by its position: it has gone less
far than the consumer; what is between is read again from the stream itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo

from exchange.cancellation import ended
from exchange.subjects import CLOSURES_STREAM
from headquarters.core.reception import Message
from headquarters.intake.connection import NatsOptions, connected
from headquarters.intake.credentials import BadCredentials
from headquarters.intake.gather import AT_ONCE
from headquarters.intake.presence_nats import Presences
from headquarters.intake.pull import Pull, pulling
from headquarters.intake.reception import Batch, Reception
from headquarters.intake.stream import lowered, nim_of_subject, read_stream
from headquarters.intake.threads import Threads
from headquarters.store.database import StoreError
from headquarters.store.store import Store

log = structlog.get_logger(__name__)

ACK_SECONDS = 60
IN_FLIGHT = 20_000
"""Fetched and not yet acknowledged, by all instances together; as far may two of them be apart."""
AGAIN_SECONDS = 1.0
CHECK_SECONDS = 30.0
TROUBLE = (nats.errors.Error, nats.js.errors.Error, OSError, StoreError, BadCredentials, TimeoutError)


class JetStreamIntake:
    def __init__(self, options: NatsOptions, store: Store, threads: Threads, reception: Reception) -> None:
        self._options = options
        self._store = store
        self._threads = threads
        self._reception = reception

    async def run(self) -> None:
        """For ever; what goes wrong ends the session, and another begins where the database is."""
        trouble = ""
        while True:
            try:
                await self._session()
            except TROUBLE as error:
                reason = f"{type(error).__name__}: {error}"
                if reason != trouble:
                    trouble = reason
                    log.error("stream.lost", reason=reason)  # noqa: TRY400  # one line is enough
            self._reception.is_behind = True
            await asyncio.sleep(AGAIN_SECONDS)

    async def _session(self) -> None:
        client = await connected(self._options)
        try:
            jetstream = client.jetstream(timeout=5)
            await self._consumer(jetstream)
            async with Presences(client, self._options, self._reception).running():
                await self._heal(client, jetstream)
                async with pulling(client, CLOSURES_STREAM, self._options.durable, AT_ONCE) as pull:
                    await self._taking(pull, client, jetstream)
        finally:
            with contextlib.suppress(*TROUBLE):
                await client.close()

    async def _consumer(self, jetstream: JetStreamContext) -> ConsumerInfo:
        """As it is; made where there is none and this key may."""
        durable = self._options.durable
        try:
            found: ConsumerInfo = await jetstream.consumer_info(CLOSURES_STREAM, durable)
        except nats.js.errors.NotFoundError:
            config = ConsumerConfig(
                durable_name=durable,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=ACK_SECONDS,
                max_ack_pending=IN_FLIGHT,
            )
            found = await jetstream.add_consumer(CLOSURES_STREAM, config)
        return found

    async def _heal(self, client: Client, jetstream: JetStreamContext) -> None:
        """Reads again what was acknowledged and is not here. The consumer first: what it has seen acknowledged before we look
        at the database was committed before that."""
        floor = (await self._consumer(jetstream)).ack_floor
        position = await self._threads.run(self._store.closures.position, CLOSURES_STREAM)
        if floor is None or floor.stream_seq <= position:
            return
        log.warning("storage.behind_the_stream", holds=position, acknowledged=floor.stream_seq)
        count = 0
        async for messages in read_stream(client, max(1, position + 1 - IN_FLIGHT)):
            await self._reception.closures(messages, (CLOSURES_STREAM, messages[-1].stream_seq or 0))
            count += len(messages)
            if (messages[-1].stream_seq or 0) >= floor.stream_seq:
                break
        # Behind the last message of the stream there may be none that was acknowledged: the stream was emptied by somebody.
        await self._threads.run(self._store.closures.move, CLOSURES_STREAM, floor.stream_seq)
        log.info("storage.healed", read=count)

    async def _taking(self, pull: Pull, client: Client, jetstream: JetStreamContext) -> None:
        """Signatures are looked at while the messages before these are on their way to the disk; kept they are one after the other."""
        checked = asyncio.get_running_loop().time()
        keeping = asyncio.create_task(asyncio.sleep(0))
        try:
            while True:
                messages = await pull.take()
                async with _again_without_database(messages):
                    looked = await self._reception.look([_message(msg) for msg in messages])
                    await keeping
                keeping = asyncio.create_task(self._keep(messages, looked))
                if messages and messages[-1].metadata.num_pending > 0:
                    self._reception.is_behind = True
                    continue
                await keeping
                self._reception.is_behind = False
                now = asyncio.get_running_loop().time()
                if not messages and now - checked > CHECK_SECONDS:
                    checked = now
                    await self._heal(client, jetstream)
        finally:
            await ended(keeping)
            with contextlib.suppress(*TROUBLE, asyncio.CancelledError):
                keeping.result()  # told already, or less than what has ended this

    async def _keep(self, messages: Sequence[Msg], looked: Batch) -> None:
        """Kept, then acknowledged."""
        if not messages:
            return
        async with _again_without_database(messages):
            last = max(message.stream_seq or 0 for message in looked.messages)
            await self._reception.keep(looked, (CLOSURES_STREAM, last))
        for msg in messages:
            await msg.ack()


@contextlib.asynccontextmanager
async def _again_without_database(messages: Sequence[Msg]) -> AsyncIterator[None]:
    """They come again, soon, here or at another instance."""
    try:
        yield
    except StoreError:
        for msg in messages:
            await msg.nak(AGAIN_SECONDS)
        raise


def _message(msg: Msg) -> Message:
    return Message(
        via="nats",
        headers=lowered(msg.headers),
        body=msg.data,
        nim=nim_of_subject(msg.subject),
        stream_seq=msg.metadata.sequence.stream,
    )
