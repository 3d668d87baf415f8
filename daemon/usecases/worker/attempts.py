"""The attempts of one machine that have not ended, each in its phase, and what is known of the machine beside them.

The one owner of that state: a phase changes in `step` alone, by the table of `core.ledger.phases`, and everybody else asks here. Nothing of
it is durable: after a crash it is read back from the ledger, where whatever is begun is in doubt.

What is counted of a worker since the daemon started, for monitoring (`GET /metrics`)."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from common.language.reasons import PREVIOUS_NOT_STORED
from daemon.core.errors import StorageFull
from daemon.core.invoice.number import number_key
from daemon.core.ledger.attempt import Record, was_not_sent
from daemon.core.ledger.book import BookState
from daemon.core.ledger.phases import TABLE, Phase, Step, after
from daemon.core.machine.state import FiscalCounters

NO_COUNTERS = FiscalCounters(0, 0, 0)

STALL = 5.0
"""Seconds that a disk may take for what is on its way to it, a card that tidies itself up for instance, before a sale is refused for it."""
SECONDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 90.0)
"""Upper bounds, included: around what a line of 115 200 bit/s takes, and up to a credit note's minute."""


class LiveAttempt:
    """One request, from its arrival on: the Idempotency-Key under which it runs, the number of its invoice once it is taken, its phase from
    then on, and its `id` once its intent is durable. A closure or a movement of cash has a key and no number."""

    __slots__ = ("done", "fingerprint", "id", "news", "number", "phase")

    def __init__(
        self, number: str = "", phase: Phase = Phase.ENDED, attempt_id: int = 0, fingerprint: bytes = b""
    ) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.phase = phase
        self.id = attempt_id
        self.fingerprint = fingerprint
        self.news: asyncio.Future[None] = loop.create_future()
        """Resolved when there is something new to see of it, and then another one."""
        self.done: asyncio.Future[None] = loop.create_future()
        """Resolved when its key stands for it no more."""

    def wake(self) -> None:
        if not self.news.done():
            self.news.set_result(None)
        if self.phase is not Phase.ENDED:
            self.news = self.news.get_loop().create_future()


