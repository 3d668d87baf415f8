"""From messages to rows: verifies each, stores closures in one transaction and refused messages as evidence."""

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
from common.wire.presence import MAX_BYTES, PresenceAnswer, WantedClosures, read_presence
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
from headquarters.store.book.closures import StoreOutcome
from headquarters.store.book.presences import ReceivedPresence
from headquarters.store.database import BadContent, StoreError
from headquarters.store.evidence import Refusal
from headquarters.store.revision import StaleRing
from headquarters.store.store import HqStore
from headquarters.store.stream_ranges import StreamMessages, StreamName

log = structlog.get_logger(__name__)

T = TypeVar("T")
QUIET_MILLIS = 10_000
"""While a book received a closure this recently, more are in transit: nothing is requested."""
BY_KEY = ("unsigned", "unknown", "foreign", "time")
"""Reasons that newer keys may remove."""
PRESENCE_EVERY = 4.0
"""Seconds between transactions with presences: one per presence would be most of the load."""
Result = StoreOutcome | MessageRefused
TimedPresence = tuple[ReceivedPresence, int]
"""A closure with the revision of the keys that verified it."""
UNFIT = (BadContent, ArithmeticError, ValueError)
"""Errors of one message that cannot be stored, now or later."""
TOO_FAST = "the keys change faster than they can be read"


class Batch(NamedTuple):
    """Result of verification per message, and the revision of the keys."""

    messages: Sequence[Message]
    verified: Sequence[Received | ReceivedCalendar | MessageRefused]
    revision: int


