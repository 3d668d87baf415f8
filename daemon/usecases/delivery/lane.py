"""One book on its way to one receiver: the same for closures upstream and for events to a webhook; and how long it waits before the next try."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import structlog

from common.language.reasons import from_stored
from daemon.core.delivery import Backlog
from daemon.core.ledger.attempt import Mode

LONGEST_RETRY_AFTER = 86_400.0
"""Seconds: a receiver may ask for a day; more is taken for a mistake."""
WIDEST_SPREAD = 3_600.0
MOST_DOUBLINGS = 1000
"""A float ends soon after."""

_dice = random.SystemRandom().random  # each box for itself


class Backoff:
    """Exponential with full jitter, at most `most` seconds. What the receiver asks for is honoured even beyond that, and the jitter
    comes on top: up to as much again, an hour at the most."""

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
        ceiling = min(self._most, self._first * 2.0 ** min(tries - 1, MOST_DOUBLINGS))
        minimum = min(retry_after or 0.0, LONGEST_RETRY_AFTER)
        return minimum + self._dice() * max(min(minimum, WIDEST_SPREAD), ceiling)


HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

_log = structlog.get_logger(__name__)


class Lane:
    """What wakes it, its failures in a row, and how far behind the logs have said it is."""

    def __init__(self, nim: str, mode: Mode, destination: str) -> None:
        self.nim = nim
        self.mode = mode
        self.destination = destination
        self.news = asyncio.Event()
        self.tries = 0
        self.has_delivered = False
        """Since what was refused was last offered again."""
        self.has_begun = False
        self._last_report = 0

    @property
    def names(self) -> dict[str, str]:
        """For the log."""
        return {"nim": self.nim, "mode": self.mode, "destination": self.destination}

    def say_if_behind(self, backlog: Backlog, now: int, subject: str) -> None:
        age = now - backlog.oldest_at if backlog.waiting else 0
        behind = (age >= HOUR_MS) + (age >= DAY_MS)
        if behind > self._last_report:
            _log.error(
                f"{subject}.behind",
                **self.names,
                waiting=backlog.waiting,
                oldest_hours=age // HOUR_MS,
                error=str(from_stored(backlog.last_error)),
            )
        self._last_report = behind