class Attempts:
    """At most one for each invoice number: a request with the number of one that is under way waits for its end."""

    def __init__(self) -> None:
        self.counters = NO_COUNTERS
        """The machine's counters after all that it certified for us, as far as this process knows; the ledger may be one commit behind."""
        self.attention = ""
        self.is_restored = False
        """An older copy was put back, and not compared with the machine yet: what is begun in it is of another time."""
        self.met_machine = False
        """Whether this process has reconciled with the machine once (a ledger that is behind can only show before that)."""
        self._live: dict[str, LiveAttempt] = {}
        """By the one spelling of equal numbers."""
        self._keys: dict[bytes, LiveAttempt] = {}
        """Those that have one, by the hash of their Idempotency-Key, until they have ended."""

    # -- asking -------------------------------------------------------------------------------------------------------

    def find(self, number: str) -> LiveAttempt | None:
        return self._live.get(number_key(number))

    def of_key(self, key_hash: bytes) -> LiveAttempt | None:
        return self._keys.get(key_hash)

    def is_ours(self, record: Record) -> bool:
        """Whether this process brings it to its end; `recover` leaves it alone, also while its intent is being committed."""
        live = self.find(record.number)
        return live is not None and TABLE[live.phase].ours and live.id in (0, record.id)

    @property
    def ending(self) -> bool:
        """Whether something that ended is not durable yet."""
        return any(live.phase is Phase.ENDING for live in self._live.values())

    async def all_durable(self, patience: float = STALL) -> None:
        """Waits until no end is on its way to the disk; StorageFull when that takes longer than `patience` seconds."""
        await self._wait(lambda: [live for live in self._live.values() if live.phase is Phase.ENDING], patience)

    def is_way_free(self, mine: LiveAttempt) -> bool:
        """Whether no attempt but `mine` may have been certified without the ledger having it: a machine remembers only its last invoice, so no
        38h is sent before."""
        return not self._before(mine)

    async def way_free(self, mine: LiveAttempt, patience: float = STALL) -> None:
        """Waits until it is; StorageFull when that takes longer than `patience` seconds."""
        await self._wait(lambda: self._before(mine), patience)

    def _before(self, mine: LiveAttempt) -> list[LiveAttempt]:
        return [live for live in self._live.values() if live is not mine and TABLE[live.phase].blocks]

    async def _wait(self, before: Callable[[], Iterable[LiveAttempt]], patience: float) -> None:
        deadline = asyncio.get_running_loop().time() + patience
        while waited := [live.news for live in before()]:
            timeout = deadline - asyncio.get_running_loop().time()
            if timeout <= 0:
                raise StorageFull(PREVIOUS_NOT_STORED)
            await asyncio.wait(waited, timeout=timeout)

    # -- what happens -------------------------------------------------------------------------------------------------

    def claim_key(self, key_hash: bytes, fingerprint: bytes) -> LiveAttempt:
        """The key stands for this request until `release_key`; no other request has it (`of_key`)."""
        live = self._keys[key_hash] = LiveAttempt(fingerprint=fingerprint)
        return live

    def release_key(self, key_hash: bytes) -> None:
        self._keys.pop(key_hash).done.set_result(None)

    def intend(self, number: str, key_hash: bytes = b"") -> LiveAttempt:
        """The number is taken from here on by the request of that key, or by one without; no other request has it (`find`)."""
        live = self._keys.get(key_hash)
        if live is None or live.number:  # as of one whose number another sale was given meanwhile
            live = LiveAttempt()
        live.number, live.phase = number, Phase.INTENDING
        self._live[number_key(number)] = live
        return live

    def doubt(self, record: Record) -> LiveAttempt:
        """One that is begun in the ledger, and of which this process knows nothing else."""
        live = self.find(record.number)
        if live is None:
            live = self._live[number_key(record.number)] = LiveAttempt(record.number, Phase.IN_DOUBT, record.id)
        return live

    def step(self, live: LiveAttempt, step: Step) -> None:
        """NotInTheTable, and nothing changed, when that cannot be."""
        live.phase = after(live.phase, step)
        if live.phase is Phase.ENDED and self.find(live.number) is live:
            del self._live[number_key(live.number)]
        live.wake()

    def settle(self, records: Iterable[Record]) -> None:
        """The ledger has the end of those that were in doubt, or says that an operator has to tell."""
        for record in records:
            live = self.find(record.number)
            if live is not None and live.phase is Phase.IN_DOUBT:
                self.step(live, Step.SETTLED)

    def keep_doubts(self, unfinished: Iterable[Record]) -> None:
        """Of those in doubt only these are not ended in the ledger: an operator has settled the others."""
        left = {record.id for record in unfinished}
        for live in [live for live in self._live.values() if live.phase is Phase.IN_DOUBT and live.id not in left]:
            self.step(live, Step.SETTLED)

    def wake(self) -> None:
        """A task that waits for news looks again: the daemon stops, or an operator is needed. No phase changes."""
        for live in self._live.values():
            live.wake()

    def forget(self) -> None:
        """The book is another one: what was in doubt belongs to the old one, and the machine is met for the first time again."""
        for live in [live for live in self._live.values() if live.phase is Phase.IN_DOUBT]:
            self.step(live, Step.SETTLED)
        self.met_machine = False

    def take(self, state: BookState) -> None:
        """What the ledger knows."""
        self.counters = state.counters or NO_COUNTERS
        self.attention = state.attention
        self.is_restored = state.is_restored


class Histogram:
    """`counts` has one entry more than `bounds`, for what is above them all; `total` is in seconds."""

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def note(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


class WorkerStatistics(msgspec.Struct):
    """`line` is the time at the machine, `total` from the request's arrival to the durable outcome; certified ones only."""

    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    line: Histogram = msgspec.field(default_factory=Histogram)
    total: Histogram = msgspec.field(default_factory=Histogram)

    def note(self, record: Record) -> None:
        """Of an attempt that has just ended."""
        self.outcomes["not_sent" if was_not_sent(record.reason) else record.state] += 1
        if record.state == "certified" and record.line_ms:  # else the outcome was read afterwards
            self.line.note(record.line_ms / 1000)
            self.total.note(record.duration_ms / 1000)
