"""The metrics in Prometheus' text format. Imported at the first scrape, since the library takes a few megabytes.

`config/prometheus-alerts.yml` and `config/grafana-dashboard.json` use the same names; a test compares the three."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from daemon.api.box import BoxFigures
from daemon.core.clock import machine_millis
from daemon.core.delivery import Backlog
from daemon.core.ledger.deferred import DeferredBacklog
from daemon.usecases.worker.attempts import Histogram
from daemon.usecases.worker.machine_worker import MachineWorker

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()
BOOK = ("nim", "mode")
OUTCOMES = ("certified", "refused", "abandoned", "not_sent", "disputed")


class SeenMachine(msgspec.Struct, frozen=True):
    """One book of a scrape. `outage_since`: start of its outage (ms), 0 for none; `line`: None without one."""

    worker: MachineWorker
    deferred: DeferredBacklog
    outage_since: int
    line: Mapping[str, int] | None

    @property
    def book(self) -> list[str]:
        return [self.worker.book.nim, self.worker.book.mode]


class Seen(msgspec.Struct, frozen=True):
    """What the key may see of one scrape. `now` in ms; `retired`: deferred sales of retired machines."""

    now: int
    version: str
    machines: Sequence[SeenMachine]
    retired: Sequence[SeenMachine]
    box: BoxFigures | None


def _since(then: int | None, now: int) -> float | None:
    return None if then is None else max(0, now - then) / 1000


def _silence(seen: SeenMachine, now: int) -> float | None:
    link = seen.worker.server_link
    return None if link is None else _since(machine_millis(link.last_contact), now)


def _unsent(seen: SeenMachine, _: int) -> int | None:
    link = seen.worker.server_link
    return None if link is None else max(0, link.documents - link.acknowledged)


GAUGES: Final[Mapping[str, tuple[str, Callable[[SeenMachine, int], float | None]]]] = {
    "mcfd_queue_length": ("Requests at the machine and waiting for it.", lambda seen, _: seen.worker.waiting),
    "mcfd_machine_connected": ("Whether the machine answers.", lambda seen, _: seen.worker.connected),
    "mcfd_machine_attention": (
        "Whether an operator has something to settle before anything is certified (mcfd machine settle).",
        lambda seen, _: bool(seen.worker.obstacle),
    ),
    "mcfd_machine_test_mode": (
        "Whether the machine's codes begin with TESTFACT: what it certifies has no fiscal value.",
        lambda seen, _: seen.worker.in_test_mode,
    ),
    "mcfd_clock_drift_seconds": (
        "By how much the box is ahead of the machine's clock.",
        lambda seen, _: seen.worker.time.drift,
    ),
    "mcfd_tax_server_silence_seconds": (
        "Time since the machine last reached the tax server; from 7 days (604800) on the user is warned daily.",
        _silence,
    ),
    "mcfd_tax_server_waiting": (
        "Transactions in the machine that the tax server has not acknowledged.",
        _unsent,
    ),
    "mcfd_deferred_oldest_seconds": (
        "Age of the oldest sale that waits for its certification, counted from the sale, 0 for none; the law leaves 48 hours (172800).",
        lambda seen, now: _since(seen.deferred.oldest_at or now, now),
    ),
    "mcfd_outage_seconds": (
        "For how long the machine cannot certify, as the register of outages has it; 0 while it can.",
        lambda seen, now: _since(seen.outage_since or now, now),
    ),
}
"""Metrics of each book; a value of None is left out."""
OF_RETIRED: Final = "mcfd_deferred_oldest_seconds"

LINE_COUNTERS: Final = {
    "exchanges": "Commands sent to the machine.",
    "retries": "Frames sent again, after a NAK, silence or garbage.",
    "garbage": "Times that something else than a frame came from the line.",
    "stale": "Replies that came too late and were dropped.",
    "bytes_sent": "Bytes sent to the machine.",
    "bytes_received": "Bytes received from the machine.",
}

OUTBOX_GAUGES: Final[Mapping[str, tuple[str, Callable[[Backlog, int], float]]]] = {
    "mcfd_outbox_waiting": ("Closures and events still to be delivered.", lambda backlog, _: backlog.waiting),
    "mcfd_outbox_parked": (
        "Refused for good by the receiver (mcfd upstream replay).",
        lambda backlog, _: backlog.parked,
    ),
    "mcfd_outbox_oldest_seconds": (
        "Age of the oldest that waits.",
        lambda backlog, now: (now - backlog.oldest_at) / 1000 if backlog.waiting else 0,
    ),
}


def exposition(seen: Seen) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(seen))
    ProcessCollector(namespace="mcfd", registry=registry)
    text: bytes = generate_latest(registry)
    return text


class _Collector(Collector):
    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        seen = self._seen
        build = GaugeMetricFamily("mcfd_build_info", "Version of mcfd; always 1.", labels=["version"])
        build.add_metric([seen.version], 1)
        yield build
        yield from _certifications(seen.machines)
        timed = [(each, each.worker.now()) for each in (*seen.machines, *seen.retired)]
        for name, (text, value) in GAUGES.items():
            gauge = GaugeMetricFamily(name, text, labels=BOOK)
            for each, now in timed if name == OF_RETIRED else timed[: len(seen.machines)]:
                if (figure := value(each, now)) is not None:
                    gauge.add_metric(each.book, figure)
            yield gauge
        for name, text in LINE_COUNTERS.items():
            counter = CounterMetricFamily(f"mcfd_line_{name}", text, labels=BOOK)
            for each in seen.machines:
                if each.line is not None:
                    counter.add_metric(each.book, each.line[name])
            yield counter
        if seen.box is not None:
            yield from _outbox(seen.box, seen.now)
            yield from _box(seen.box)


def _certifications(machines: Sequence[SeenMachine]) -> Iterator[Metric]:
    ended = CounterMetricFamily(
        "mcfd_certifications",
        "Attempts that ended since the start, by outcome: certified, refused by the machine, abandoned on the line, not sent "
        "(no machine, or patience ended), disputed (an operator settles it).",
        labels=[*BOOK, "outcome"],
    )
    line = HistogramMetricFamily("mcfd_line_seconds", "Time of a certification at the machine.", labels=BOOK)
    total = HistogramMetricFamily(
        "mcfd_certification_seconds", "From the arrival of a request to its durable certification.", labels=BOOK
    )
    for each in machines:
        statistics = each.worker.statistics
        for outcome in OUTCOMES:
            ended.add_metric([*each.book, outcome], statistics.outcomes[outcome])
        _add(line, each, statistics.line)
        _add(total, each, statistics.total)
    yield from (ended, line, total)


def _add(family: HistogramMetricFamily, seen: SeenMachine, histogram: Histogram) -> None:
    bounds = [*(str(bound) for bound in histogram.bounds), "+Inf"]
    counts = accumulate(histogram.counts)
    family.add_metric(seen.book, list(zip(bounds, counts, strict=True)), sum_value=histogram.total)


def _outbox(box: BoxFigures, now: int) -> Iterator[Metric]:
    for name, (text, value) in OUTBOX_GAUGES.items():
        gauge = GaugeMetricFamily(name, text, labels=["destination", *BOOK])
        for destination, backlogs in box.outbox.items():
            for backlog in backlogs:
                gauge.add_metric([destination, backlog.nim, backlog.mode], value(backlog, now))
        yield gauge


def _box(box: BoxFigures) -> Iterator[Metric]:
    yield GaugeMetricFamily("mcfd_disk_free_bytes", "Room left on the ledger's file system.", value=box.disk_free_bytes)
    yield GaugeMetricFamily("mcfd_ledger_bytes", "Size of the ledger, with its log.", value=box.ledger_bytes)
    yield CounterMetricFamily("mcfd_ledger_commits", "Commits to the ledger; each is one fsync.", value=box.commits)
    yield GaugeMetricFamily(
        "mcfd_ledger_damaged", "What is known to be damaged in the ledger (mcfd verify names it).", value=box.damaged
    )
    if box.verified_at:
        yield GaugeMetricFamily(
            "mcfd_verified_timestamp_seconds",
            "When mcfd verify last found chain, totals and closures sound.",
            value=box.verified_at / 1000,
        )
