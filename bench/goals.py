"""The table's rows and what each has to reach."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Literal

Sense = Literal["≤", "≥"]


@dataclass(frozen=True)
class Goal:
    """Without a `limit` there is nothing to reach: the figure stands beside the others so that they can be read."""

    row: str
    what: str
    sense: Sense
    limit: float | None

    def __str__(self) -> str:
        return "–" if self.limit is None else f"{self.sense} {self.limit:,g}"

    def is_met(self, value: float) -> bool:
        compare = operator.le if self.sense == "≤" else operator.ge
        return self.limit is None or bool(compare(value, self.limit))


GOALS = {
    goal.row: goal
    for goal in (
        Goal("0a", "this box without mcfd: the frames of row 17a / their line time", "≤", None),
        Goal("0b", "this box without mcfd: the frames of row 17b / their line time", "≤", None),
        Goal("0c", "this box without mcfd: the frames of row 17c / their line time", "≤", None),
        Goal("1", "certify over HTTP, 1 item / its line time", "≤", 1.04),
        Goal("2", "certify over HTTP, 10 items / their line time", "≤", 1.015),
        Goal("3", "certify over HTTP, 100 items / their line time", "≤", 1.006),
        Goal("4", "backlog, 10 items, every fsync 20 ms slower / line time", "≤", 1.08),
        Goal("4b", "idle machine, 1 item, every fsync 20 ms slower: of so many an invoice notices", "≤", 1.15),
        Goal("4c", "idle machine, 1 item, every fsync 60 ms slower: of so many an invoice notices", "≤", 1.15),
        Goal("4d", "backlog, 10 items, every fsync 60 ms slower / line time", "≤", 1.1),
        Goal("5", "8 machines at once: the slowest one's rate / its rate alone", "≥", 0.95),
        Goal("6a", "fsyncs per certification, one till", "≤", 2.1),
        Goal("6b", "fsyncs per certification, 64 tills waiting", "≤", 0.5),
        Goal("7a", "certifications a second / FastAPI + SQLAlchemy, 1 client", "≥", 2),
        Goal("7b", "certifications a second / FastAPI + SQLAlchemy, 64 clients", "≥", 4),
        Goal("8", "X, 100 000 certifications in the period: summing / ours", "≥", 1000),
        Goal("9a", "A over 31 days: summing / ours", "≥", 50),
        Goal("9b", "A over the whole ledger: summing / ours", "≥", 100),
        Goal("10", "Z, 100 000 certifications in the period / 10", "≤", 1.5),
        Goal("11a", "bytes on disk per 10-item certification, with indexes", "≤", 1100),
        Goal("11b", "KB written to the device per certification", "≤", 80),
        Goal("12a", "MB resident after 10 000 certifications", "≤", 80),
        Goal("12b", "MB resident on the large ledger", "≤", 80),
        Goal("12c", "seconds from start to ready on the large ledger", "≤", 0.4),
        Goal("13a", "certify, upstream dead / alive", "≤", 1.02),
        Goal("13b", "Z, upstream dead / alive", "≤", 1.02),
        Goal("14a", "ms of the page's Today on a million invoices", "≤", 100),
        Goal("14b", "KB of the page's first load", "≤", 150),
        Goal("14c", "certify while 8 people click through a million / calm, p99, in memory", "≤", 1.05),
        Goal("14d", "MB resident with the page in use on a million invoices", "≤", 96),
        Goal("14e", "ms of a search of the journal of a million", "≤", 1000),
        Goal("15a", "certify with the recorder / without, 1 item", "≤", 1.002),
        Goal("15b", "certify with the recorder / without, 10 items", "≤", 1.002),
        Goal("15c", "certify with the recorder / without, 100 items", "≤", 1.002),
        Goal("16a", "seconds to the first output of a command, the slowest one", "≤", 0.3),
        Goal("16b", "seconds of `mcfd keys list`", "≤", 0.2),
        Goal("17a", "certify for a walk-in customer, 1 item / its line time", "≤", 1.05),
        Goal("17b", "certify for a walk-in customer, 10 items / their line time", "≤", 1.02),
        Goal("17c", "certify for a walk-in customer, 100 items / their line time", "≤", 1.01),
        Goal("17d", "walk-in customer, 1 item, after a pause of 0.4 s / its line time", "≤", 1.06),
        Goal("18a", "the same on a core at a quarter of its speed, 1 item / its line time", "≤", 1.12),
        Goal("18b", "on a core at a quarter of its speed, 10 items / their line time", "≤", 1.05),
        Goal("18c", "on a core at a quarter of its speed, 100 items / their line time", "≤", 1.02),
        Goal("18d", "ms of processor time of a certification of 1 item", "≤", 3.5),
        Goal(
            "19",
            "16 machines at once, a journal of a million being read: the slowest one's rate / a rate alone",
            "≥",
            0.97,
        ),
    )
}
