"""The open attempts of one machine, each with its phase, and the machine's known counters.

This is the one owner of that state: a phase changes only in `step`, by the table of `core.ledger.phases`. Nothing here
is durable: after a crash it is read from the ledger, where every begun attempt is in doubt.

Also the statistics of a worker since the daemon's start (`GET /metrics`)."""

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
from daemon.core.machine.state import NO_COUNTERS

STALL = 5.0
"""Seconds that a write may take, for example during an SD card's own upkeep, before a sale is refused for it."""
SECONDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 90.0)
"""Upper bounds of the histogram, inclusive: from a sale at 115 200 bit/s to a credit note's minute."""


class LiveAttempt:
    """One request: its Idempotency-Key, its invoice number once reserved, its phase from then on, and its `id` once the
    intent is durable. A closure or a cash movement has a key and no number."""

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
        """Resolved at each change; then replaced by a new one."""
        self.done: asyncio.Future[None] = loop.create_future()
        """Resolved when its key is released."""

    def wake(self) -> None:
        if not self.news.done():
            self.news.set_result(None)
        if self.phase is not Phase.ENDED:
            self.news = self.news.get_loop().create_future()


class Attempts:
    """At most one attempt for each invoice number: another request with that number waits for its end."""

    def __init__(self) -> None:
        self.counters = NO_COUNTERS
        """The machine's counters after our last certification; the ledger may be one commit behind."""
        self.attention = ""
        self.is_restored = False
        """The ledger was restored and not compared with the machine yet: its begun attempts are out of date."""
        self.met_machine = False
        """Whether this process has reconciled with the machine; only before that can a ledger prove to be behind."""
        self.keys: dict[bytes, LiveAttempt] = {}
        """By the hash of the Idempotency-Key, until the request has ended; one for a machine and its spare."""
        self._live: dict[str, LiveAttempt] = {}
        """By `number_key`, one for all spellings of a number."""

    # -- asking -------------------------------------------------------------------------------------------------------

    def find(self, number: str) -> LiveAttempt | None:
        return self._live.get(number_key(number))

    def of_key(self, key_hash: bytes) -> LiveAttempt | None:
        return self.keys.get(key_hash)

    def is_ours(self, record: Record) -> bool:
        """Whether this process will end that attempt itself, so that `recover` does not."""
        live = self.find(record.number)
        return live is not None and TABLE[live.phase].ours and live.id in (0, record.id)

    @property
    def ending(self) -> bool:
        """Whether an end is not durable yet."""
        return any(live.phase is Phase.ENDING for live in self._live.values())

    async def all_durable(self, patience: float = STALL) -> None:
        """Waits until every end is durable; StorageFull after `patience` seconds."""
        await self._wait(lambda: [live for live in self._live.values() if live.phase is Phase.ENDING], patience)

    def is_way_free(self, mine: LiveAttempt) -> bool:
        """Whether no other attempt may be certified and not durable. A machine remembers only its last invoice, so
        `mine` must not send 38h before that."""
        return not self._before(mine)

    async def way_free(self, mine: LiveAttempt, patience: float = STALL) -> None:
        """Waits for `is_way_free`; StorageFull after `patience` seconds."""
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
        """Reserves the key for this request until `release_key`."""
        live = self.keys[key_hash] = LiveAttempt(fingerprint=fingerprint)
        return live

    def release_key(self, key_hash: bytes) -> None:
        self.keys.pop(key_hash).done.set_result(None)

    def intend(self, number: str, key_hash: bytes = b"") -> LiveAttempt:
        """Reserves the number for the request of that key, or for one without a key."""
        live = self.keys.get(key_hash)
        if live is None or live.number:  # its earlier number was given to another sale
            live = LiveAttempt()
        live.number, live.phase = number, Phase.INTENDING
        self._live[number_key(number)] = live
        return live

    def doubt(self, record: Record) -> LiveAttempt:
        """The live attempt of a begun record; a new one, in doubt, if this process does not know it."""
        live = self.find(record.number)
        if live is None:
            live = self._live[number_key(record.number)] = LiveAttempt(record.number, Phase.IN_DOUBT, record.id)
        return live

    def step(self, live: LiveAttempt, step: Step) -> None:
        """Changes the phase; NotInTheTable, and no change, if the table does not have that step."""
        live.phase = after(live.phase, step)
        if live.phase is Phase.ENDED and self.find(live.number) is live:
            del self._live[number_key(live.number)]
        live.wake()

    def settle(self, records: Iterable[Record]) -> None:
        """The doubts of these records are over: the ledger has their end, or an operator decides."""
        for record in records:
            live = self.find(record.number)
            if live is not None and live.phase is Phase.IN_DOUBT:
                self.step(live, Step.SETTLED)

    def limit_doubts(self, unfinished: Iterable[Record]) -> None:
        """Only these doubts are still open in the ledger: an operator has settled the others."""
        left = {record.id for record in unfinished}
        for live in [live for live in self._live.values() if live.phase is Phase.IN_DOUBT and live.id not in left]:
            self.step(live, Step.SETTLED)

    def wake(self) -> None:
        """Wakes all tasks that wait for news: the daemon stops, or an operator is needed. No phase changes."""
        for live in self._live.values():
            live.wake()

    def forget(self) -> None:
        """After a change of book: doubts belong to the former one, and the machine counts as never connected."""
        self.limit_doubts(())
        self.met_machine = False

    def apply(self, state: BookState) -> None:
        """Takes counters, attention and `is_restored` from the ledger's state."""
        self.counters = state.counters or NO_COUNTERS
        self.attention = state.attention
        self.is_restored = state.is_restored


class Histogram:
    """`counts` has one entry more than `bounds`, for values above the last bound; `total` is in seconds."""

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def note(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


class WorkerStatistics(msgspec.Struct):
    """Of certified attempts: `line` is the time at the machine, `total` from the request to the durable outcome."""

    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    line: Histogram = msgspec.field(default_factory=Histogram)
    total: Histogram = msgspec.field(default_factory=Histogram)

    def note(self, record: Record) -> None:
        """Counts an attempt that has just ended."""
        self.outcomes["not_sent" if was_not_sent(record.reason) else record.state] += 1
        if record.state == "certified" and record.line_ms:  # 0 if recovery found the outcome
            self.line.note(record.line_ms / 1000)
            self.total.note(record.duration_ms / 1000)
