"""One book on its way to one receiver: the same for closures upstream and for events to a webhook."""

from __future__ import annotations

import asyncio

import structlog

from daemon.core.delivery import Backlog
from daemon.core.ledger.attempt import Mode

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
        self._told = 0

    @property
    def names(self) -> dict[str, str]:
        """For the log."""
        return {"nim": self.nim, "mode": self.mode, "destination": self.destination}

    def say_if_behind(self, backlog: Backlog, now: int, subject: str) -> None:
        age = now - backlog.oldest_at if backlog.waiting else 0
        behind = (age >= HOUR_MS) + (age >= DAY_MS)
        if behind > self._told:
            _log.error(
                f"{subject}s_behind",
                **self.names,
                waiting=backlog.waiting,
                oldest_hours=age // HOUR_MS,
                error=backlog.last_error,
            )
        self._told = behind
