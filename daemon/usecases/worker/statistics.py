"""What is counted of a worker since the daemon started, for whoever looks after boxes from afar (`GET /metrics`)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

import msgspec

from daemon.core.ledger.attempt import REASONS_NOT_SENT, Record

SECONDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 90.0)
"""Upper bounds, included: around what a line of 115 200 bit/s takes, and up to a credit note's minute."""


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
        self.outcomes["not_sent" if record.reason in REASONS_NOT_SENT else record.state] += 1
        if record.state == "certified" and record.line_ms:  # else the machine was asked afterwards
            self.line.note(record.line_ms / 1000)
            self.total.note(record.duration_ms / 1000)
