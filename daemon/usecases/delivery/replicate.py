"""Sends every closure to headquarters in the order of its book, however long the network is down; and events to
webhooks the same way (`usecases.delivery.webhook_events`).

No certification and no Z waits for it: a closure and its outbox row are one transaction, and this use case later reads
the row, sends it and stores the result. Each book (one NIM in one mode) has its own task, each webhook its own queue.
After a crash between delivery and result the closure is sent again; the receiver recognises its report_id.

A refused row is parked, and those behind it continue. It is offered again after a start or a reload, and after later
deliveries, so that a receiver that was repaired needs no command at the box."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, TypeVar

import structlog

from common.language.reasons import NO_EVENT, from_stored
from common.turns import raise_if_cancelled
from daemon.core.clock import DAY, HOUR, Clock
from daemon.core.delivery import (
    Backlog,
    Delivered,
    Delivery,
    DeliveryRefused,
    Outgoing,
    Posting,
    RetryLater,
    UpstreamReceiver,
)
from daemon.core.ledger.attempt import Mode
from daemon.store.outbox import Outbox
from daemon.usecases.delivery.events import has_come

LONGEST_RETRY_AFTER = 86_400.0
"""Seconds: a receiver may ask for a day; more is taken for a mistake."""
WIDEST_SPREAD = 3_600.0
MAX_DOUBLINGS = 1000
"""A float ends soon after."""

_dice = random.SystemRandom().random  # each box for itself


_log = structlog.get_logger(__name__)

SUBJECT = "closure"
BATCH = 50
BOOKKEEPING = 30.0
FOR_EVER = 2**53
REST_MS = HOUR
"""How long what was refused rests at least before it is offered again."""


@dataclass(frozen=True)
class Backoff:
    """Exponential backoff with full jitter, at most `most` seconds. A receiver's Retry-After counts even beyond that;
    jitter is added to it, up to the same again and one hour at most."""

    _: KW_ONLY
    first: float = 1.0
    most: float = 300.0
    dice: Callable[[], float] = _dice

    def wait(self, tries: int, retry_after: float | None = None) -> float:
        """Seconds after the `tries`-th failure in a row, counted from 1."""
        ceiling = min(self.most, self.first * 2.0 ** min(tries - 1, MAX_DOUBLINGS))
        minimum = min(retry_after or 0.0, LONGEST_RETRY_AFTER)
        return minimum + self.dice() * max(min(minimum, WIDEST_SPREAD), ceiling)


@dataclass
class BookQueue:
    """What wakes it, its failures in a row, and how far behind it is by the log."""

    nim: str
    mode: Mode
    destination: str
    news: asyncio.Event = field(default_factory=asyncio.Event)
    tries: int = 0
    has_delivered: bool = False
    """Since what was refused was last offered again."""
    has_begun: bool = False
    last_report: int = 0

    @property
    def names(self) -> dict[str, str]:
        """For the log."""
        return {"nim": self.nim, "mode": self.mode, "destination": self.destination}

    def log_if_behind(self, backlog: Backlog, now: int, subject: str) -> None:
        age = now - backlog.oldest_at if backlog.waiting else 0
        behind = (age >= HOUR) + (age >= DAY)
        if behind > self.last_report:
            _log.error(
                f"{subject}.behind",
                **self.names,
                waiting=backlog.waiting,
                oldest_hours=age // HOUR,
                error=str(from_stored(backlog.last_error)),
            )
        self.last_report = behind


E = TypeVar("E", bound=Outgoing | Posting)


@dataclass(eq=False)
class Replicator(Generic[E]):
    """`run` runs until cancelled; call `wake` when a closure (or other `subject`) has been stored. `waiting` gives the
    next rows of a book that are neither sent nor parked, in order."""

    outbox: Outbox
    waiting: Callable[[str, Mode, int], Awaitable[Sequence[E]]]
    receiver: UpstreamReceiver
    compose: Callable[[E], bytes]
    _: KW_ONLY
    clock: Clock
    backoff: Backoff = Backoff()
    subject: str = SUBJECT
    destination: str = "upstream"
    sandbox: bool = False
    poll: float = 5.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _queues: dict[tuple[str, Mode], BookQueue] = field(default_factory=dict, init=False)
    _unknown_book: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def wake(self, nim: str, mode: Mode) -> None:
        queue = self._queues.get((nim, mode))
        (queue.news if queue else self._unknown_book).set()

    def wake_all(self) -> None:
        for queue in self._queues.values():
            queue.news.set()
        self._unknown_book.set()

    def offer_parked(self) -> None:
        """What the receiver has refused is offered again at the next turn of each book, as after a start."""
        for queue in self._queues.values():
            queue.has_begun = False
            queue.news.set()

    async def run(self) -> None:
        """Give every book that has an outbox its queue, and say in the logs when one falls behind."""
        self._queues = {}
        async with asyncio.TaskGroup() as queues:
            while True:
                self._unknown_book.clear()
                for backlog in await self._read_backlog():
                    key = (backlog.nim, backlog.mode)
                    if key not in self._queues:
                        self._queues[key] = BookQueue(backlog.nim, backlog.mode, self.destination)
                        queues.create_task(
                            self._work(self._queues[key]), name=f"replicate {backlog.nim} {backlog.mode}"
                        )
                    self._queues[key].log_if_behind(backlog, self.clock(), self.subject)
                await has_come(self._unknown_book, BOOKKEEPING)

    async def _read_backlog(self) -> Sequence[Backlog]:
        try:
            backlogs = await self.outbox.backlog()
        except Exception as error:  # noqa: BLE001  # the store's trouble must not end replication; it is retried
            _log.warning("outbox.unreadable", error=str(error))
            return []
        return [b for b in backlogs if b.mode == "live" or self.sandbox]

    async def _work(self, queue: BookQueue) -> None:
        while True:
            queue.news.clear()
            try:
                sent_all = await self._drain(queue)
            except Exception:  # noqa: BLE001  # logged and retried: the closure is safe in the outbox
                _log.exception("replication.failed", **queue.names)
                queue.tries += 1
                await self.sleep(self.backoff.wait(queue.tries))
                continue
            raise_if_cancelled()
            if sent_all:
                await has_come(queue.news, self.poll)

    async def _drain(self, queue: BookQueue) -> bool:
        """Send what waits, in order, until one has to be tried again; True when nothing is left."""
        if not queue.has_begun:
            await self._offer_again(queue, FOR_EVER)
            queue.has_begun = True
        entries = await self.waiting(queue.nim, queue.mode, BATCH)
        for entry in entries:
            delivery = await self._deliver(entry)
            if isinstance(delivery, RetryLater):
                raise_if_cancelled()
                await self._postpone(queue, entry, delivery)
                return False
            await self._settle(queue, entry, delivery)
            raise_if_cancelled()
        if not entries and queue.has_delivered:
            queue.has_delivered = False
            return not await self._offer_again(queue, self.clock() - REST_MS)
        return not entries

    async def _offer_again(self, queue: BookQueue, before: int) -> int:
        """Offers rows again that were refused before `before` (ms): all after a start or a reload, those that have
        waited long enough after a delivery."""
        offered = await self.outbox.offer_again(queue.nim, queue.mode, before=before)
        if offered:
            _log.info(f"{self.subject}.offered_again", **queue.names, count=offered)
        return offered

    async def _deliver(self, entry: E) -> Delivery:
        try:
            event = self.compose(entry)
        except ValueError as error:  # a damaged row must not hold up the closures behind it
            return DeliveryRefused(NO_EVENT(error=error))
        return await self.receiver.deliver(
            event,
            report_id=entry.report_id,
            subject=self.subject,
            nim=entry.nim,
            since=entry.created_at,
            last_sent=entry.last_sent,
        )

    async def _settle(self, queue: BookQueue, entry: E, delivery: Delivered | DeliveryRefused) -> None:
        if isinstance(delivery, DeliveryRefused):
            await self.outbox.park(entry.id, delivery.error, at=self.clock())
            _log.error(f"{self.subject}.parked", **entry.names, destination=self.destination, error=delivery.error)
        else:
            await self.outbox.mark_sent(entry.id, at=self.clock())
            queue.has_delivered = True
            _log.info(f"{self.subject}.delivered", **entry.names, tries=queue.tries + 1)
        queue.tries = 0

    async def _postpone(self, queue: BookQueue, entry: E, delivery: RetryLater) -> None:
        queue.tries += 1
        seconds = self.backoff.wait(queue.tries, delivery.retry_after)
        now = self.clock()
        if queue.tries == 1:  # once per trouble: an hour of it, and then a day, are logged by the bookkeeping
            _log.warning(f"{self.subject}.postponed", **entry.names, destination=self.destination, error=delivery.error)
        await self.outbox.mark_failed(entry.id, delivery.error, at=now, next_at=now + round(seconds * 1000))
        await self.sleep(seconds)
