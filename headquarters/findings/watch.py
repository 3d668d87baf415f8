"""Once a minute: who is late; once an hour: when each shop usually closes; and whoever has to hear of a finding hears of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

import structlog

from exchange.instants import instant_text
from headquarters.core.finding import Fact
from headquarters.core.lateness import LOOK_BACK, Habit, from_clock, learn, overdue_day
from headquarters.findings.tell import NotTold, Teller
from headquarters.store.database import StoreError
from headquarters.store.findings import Finding
from headquarters.store.store import Store
from headquarters.store.watching import Silent

log = structlog.get_logger(__name__)

LEARN_SECONDS = 3600.0
LEASE_MILLIS = 120_000


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds: between two looks, how old a finding is when others hear of it, and how long a box that has not closed may be
    silent."""

    every: float
    tell_after: float
    silent_after: float = 3600


class Watch:
    """Methods that block run on a thread; `run` is for ever."""

    def __init__(self, store: Store, zone: tzinfo, pace: Pace, tellers: Sequence[Teller]) -> None:
        self._store = store
        self._zone = zone
        self._pace = pace
        self._tellers = tellers
        self._learnt = float("-inf")

    async def run(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.look)
                await self.tell()
            except StoreError as error:
                log.warning("watch.postponed", reason=str(error))
            await asyncio.sleep(self._pace.every)

    def look(self, now: int | None = None) -> None:
        now = now if now is not None else time.time_ns() // 1_000_000
        if time.monotonic() - self._learnt > LEARN_SECONDS:
            self.learn(now)
            self._learnt = time.monotonic()
        late = {}
        for silent in self._store.watching.silent(now - int(self._pace.silent_after * 1000)):
            fact = self._late(silent, now)
            if fact is not None:
                late[silent.machine] = (silent.nim, fact)
        self._store.watching.settle_late(late, now)

    def learn(self, now: int) -> None:
        since = now - int(LOOK_BACK.total_seconds() * 1000)
        instants = self._store.figures.instants(since)
        habits = {machine: learn(found, self._zone, now) for machine, found in instants}
        self._store.watching.learnt({machine: habit for machine, habit in habits.items() if habit is not None})

    def _late(self, silent: Silent, now: int) -> Fact | None:
        habit = _habit(silent)
        day = overdue_day(habit, silent.closed_at, self._zone, now) if habit else None
        if day is None:
            return None
        if not silent.closed_at and not silent.heard_at:
            return Fact("late", "", {"what": "never", "day": day})
        return Fact("late", "", {"since": _since(silent.closed_at), "silent": _since(silent.heard_at), "day": day})

    async def tell(self, now: int | None = None) -> None:
        """A finding that could not be told to everybody is told again, to everybody, when its lease is over."""
        if not self._tellers:
            return
        now = now if now is not None else time.time_ns() // 1_000_000
        older = now - int(self._pace.tell_after * 1000)
        claim = self._store.findings.claim_untold
        findings: list[Finding] = await asyncio.to_thread(claim, older_than=older, now=now, lease=LEASE_MILLIS)
        if not findings:
            return
        try:
            for teller in self._tellers:
                await teller.tell(findings)
        except NotTold as error:
            log.warning("finding.not_told", reason=str(error), count=len(findings))
            return
        await asyncio.to_thread(self._store.findings.told, findings)


def _habit(silent: Silent) -> Habit | None:
    """As a person has set it, on the days that are known; else as learnt."""
    days = silent.usual_days or 0b1111111
    if silent.closes_at is not None:
        return Habit(from_clock(silent.closes_at), days)
    return Habit(silent.usual_at, days) if silent.usual_at is not None else None


def _since(at: int) -> str:
    return instant_text(at)[:16].replace("T", " ") if at else "–"
