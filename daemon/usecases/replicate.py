"""Every closure reaches headquarters, in the order of its book, however long the line is down.

Nothing here is asked by a certification or a Z, and nothing here holds what they need: a closure and its
outbox row are one transaction, and this use case only reads that row later, sends it, and writes down what
became of it. Each book (one NIM in one mode) has a task of its own: one machine's trouble is nobody else's.
A crash between the delivery and its note in the outbox sends the closure once more; the receiver knows it by
its report_id.

Events go to webhooks the same way (`usecases.notices`), each webhook from a lane of its own.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Protocol, TypeVar

import structlog

from daemon.core.certification import Mode
from daemon.core.delivery import Again, Backlog, Delivered, Delivery, Refused
from daemon.usecases.ports import Clock

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LONGEST_RETRY_AFTER = 86_400.0  # a receiver may ask for a day; more is taken for a mistake
SUBJECT = "closure"
BATCH = 50
BOOKKEEPING = 30.0

_dice = random.SystemRandom().random  # each box for itself, so that a chain of shops does not come back as one
_log = structlog.get_logger(__name__)


class Entry(Protocol):
    """One row of the outbox; `names` are for the log."""

    @property
    def id(self) -> int: ...
    @property
    def nim(self) -> str: ...
    @property
    def report_id(self) -> str: ...
    @property
    def names(self) -> dict[str, str | int]: ...


E = TypeVar("E", bound=Entry)
E_co = TypeVar("E_co", bound=Entry, covariant=True)


class Outbox(Protocol[E_co]):
    """The store, as this use case sees it; every method that writes is one transaction."""

    async def backlog(self) -> Sequence[Backlog]:
        """One entry for each book that ever had a closure to send."""
        ...

    async def waiting(self, nim: str, mode: Mode, limit: int) -> Sequence[E_co]:
        """Neither sent nor parked, by z_number."""
        ...

    async def mark_sent(self, outgoing_id: int, *, at: int) -> None: ...

    async def mark_failed(self, outgoing_id: int, error: str, *, at: int, next_at: int) -> None:
        """Still waiting; when the next try is due is for people only."""
        ...

    async def park(self, outgoing_id: int, error: str, *, at: int) -> None: ...


class Receiver(Protocol):
    """Headquarters. `deliver` ends in bounded time and does not raise for anything the other side can do.

    `subject` says what the event is about, as `closure`; `report_id` is what the receiver deduplicates by.
    """

    async def deliver(self, event: bytes, *, report_id: str, subject: str, nim: str) -> Delivery: ...
    async def aclose(self) -> None: ...


class Backoff:
    """How long to wait before the next try: exponential with full jitter, at most `most` seconds. What the
    receiver asks for is honoured even beyond that.
    """

    def __init__(
        self,
        *,
        first: float = 1.0,
        most: float = 300.0,
        dice: Callable[[], float] = _dice,
    ) -> None:
        self._first = first
        self._most = most
        self._dice = dice

    def wait(self, tries: int, retry_after: float | None = None) -> float:
        """Seconds after the `tries`-th failure in a row, counted from 1."""
        ceiling = min(self._most, self._first * 2.0 ** min(tries - 1, 32))
        jittered = self._dice() * ceiling
        return max(jittered, min(retry_after or 0.0, LONGEST_RETRY_AFTER))


class Replicator(Generic[E]):
    """`run` until cancelled; `wake` when a closure (or whatever `subject` is) has been stored."""

    def __init__(
        self,
        outbox: Outbox[E],
        receiver: Receiver,
        compose: Callable[[E], bytes],
        *,
        clock: Clock,
        backoff: Backoff | None = None,
        subject: str = SUBJECT,
        sandbox: bool = False,
        poll: float = 5.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._outbox = outbox
        self._receiver = receiver
        self._compose = compose
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._subject = subject
        self._sandbox = sandbox
        self._poll = poll
        self._sleep = sleep
        self._lanes: dict[tuple[str, Mode], _Lane] = {}
        self._unknown_book = asyncio.Event()

    def wake(self, nim: str, mode: Mode) -> None:
        lane = self._lanes.get((nim, mode))
        (lane.news if lane else self._unknown_book).set()

    async def run(self) -> None:
        """Give every book that has an outbox its lane, and say in the logs when one falls behind."""
        self._lanes = {}
        async with asyncio.TaskGroup() as lanes:
            while True:
                self._unknown_book.clear()
                for backlog in await self._read_backlog():
                    key = (backlog.nim, backlog.mode)
                    if key not in self._lanes:
                        self._lanes[key] = _Lane(backlog.nim, backlog.mode)
                        lanes.create_task(self._work(self._lanes[key]), name=f"replicate {backlog.nim} {backlog.mode}")
                    self._lanes[key].say_if_behind(backlog, self._clock(), self._subject)
                await _wait(self._unknown_book, BOOKKEEPING)

    async def _read_backlog(self) -> Sequence[Backlog]:
        try:
            backlogs = await self._outbox.backlog()
        except Exception as error:  # noqa: BLE001  # the store's trouble must not end replication; it is retried
            _log.warning("outbox_unreadable", error=str(error))
            return []
        return [b for b in backlogs if b.mode == "live" or self._sandbox]

    async def _work(self, lane: _Lane) -> None:
        while True:
            lane.news.clear()
            try:
                sent_all = await self._drain(lane)
            except Exception:  # noqa: BLE001  # logged and retried: the closure is safe in the outbox
                _log.exception("replication_failed", nim=lane.nim, mode=lane.mode)
                lane.tries += 1
                await self._sleep(self._backoff.wait(lane.tries))
                continue
            if sent_all:
                await _wait(lane.news, self._poll)

    async def _drain(self, lane: _Lane) -> bool:
        """Send what waits, in order, until one has to be tried again; True when nothing is left."""
        entries = await self._outbox.waiting(lane.nim, lane.mode, BATCH)
        for entry in entries:
            delivery = await self._deliver(entry)
            if isinstance(delivery, Again):
                await self._postpone(lane, entry, delivery)
                return False
            await self._settle(lane, entry, delivery)
        return not entries

    async def _deliver(self, entry: E) -> Delivery:
        try:
            event = self._compose(entry)
        except ValueError as error:  # a damaged row must not hold up the closures behind it
            return Refused(f"no event can be made of it: {error}")
        return await self._receiver.deliver(event, report_id=entry.report_id, subject=self._subject, nim=entry.nim)

    async def _settle(self, lane: _Lane, entry: E, delivery: Delivered | Refused) -> None:
        if isinstance(delivery, Refused):
            await self._outbox.park(entry.id, delivery.error, at=self._clock())
            _log.error(f"{self._subject}_parked", **entry.names, error=delivery.error)
        else:
            await self._outbox.mark_sent(entry.id, at=self._clock())
            _log.info(f"{self._subject}_delivered", **entry.names, tries=lane.tries + 1)
        lane.tries = 0

    async def _postpone(self, lane: _Lane, entry: E, delivery: Again) -> None:
        lane.tries += 1
        seconds = self._backoff.wait(lane.tries, delivery.retry_after)
        now = self._clock()
        if lane.tries == 1:  # once per trouble: an hour of it, and then a day, are told by the bookkeeping
            _log.warning(f"{self._subject}_postponed", **entry.names, error=delivery.error)
        await self._outbox.mark_failed(entry.id, delivery.error, at=now, next_at=now + round(seconds * 1000))
        await self._sleep(seconds)


class _Lane:
    """One book on its way: its bell, its failures in a row, and how far behind the logs have said it is."""

    def __init__(self, nim: str, mode: Mode) -> None:
        self.nim = nim
        self.mode = mode
        self.news = asyncio.Event()
        self.tries = 0
        self._told = 0

    def say_if_behind(self, backlog: Backlog, now: int, subject: str) -> None:
        age = now - backlog.oldest_at if backlog.waiting else 0
        behind = (age >= HOUR_MS) + (age >= DAY_MS)
        if behind > self._told:
            _log.error(
                f"{subject}s_behind",
                nim=self.nim,
                mode=self.mode,
                waiting=backlog.waiting,
                oldest_hours=age // HOUR_MS,
                error=backlog.last_error,
            )
        self._told = behind


async def _wait(bell: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        pass
