"""From messages to rows: looks at each, keeps what is a closure in one transaction, and what is not as evidence."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import tzinfo
from functools import partial
from typing import Any, NamedTuple, TypeVar

import structlog
from msgspec import UNSET

from common.turns import ended
from common.wire.closure import Trial
from common.wire.instants import now_millis
from common.wire.presence import MOST_BYTES, PresenceAnswer, WantedClosures, read_presence
from headquarters.core.checks import machine_of
from headquarters.core.reception import (
    KeysOfRevision,
    Message,
    MessageRefused,
    Received,
    ReceivedCalendar,
    content_of,
    receive,
    signer,
)
from headquarters.intake.threads import Gatherer, Threads
from headquarters.store.book.closures import TakeOutcome
from headquarters.store.book.presences import HeardPresence
from headquarters.store.database import BadContent, StoreError
from headquarters.store.evidence import Refusal
from headquarters.store.revision import StaleRing
from headquarters.store.store import HqStore
from headquarters.store.taken import StreamName, Taken

log = structlog.get_logger(__name__)

T = TypeVar("T")
QUIET_MILLIS = 10_000
"""A book that got a closure that short ago is being sent: nothing is requested of it."""
BY_KEY = ("unsigned", "unknown", "foreign", "time")
"""Reasons that newer keys may take away."""
PRESENCE_EVERY = 4.0
"""Seconds between two transactions with the presences of boxes: one for each box would be most of the work."""
Result = TakeOutcome | MessageRefused
TimedPresence = tuple[HeardPresence, int]
"""With the revision of the keys that it was looked at with."""
UNFIT = (BadContent, ArithmeticError, ValueError)
"""By which one message cannot be kept, now or later."""
TOO_FAST = "the keys change faster than they can be read"


class Batch(NamedTuple):
    """What was found of each message, by the keys of that revision."""

    messages: Sequence[Message]
    looked: Sequence[Received | ReceivedCalendar | MessageRefused]
    revision: int


class Reception:
    def __init__(self, store: HqStore, threads: Threads, zone: tzinfo, newest_version: str = "") -> None:
        self._store = store
        self._threads = threads
        self._zone = zone
        self._newest = newest_version
        self._ring = KeysOfRevision(-1, ())
        self._closures: Gatherer[Message, Result] = Gatherer(self.closures)
        self._words: Gatherer[TimedPresence, list[WantedClosures]] = Gatherer(self._take_presences, PRESENCE_EVERY)
        self._refusals: Gatherer[Refusal, Refusal] = Gatherer(self._refuse)
        self.counted: Counter[str] = Counter()
        """Since the start, by outcome or reason; for the metrics."""
        self.is_behind = False
        """Closures are on their way here that no transaction has taken yet: nothing is requested of a box meanwhile."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        gatherers: tuple[Gatherer[Any, Any], ...] = (self._closures, self._words, self._refusals)
        tasks = [loop.create_task(gatherer.run(), name="gather") for gatherer in gatherers]
        try:
            yield
        finally:
            await ended(*tasks)

    async def closure(self, message: Message) -> TakeOutcome:
        """Durable when this returns; Refused, or StoreError when the database cannot be used now."""
        result = await self._closures.add(message)
        if isinstance(result, MessageRefused):
            raise result
        return result

    async def closures(self, messages: Sequence[Message], stream: StreamName | None = None) -> list[Result]:
        """The same for many, in one transaction; what is refused is kept as evidence before this returns. `stream`: that they are from, and
        taken from then."""
        return await self.keep(await self.look(messages), stream)

    async def look(self, messages: Sequence[Message]) -> Batch:
        """Shape and signature of each, which needs the database for newer keys alone."""
        for _ in range(3):
            ring = self._ring
            looked = await self._threads.run(self._look, messages, ring)
            is_by_key = any(isinstance(one, MessageRefused) and one.reason in BY_KEY for one in looked)
            if not (is_by_key and await self._has_newer_keys(ring.revision)):
                return Batch(messages, looked, ring.revision)
        raise StoreError(TOO_FAST)

    async def keep(self, batch: Batch, stream: StreamName | None = None) -> list[Result]:
        """In one transaction; looked at again when the keys are others by now. What the database refuses for its content is found, and
        holds up no other."""
        try:
            return await self._keep(batch, stream)
        except UNFIT as error:
            if len(batch.messages) == 1:
                return await self._keep(batch._replace(looked=[_unfit(batch.messages[0], error)]), stream)
        return [
            result
            for message, looked in zip(batch.messages, batch.looked, strict=True)
            for result in await self.keep(Batch([message], [looked], batch.revision), stream)
        ]

    async def _keep(self, batch: Batch, stream: StreamName | None) -> list[Result]:
        taken = stream and Taken(*stream, [message.stream_seq or 0 for message in batch.messages])
        for _ in range(3):
            closures = [one for one in batch.looked if not isinstance(one, MessageRefused)]
            try:
                take = partial(self._store.closures.take, now=now_millis(), revision=batch.revision, taken=taken)
                outcomes = iter(await self._threads.run(take, closures) if closures or taken else ())
            except StaleRing:
                await self._has_newer_keys(batch.revision)
                batch = await self.look(batch.messages)
                continue
            results = [one if isinstance(one, MessageRefused) else next(outcomes) for one in batch.looked]
            pairs = zip(batch.messages, results, strict=True)
            refusals = [(message, one) for message, one in pairs if isinstance(one, MessageRefused)]
            if refusals:
                await self._refuse(refusals)
            self.counted.update(r.value for r in results if isinstance(r, TakeOutcome))
            return results
        raise StoreError(TOO_FAST)

    async def trial(self, message: Message, trial: Trial) -> None:
        """Refused unless a key of that machine has signed it; nothing is kept of it."""

        async def look(ring: KeysOfRevision) -> None:
            signer(message, ring, machine_of(trial.data.nim), trial.data.key_id, now=time.time())

        await self._has_newer_keys(self._ring.revision)  # no transaction looks at them again
        try:
            await self._with_keys(look)
        except MessageRefused as refused:
            self.counted[refused.reason] += 1
            raise
        self.counted["trial"] += 1

    async def presence(self, message: Message, *, counts: bool = True) -> PresenceAnswer:
        """What to request of the box; Refused, or StoreError. It counts as requested unless the answer does not go to the box."""
        try:
            return await self._with_keys(lambda ring: self._presence(message, ring, counts))
        except MessageRefused as error:
            refused = error
        except UNFIT as error:
            refused = _unfit(message, error)
        await self._refusals.add((message, refused))
        raise refused

    async def _with_keys(self, attempt: Callable[[KeysOfRevision], Awaitable[T]]) -> T:
        """Once more when newer keys may change what becomes of it."""
        for _ in range(3):
            ring = self._ring
            try:
                return await attempt(ring)
            except StaleRing:
                await self._has_newer_keys(ring.revision)
            except MessageRefused as refused:
                if refused.reason not in BY_KEY or not await self._has_newer_keys(ring.revision):
                    raise
        raise StoreError(TOO_FAST)

    async def unheard(self, messages: Sequence[Message]) -> list[Message]:
        """Without those that are, byte for byte, the last word of their box: it was signed, and nothing comes of it a second time."""
        nims = {message.nim for message in messages if message.nim is not None}
        contents = await self._threads.run(self._store.presences.contents, sorted(map(machine_of, nims)))
        return [message for message in messages if message.body != contents.get(machine_of(message.nim or ""))]

    async def _presence(self, message: Message, ring: KeysOfRevision, counts: bool) -> PresenceAnswer:
        presence = content_of(message, MOST_BYTES, read_presence)
        key = signer(message, ring, machine_of(presence.nim), presence.key, now=time.time())
        # A word that waited in a stream has no answer, and counts as of when it was said.
        is_quiet = message.at is not None or (self.is_behind and message.via == "nats")
        quiet = -1 if is_quiet else QUIET_MILLIS
        word = HeardPresence(presence, message.body, key.id, quiet, message.at, counts)
        wanted = await self._words.add((word, ring.revision))
        self.counted["presence"] += 1
        if not presence.wants_last_z:
            return PresenceAnswer(replay=tuple(wanted))
        last_z = await self._threads.run(self._store.presences.last_z, machine_of(presence.nim), presence.mode)
        return PresenceAnswer(replay=tuple(wanted), last_z=last_z or UNSET)

    async def _has_newer_keys(self, than: int) -> bool:
        """Reads them when there are. Every transaction checks that the keys it was looked at with are those of now, so that who
        was revoked a moment ago is refused without a question for each message."""
        if self._ring.revision == than and await self._threads.run(self._store.register.revision) != than:
            self._ring = await self._threads.run(self._store.register.ring)
        return self._ring.revision != than

    def _look(
        self, messages: Sequence[Message], ring: KeysOfRevision
    ) -> list[Received | ReceivedCalendar | MessageRefused]:
        now = time.time()
        return [_looked(message, ring, now, self._zone) for message in messages]

    async def _take_presences(self, batch: Sequence[TimedPresence]) -> list[list[WantedClosures]]:
        return await self._threads.run(
            self._store.presences.take,
            [word for word, _ in batch],
            now=now_millis(),
            newest_version=self._newest,
            # The oldest keys that one was looked at with: when they are stale, all look again, which costs little.
            revision=min(revision for _, revision in batch),
        )

    async def _refuse(self, refusals: Sequence[Refusal]) -> Sequence[Refusal]:
        for message, why in refusals:
            self.counted[why.reason] += 1
            log.warning("message.refused", via=message.via, reason=why.reason, nim=why.nim[:32], detail=str(why)[:200])
        await self._threads.run(self._store.evidence.refuse, refusals, now_millis())
        return refusals


def _unfit(message: Message, error: Exception) -> MessageRefused:
    return MessageRefused("malformed", f"cannot be kept: {error}", message.nim or "")


def _looked(
    message: Message, ring: KeysOfRevision, now: float, zone: tzinfo
) -> Received | ReceivedCalendar | MessageRefused:
    try:
        return receive(message, ring, now=now, zone=zone)
    except MessageRefused as refused:
        return refused
    except Exception as error:
        log.exception("closure.unreadable", nim=message.nim)
        return MessageRefused("malformed", f"{type(error).__name__}: {error}", message.nim or "")