class Reception:
    def __init__(self, store: HqStore, threads: Threads, zone: tzinfo, newest_version: str = "") -> None:
        self._store = store
        self._threads = threads
        self._zone = zone
        self._newest = newest_version
        self._ring = KeysOfRevision(-1, ())
        self._closures: Gatherer[Message, Result] = Gatherer(self.closures)
        self._presences: Gatherer[TimedPresence, list[WantedClosures]] = Gatherer(self._store_presences, PRESENCE_EVERY)
        self._refusals: Gatherer[Refusal, Refusal] = Gatherer(self._refuse)
        self.counted: Counter[str] = Counter()
        """Counts by outcome or reason since the start, for the metrics."""
        self.is_behind = False
        """Closures are in transit to the database: nothing is requested of boxes meanwhile."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        gatherers: tuple[Gatherer[Any, Any], ...] = (self._closures, self._presences, self._refusals)
        tasks = [loop.create_task(gatherer.run(), name="gather") for gatherer in gatherers]
        try:
            yield
        finally:
            await ended(*tasks)

    async def closure(self, message: Message) -> StoreOutcome:
        """Stores one closure, durable on return. Raises MessageRefused, and StoreError if the database is unusable."""
        result = await self._closures.add(message)
        if isinstance(result, MessageRefused):
            raise result
        return result

    async def closures(self, messages: Sequence[Message], stream: StreamName | None = None) -> list[Result]:
        """Stores many in one transaction; refused ones become evidence before this returns. `stream` is their source,
        in which they are marked as taken."""
        return await self.store(await self.verify(messages), stream)

    async def verify(self, messages: Sequence[Message]) -> Batch:
        """Verifies format and signatures; reads the database only for newer keys."""
        for _ in range(3):
            ring = self._ring
            verified = await self._threads.run(_verified, messages, ring, time.time(), self._zone)
            is_by_key = any(isinstance(one, MessageRefused) and one.reason in BY_KEY for one in verified)
            if not (is_by_key and await self._has_newer_keys(ring.revision)):
                return Batch(messages, verified, ring.revision)
        raise StoreError(TOO_FAST)

    async def store(self, batch: Batch, stream: StreamName | None = None) -> list[Result]:
        """Stores a batch in one transaction; verifies again if the keys have changed. A message that the database
        rejects is isolated, so that it does not block the others."""
        try:
            return await self._store_batch(batch, stream)
        except UNFIT as error:
            if len(batch.messages) == 1:
                return await self._store_batch(batch._replace(verified=[_unfit(batch.messages[0], error)]), stream)
        return [
            result
            for message, verified in zip(batch.messages, batch.verified, strict=True)
            for result in await self.store(Batch([message], [verified], batch.revision), stream)
        ]

    async def _store_batch(self, batch: Batch, stream: StreamName | None) -> list[Result]:
        messages = stream and StreamMessages(*stream, [message.stream_seq or 0 for message in batch.messages])
        for _ in range(3):
            closures = [one for one in batch.verified if not isinstance(one, MessageRefused)]
            try:
                take = partial(self._store.closures.store, now=now_millis(), revision=batch.revision, messages=messages)
                outcomes = iter(await self._threads.run(take, closures) if closures or messages else ())
            except StaleRing:
                await self._has_newer_keys(batch.revision)
                batch = await self.verify(batch.messages)
                continue
            results = [one if isinstance(one, MessageRefused) else next(outcomes) for one in batch.verified]
            pairs = zip(batch.messages, results, strict=True)
            refusals = [(message, one) for message, one in pairs if isinstance(one, MessageRefused)]
            if refusals:
                await self._refuse(refusals)
            self.counted.update(r.value for r in results if isinstance(r, StoreOutcome))
            return results
        raise StoreError(TOO_FAST)

    async def trial(self, message: Message, trial: Trial) -> None:
        """Raises MessageRefused unless a key of the machine signed it; stores nothing."""

        async def look(ring: KeysOfRevision) -> None:
            signer(message, ring, machine_of(trial.data.nim), trial.data.key_id, now=time.time())

        await self._has_newer_keys(self._ring.revision)  # since no transaction checks them later
        try:
            await self._with_keys(look)
        except MessageRefused as refused:
            self.counted[refused.reason] += 1
            raise
        self.counted["trial"] += 1

    async def presence(self, message: Message, *, counts: bool = True) -> PresenceAnswer:
        """The closures to request of the box. Raises MessageRefused, or StoreError. Without `counts` they do not count
        as requested."""
        try:
            return await self._with_keys(lambda ring: self._presence(message, ring, counts))
        except MessageRefused as error:
            refused = error
        except UNFIT as error:
            refused = _unfit(message, error)
        await self._refusals.add((message, refused))
        raise refused

    async def _with_keys(self, attempt: Callable[[KeysOfRevision], Awaitable[T]]) -> T:
        """Repeats the attempt if newer keys may change its result."""
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

    async def new_presences(self, messages: Sequence[Message]) -> list[Message]:
        """Without messages that equal, byte for byte, the stored presence of their box: those were verified and have
        no further effect."""
        nims = {message.nim for message in messages if message.nim is not None}
        latest = await self._threads.run(self._store.presences.latest, sorted(map(machine_of, nims)))
        unchanged = {(stored.machine, stored.body) for stored in latest.values()}
        return [message for message in messages if (machine_of(message.nim or ""), message.body) not in unchanged]

    async def _presence(self, message: Message, ring: KeysOfRevision, counts: bool) -> PresenceAnswer:
        presence = content_of(message, MAX_BYTES, read_presence)
        key = signer(message, ring, machine_of(presence.nim), presence.key, now=time.time())
        # A presence from a stream gets no answer; its time is that of its arrival there.
        is_quiet = message.at is not None or (self.is_behind and message.via == "nats")
        quiet = -1 if is_quiet else QUIET_MILLIS
        received = ReceivedPresence(presence, message.body, key.id, quiet, message.at, counts)
        wanted = await self._presences.add((received, ring.revision))
        self.counted["presence"] += 1
        if not presence.wants_last_z:
            return PresenceAnswer(replay=tuple(wanted))
        last_z = await self._threads.run(self._store.presences.last_z, machine_of(presence.nim), presence.mode)
        return PresenceAnswer(replay=tuple(wanted), last_z=last_z or UNSET)

    async def _has_newer_keys(self, than: int) -> bool:
        """Loads newer keys, if any. Each transaction compares the revision, so that a key revoked a moment ago is
        refused without a query for each message."""
        if self._ring.revision == than and await self._threads.run(self._store.register.revision) != than:
            self._ring = await self._threads.run(self._store.register.ring)
        return self._ring.revision != than

    async def _store_presences(self, batch: Sequence[TimedPresence]) -> list[list[WantedClosures]]:
        return await self._threads.run(
            self._store.presences.store,
            [received for received, _ in batch],
            now=now_millis(),
            newest_version=self._newest,
            # The oldest revision of the batch: if it is stale, all are verified again, which is cheap.
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


def _verified(
    messages: Sequence[Message], ring: KeysOfRevision, now: float, zone: tzinfo
) -> list[Received | ReceivedCalendar | MessageRefused]:
    found: list[Received | ReceivedCalendar | MessageRefused] = []
    for message in messages:
        try:
            found.append(receive(message, ring, now=now, zone=zone))
        except MessageRefused as refused:
            found.append(refused)
        except Exception as error:
            log.exception("closure.unreadable", nim=message.nim)
            found.append(MessageRefused("malformed", f"{type(error).__name__}: {error}", message.nim or ""))
    return found
