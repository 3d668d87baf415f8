"""Answers the questions of boxes (`mcf.<NIM>.ask`) with the closures to send again.

Uses a separate connection, so that a flood from one shop delays neither closures nor presences."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable

import msgspec
import structlog
from msgspec import UNSET

from common.turns import ended
from common.wire.errors import NatsError, NoAnswer
from common.wire.nats_client import Client, Msg
from common.wire.nats_headers import ASK, CLOSURE, CLOSURES_STREAM
from common.wire.nats_pull import NatsOptions
from common.wire.presence import MAX_BYTES, PresenceAnswer, read_presence
from headquarters.core.reception import Message, MessageRefused
from headquarters.intake.reception import Reception
from headquarters.intake.stream import MAX_HEADERS, message_of, nim_of_subject, read_stream, stream_info
from headquarters.store.database import StoreError

log = structlog.get_logger(__name__)

AT_THE_SAME_TIME = 1000
OF_ONE_SHOP = 2
"""Concurrent questions of one NIM; a box asks one at a time. Further ones are dropped."""
AFTER_REFUSAL_SECONDS = 5.0
"""A refused question occupies its place this long, which bounds the cost of junk."""
READING_AGAIN = 8
"""Boxes whose part of the stream is read concurrently."""
RESERVE = 400
"""Messages of a subject reserved for future closures: one year."""
KNOWS_NO_END = "0.1.0"
"""The version of boxes that do not support `to_z`."""
NO_ROOM_SECONDS = 3600.0
REPLIES_NOT_TO = ("$", "mcf.")
"""Answers go to the sender, never to subjects of the servers or streams."""
LOOK_SECONDS = 2.0
FLOOD = 2000
"""Kilobytes plus messages of one NIM dropped between two looks; above this it is ignored."""
IGNORE_SECONDS = 600.0
"""Duration of ignoring a flooding NIM."""
Nims = Callable[[], Awaitable[Iterable[str]]]


class Floods:
    """NIMs whose questions are ignored; outlives a connection."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._until: dict[str, float] = {}

    def drop(self, nim: str, size: int) -> None:
        if len(self.dropped) < AT_THE_SAME_TIME or nim in self.dropped:
            self.dropped[nim] += 1 + size // 1000

    def ignored(self, now: float) -> frozenset[str]:
        """Evaluates the drops since the last call and returns the ignored NIMs."""
        for nim, count in self.dropped.items():
            if count > FLOOD and nim not in self._until:
                self._until[nim] = now + IGNORE_SECONDS
                log.warning("ask.flood", nim=nim[:32])
        self.dropped.clear()
        self._until = {nim: until for nim, until in self._until.items() if until > now}
        return frozenset(self._until)


class Questions:
    """For one connection."""

    def __init__(self, client: Client, options: NatsOptions, reception: Reception, floods: Floods, nims: Nims) -> None:
        self._client = client
        self._queue = options.durable
        self._reception = reception
        self._floods = floods
        self._nims = nims
        """NIMs to subscribe to while any NIM is ignored."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering: Counter[str] = Counter()
        self._reading_again = asyncio.Semaphore(READING_AGAIN)
        self._no_room: dict[str, float] = {}

    async def run(self) -> None:
        """Runs until the connection is lost, which raises NatsError."""
        listening: list[int] = []
        before: frozenset[str] | None = None
        try:
            while True:
                flooding = self._floods.ignored(asyncio.get_running_loop().time())
                if flooding != before:
                    for subscription in listening:
                        self._client.unsubscribe(subscription)
                    nims = sorted({*await self._nims()} - flooding) if flooding else ["*"]
                    listening = [self._listen(f"mcf.{nim}.{ASK}") for nim in nims]
                    before = flooding
                with contextlib.suppress(NoAnswer):
                    await self._client.within(asyncio.Event().wait(), LOOK_SECONDS)
        finally:
            await ended(*self._tasks)

    def _listen(self, subject: str) -> int:
        return self._client.subscribe(subject, self._on_message, queue=self._queue, most=MAX_BYTES + MAX_HEADERS)

    def _on_message(self, msg: Msg) -> None:
        """Reserves a place; without a free one the message is dropped at no cost."""
        nim = nim_of_subject(msg.subject)
        if len(self._tasks) >= AT_THE_SAME_TIME or self._answering[nim] >= OF_ONE_SHOP:
            self._reception.counted["dropped"] += 1
            self._floods.drop(nim, msg.size)
            return
        self._answering[nim] += 1
        task = asyncio.get_running_loop().create_task(self._answer(nim, _message_of_ask(msg), msg.reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, nim: str, message: Message, reply: str) -> None:
        """Requests of the box only closures that the stream does not contain either."""
        try:
            answer = await self._reception.presence(message, counts=False)
            if answer.replay:
                answer = await self._asking(nim, message, answer)
            if reply and not reply.startswith(REPLIES_NOT_TO):
                self._client.publish(reply, msgspec.json.encode(answer))
        except MessageRefused:
            await asyncio.sleep(AFTER_REFUSAL_SECONDS)
        except (StoreError, NatsError, OSError):
            pass  # the box asks again in some minutes
        finally:
            self._answering[nim] -= 1
            if not self._answering[nim]:
                del self._answering[nim]

    async def _asking(self, nim: str, message: Message, answer: PresenceAnswer) -> PresenceAnswer:
        now = asyncio.get_running_loop().time()
        nothing = msgspec.structs.replace(answer, replay=())
        if self._no_room.get(nim, now) > now:
            return nothing
        await self._read_again(nim)
        if await self._has_room(nim, message, answer):
            return await self._reception.presence(message)
        self._no_room[nim] = now + NO_ROOM_SECONDS
        log.warning("stream.subject_full", nim=nim)
        return nothing

    async def _has_room(self, nim: str, message: Message, answer: PresenceAnswer) -> bool:
        """Whether the subject has room for the requested closures and those of the next months. A box of 0.1.0 sends
        everything from the first requested one on."""
        try:
            info = await stream_info(self._client, CLOSURES_STREAM, f"mcf.{nim}.{CLOSURE}")
        except NatsError:
            return True  # no permission to query
        presence = read_presence(message.body)
        ranges = [(wanted.from_z, wanted.to_z if wanted.to_z is not UNSET else presence.z) for wanted in answer.replay]
        count = sum(last - first + 1 for first, last in ranges)
        if presence.version.startswith(KNOWS_NO_END):
            count = presence.z - min(first for first, _ in ranges) + 1
        return info.room is None or info.room >= count + RESERVE

    async def _read_again(self, nim: str) -> None:
        try:
            async with self._reading_again:
                async for messages in read_stream(self._client, 1, f"mcf.{nim}.{CLOSURE}"):
                    await self._reception.closures(messages)
        except NatsError:
            log.warning("stream.not_readable", nim=nim)


def _message_of_ask(msg: Msg) -> Message:
    if msg.size > MAX_BYTES + MAX_HEADERS:
        damage = f"larger than {MAX_BYTES + MAX_HEADERS} bytes"
        return Message(via="nats", headers={}, body=b"", nim=nim_of_subject(msg.subject), damage=damage)
    return message_of(msg.headers, msg.data, msg.subject, size=len(msg.block))
