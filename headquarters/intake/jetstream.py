"""Reads closures from the stream: fetched in batches, stored, then acknowledged; instances share one consumer.

An acknowledged message is in the database or in the evidence. A restored database, also under running instances, lacks
acknowledged messages: this is checked every few seconds, and they are read again from the stream.

At each connection, and with the messages of a restored database, the last presence of every box is read from the stream
PRESENCE; those that follow arrive as questions (`intake.questions_nats`)."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import partial

import structlog

from common.turns import ended
from common.wire.errors import NatsError
from common.wire.nats_client import Client, Msg
from common.wire.nats_headers import CLOSURES_STREAM, PRESENCE, PRESENCE_STREAM
from common.wire.nats_pull import AGAIN_SECONDS, NatsOptions, Pull, connected, pulling, sessions
from headquarters.core.reception import Message, MessageRefused
from headquarters.intake.questions_nats import Floods, Questions
from headquarters.intake.reception import Batch, Reception
from headquarters.intake.stream import (
    NoSuchStream,
    call,
    delivery_of,
    message_of_consumer,
    read_stream,
    stream_info,
)
from headquarters.intake.threads import AT_ONCE, Threads
from headquarters.store.database import StoreError
from headquarters.store.store import HqStore
from headquarters.store.stream_ranges import StreamName, missing

log = structlog.get_logger(__name__)

ACK_SECONDS = 60
IN_FLIGHT = 20_000
"""Fetched and unacknowledged, of all instances together."""
CHECK_SECONDS = 10.0
EXPLICIT = {"ack_policy": "explicit", "ack_wait": ACK_SECONDS * 10**9, "max_ack_pending": IN_FLIGHT}


class JetStreamIntake:
    def __init__(self, options: NatsOptions, store: HqStore, threads: Threads, reception: Reception) -> None:
        self._options = options
        self._store = store
        self._threads = threads
        self._reception = reception
        self._stream = StreamName(CLOSURES_STREAM, "")
        """The stream that is read."""
        self._lacks_presences = asyncio.Event()
        """The database may lack presences of the stream."""
        self._floods = Floods()

    async def run(self) -> None:
        """Runs until cancelled; an error ends a session, and a new one continues from the database's state."""
        self._reception.is_behind = True
        async with asyncio.TaskGroup() as all_three:
            opened = partial(connected, self._options)
            for name, session in (("stream", self._closures), ("presence", self._presences), ("ask", self._questions)):
                all_three.create_task(sessions(name, opened, session, (StoreError,)))

    async def _presences(self, client: Client) -> None:
        """A silent shop does not repeat its last presence. Without this stream presences are known from questions
        only."""
        self._lacks_presences.set()
        while True:
            await client.within(self._lacks_presences.wait(), None)
            self._lacks_presences.clear()
            try:
                async for messages in read_stream(client, 1, f"mcf.*.{PRESENCE}", PRESENCE_STREAM):
                    await asyncio.gather(*map(self._store_presence, await self._reception.new_presences(messages)))
            except NatsError as error:
                log.warning("presence.not_readable", reason=str(error))

    async def _store_presence(self, message: Message) -> None:
        with contextlib.suppress(MessageRefused):
            await self._reception.presence(message)

    async def _questions(self, client: Client) -> None:
        await Questions(client, self._options, self._reception, self._floods, self._nims).run()

    async def _nims(self) -> set[str]:
        """NIMs that boxes may use: as registered, and as in their last presence."""
        boxes = await self._threads.run(self._store.register.boxes)
        latest = await self._threads.run(self._store.presences.latest)
        return {box.nim for box in boxes} | {stored.presence.nim for stored in latest.values()}

    async def _closures(self, client: Client) -> None:
        try:
            await self._heal(client)
            async with pulling(client, CLOSURES_STREAM, self._options.durable, AT_ONCE) as pull:
                await self._store_all(pull, client)
        except StoreError:
            self._lacks_presences.set()
            raise
        finally:
            self._reception.is_behind = True

    async def _acknowledged(self, client: Client) -> int:
        """The number up to which all messages are acknowledged; creates the consumer if it is missing and
        permitted."""
        durable = self._options.durable
        try:
            found = await call(client, f"CONSUMER.INFO.{CLOSURES_STREAM}.{durable}", {})
        except NoSuchStream:
            config = {"durable_name": durable, "deliver_policy": "all", "replay_policy": "instant", **EXPLICIT}
            request = {"stream_name": CLOSURES_STREAM, "config": config}
            found = await call(client, f"CONSUMER.DURABLE.CREATE.{CLOSURES_STREAM}.{durable}", request)
        return int((found.get("ack_floor") or {}).get("stream_seq", 0))

    async def _heal(self, client: Client) -> None:
        """Reads acknowledged messages that are not stored. Queries the consumer first: whatever was acknowledged by
        then is already committed when the database is read."""
        floor = await self._acknowledged(client)
        self._stream = StreamName(CLOSURES_STREAM, (await stream_info(client, CLOSURES_STREAM)).created)
        store = self._store.stream_ranges
        stored = await self._threads.run(store.ranges, *self._stream)
        # Queried after them, since other instances go on storing: only a restored stream ends before what is stored.
        if stored and stored[-1][1] > (await stream_info(client, CLOSURES_STREAM)).last_seq:
            await self._threads.run(store.forget, *self._stream)
            stored = []
        lost = missing(stored, floor)
        if not lost:
            return
        log.warning("storage.behind_the_stream", missing=lost[:10], acknowledged=floor)
        self._reception.is_behind = True
        self._lacks_presences.set()
        count = 0
        for first, last in lost:
            count += await self._read_again(client, first, last)
            # Numbers without a message were never acknowledged: the stream was emptied.
            await self._threads.run(store.add, *self._stream, first, last)
        log.info("storage.healed", read=count)

    async def _read_again(self, client: Client, first: int, last: int) -> int:
        count = 0
        async for messages in read_stream(client, first):
            await self._reception.closures(messages, self._stream)
            count += len(messages)
            if (messages[-1].stream_seq or 0) >= last:
                break
        return count

    async def _store_all(self, pull: Pull, client: Client) -> None:
        """Verifies signatures while the previous batch is written; batches are written one after the other."""
        checked = asyncio.get_running_loop().time()
        storing = asyncio.create_task(asyncio.sleep(0))
        try:
            while True:
                messages = await pull.next_messages()
                async with _redeliver_without_database(messages):
                    verified = await self._reception.verify([message_of_consumer(msg) for msg in messages])
                    await storing
                storing = asyncio.create_task(self._store_and_acknowledge(messages, verified))
                now = asyncio.get_running_loop().time()
                if now - checked > CHECK_SECONDS:
                    checked = now
                    await storing
                    await self._heal(client)
                if messages and delivery_of(messages[-1]).pending > 0:
                    self._reception.is_behind = True
                    continue
                await storing
                self._reception.is_behind = False
        finally:
            await ended(storing)
            with contextlib.suppress(NatsError, OSError, StoreError, asyncio.CancelledError):
                storing.result()  # already logged, or minor beside the error that ended this

    async def _store_and_acknowledge(self, messages: Sequence[Msg], verified: Batch) -> None:
        """Stores, then acknowledges."""
        if not messages:
            return
        async with _redeliver_without_database(messages):
            await self._reception.store(verified, self._stream)
        for msg in messages:
            msg.ack()


@contextlib.asynccontextmanager
async def _redeliver_without_database(messages: Sequence[Msg]) -> AsyncIterator[None]:
    """On a storage error the messages are delivered again soon, here or at another instance."""
    try:
        yield
    except StoreError:
        for msg in messages:
            msg.nak(AGAIN_SECONDS)
        raise
