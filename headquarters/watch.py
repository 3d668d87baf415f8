"""Periodic work: late shops each minute, usual closing times each hour, and the notifications of each receiver."""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import tzinfo

import structlog

from common.language import Language
from common.wire.instants import instant_text, now_millis
from headquarters.core.lateness import EVERY_DAY, LOOK_BACK, Habit, from_clock, learn, overdue_day
from headquarters.core.reception import day_of
from headquarters.core.wording import NEVER, Fact
from headquarters.notifiers import Findings, NotificationFailed, Notifier
from headquarters.store.database import StoreError
from headquarters.store.findings import Silent, StoredFinding
from headquarters.store.store import HqStore

log = structlog.get_logger(__name__)

LEARN_SECONDS = 3600.0
LEASE_MILLIS = 120_000
"""Longer than any notifier takes for one call."""
AGAIN_MILLIS = 60_000
NO_HABIT_MILLIS = 2 * 86_400_000
"""A shop without a usual closing time is late after this time without any sign of it, if there ever was a presence."""
FAILURES = 3
"""Consecutive failures of a receiver, after which the rest waits for the next run."""


class Watch:
    """`run` runs until cancelled, blocking work on threads."""

    def __init__(self, store: HqStore, zone: tzinfo, options: Findings, language: Language = "fr") -> None:
        """`language` of mails."""
        self._store = store
        self._zone = zone
        self._options = options
        self._language: Language = language
        self._notifiers: list[Notifier] = [*options.webhook, *([options.mail] if options.mail else [])]
        self._learnt = float("-inf")

    async def run(self) -> None:
        """A slow receiver delays no check and no other receiver."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(functools.partial(asyncio.to_thread, self.check)))
            for notifier in self._notifiers:
                group.create_task(self._repeat(functools.partial(self._notify, notifier)))

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except StoreError as error:
                log.warning("watch.postponed", reason=str(error))
            except Exception:  # whatever it is, the others go on, and this again at the next look
                log.exception("watch.failed")
            await asyncio.sleep(self._options.look_every)

    def check(self, now: int | None = None) -> None:
        now = now if now is not None else now_millis()
        if time.monotonic() - self._learnt > LEARN_SECONDS:
            self.learn(now)
            self._learnt = time.monotonic()
        silent = self._store.watching.silent(now - int(self._options.silent_after * 1000), now)
        facts = {each.machine: self._late(each, now) for each in silent}
        self._store.watching.settle_late({machine: fact for machine, fact in facts.items() if fact}, now)

    def learn(self, now: int) -> None:
        since = now - int(LOOK_BACK.total_seconds() * 1000)
        instants = self._store.figures.instants(since)
        habits = {machine: learn(found, self._zone, now) for machine, found in instants}
        self._store.watching.learnt({machine: habit for machine, habit in habits.items() if habit is not None})

    def _late(self, silent: Silent, now: int) -> Fact | None:
        habit, last_sign = _habit(silent), max(silent.closed_at, silent.heard_at)
        day = overdue_day(habit, silent.closed_at, self._zone, now) if habit else None
        if habit is None and silent.heard_at and now - last_sign > NO_HABIT_MILLIS:
            day = day_of(last_sign, self._zone)
        if day is None:
            return None
        if not silent.closed_at and not silent.heard_at:
            return Fact("late", "", {"what": "never", "day": day})
        return Fact("late", "", {"since": _since(silent.closed_at), "silent": _since(silent.heard_at), "day": day})

    async def notify(self, now: int | None = None) -> None:
        """One run of each notifier; after a failure its findings are sent again later."""
        await asyncio.gather(*(self._notify(notifier, now) for notifier in self._notifiers))

    async def _notify(self, notifier: Notifier, at: int | None = None) -> None:
        """Sends the findings, worst kind first, until none is left or the receiver does not answer."""
        store, failures = self._store.findings, 0
        while failures < FAILURES:
            now = at if at is not None else now_millis()
            findings: list[StoredFinding] = await asyncio.to_thread(
                store.claim_notifications,
                older_than=now - int(self._options.tell_after * 1000),
                now=now,
                lease=LEASE_MILLIS,
                limit=notifier.at_once,
                notifier=notifier.name,
            )
            if not findings:
                return
            error = await _failure_of(notifier, findings, self._language)
            if error is None:
                failures = 0
                await asyncio.to_thread(store.mark_notified, findings, notifier.name)
            else:
                log.warning("finding.not_told", reason=str(error), count=len(findings))
                failures = 0 if error.is_listening else failures + 1
                again = functools.partial(store.postpone, now=now, again=AGAIN_MILLIS, is_refused=error.is_refused)
                await asyncio.to_thread(again, findings, notifier.name)


async def _failure_of(
    notifier: Notifier, findings: Sequence[StoredFinding], language: Language
) -> NotificationFailed | None:
    """None if they were sent."""
    try:
        await notifier.notify(findings, language)
    except NotificationFailed as error:
        return error
    except Exception as error:  # of a library, or a file that is no text
        log.exception("finding.teller_failed", notifier=notifier.name)
        return NotificationFailed(f"{notifier.name}: {type(error).__name__}")
    return None


def _habit(silent: Silent) -> Habit | None:
    """As set by a person, on the learnt days; otherwise as learnt."""
    minute = silent.usual_at if silent.closes_at is None else from_clock(silent.closes_at)
    return None if minute is None else Habit(minute, silent.usual_days or EVERY_DAY)


def _since(at: int) -> str:
    return instant_text(at)[:16].replace("T", " ") if at else NEVER
