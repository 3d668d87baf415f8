"""The rows of the bench, their limits, and the summary and output of measurements."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Sense = Literal["≤", "≥"]


@dataclass(frozen=True)
class Limit:
    """The limit of a row."""

    what: str
    sense: Sense
    value: float

    def is_reached(self, value: float) -> bool:
        return value <= self.value if self.sense == "≤" else value >= self.value

    def __str__(self) -> str:
        return f"{self.sense} {self.value:,g}"


LIMITS = {
    "sale": Limit("a sale over HTTP, durable / a bare blocking pyserial script", "≤", 1.08),
    "line-1": Limit("certify, walk-in customer, 1 item / its line time", "≤", 1.15),
    "line-10": Limit("certify, walk-in customer, 10 items / its line time", "≤", 1.07),
    "line-100": Limit("certify, walk-in customer, 100 items / its line time", "≤", 1.045),
    "tls-sale": Limit("the sale over HTTP through HAProxy with TLS / the pyserial script", "≤", 1.08),
    "tls-1": Limit("certify, 1 item, through HAProxy with TLS / without", "≤", 1.03),
    "tls-10": Limit("certify, 10 items, through HAProxy with TLS / without", "≤", 1.03),
    "tls-100": Limit("certify, 100 items, through HAProxy with TLS / without", "≤", 1.03),
    "processor": Limit("ms of processor time of a sale of 1 item", "≤", 6),
    "slow-disk": Limit("tills in a queue, 10 items, every sync 20 ms slower / line time", "≤", 1.08),
    "machines": Limit("8 machines at once: the slowest one's rate / a rate alone", "≥", 0.95),
    "syncs": Limit("syncs of the disk for a sale, one till", "≤", 2.1),
    "memory": Limit("MB resident after 10 000 sales", "≤", 80),
    "memory-pair": Limit("MB resident of daemon and HAProxy after 10 000 sales with TLS", "≤", 95),
    "start": Limit("seconds from start to ready on a million sales", "≤", 0.5),
    "reports": Limit("ms of the slowest of X, A and the closures on a million sales", "≤", 50),
    "memory-large": Limit("MB resident on a million sales, its page in use", "≤", 96),
    "today": Limit("ms of the page's Today on a million sales", "≤", 100),
    "first-load": Limit("KB of the page's first load, compressed", "≤", 90),
    "search": Limit("ms of a search in the journal of a million sales", "≤", 1000),
    "waiting": Limit("p99 of a sale while 10 000 that wait are worked off / without any", "≤", 1.05),
    "start-waiting": Limit("seconds that a start with 10 000 waiting sales takes longer", "≤", 1),
    "upstream": Limit("certify, headquarters dead / alive", "≤", 1.02),
    "command": Limit("seconds to the first output of `mcfd keys list`", "≤", 0.2),
    "relay": Limit("ms that the relay adds to an answer, p50, without network", "≤", 3),
    "relay-rate": Limit("calls that the relay passes on in a second of its processor", "≥", 1500),
    "relay-idle": Limit("MB of nats-server for 10 000 boxes that listen", "≤", 1000),
    "hq": Limit("closures a second that headquarters stores in PostgreSQL", "≥", 150),
}
"""In the order of the output."""


@dataclass(frozen=True)
class Row:
    """One row of the table. `value` is None if it could not be measured on this box; `note` has the reason."""

    row: str
    value: float | None
    note: str

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        return "pass" if LIMITS[self.row].is_reached(self.value) else "MISS"


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank: of a hundred values, the p99 is the 99th."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def milliseconds(seconds: float) -> str:
    """Readable from microseconds to minutes."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def significant(value: float) -> str:
    """Three digits."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 10 else f"{value:.3f}"


def table(rows: Sequence[Row]) -> str:
    lines = [("row", "what", "limit", "value", "", "how")]
    for row in rows:
        limit = LIMITS[row.row]
        value = "–" if row.value is None else significant(row.value)
        lines.append((row.row, limit.what, str(limit), value, row.verdict, row.note))
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[5]]).rstrip()
        for line in lines
    )
