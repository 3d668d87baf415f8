"""The text that Prometheus reads. Imported at the first request: most boxes are never scraped, and the library takes
a few megabytes.

Every name that leaves here is in `config/prometheus-alerts.yml` and `config/grafana-dashboard.json` as it is here; a test
holds the three together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from daemon.api.box import BoxFigures, LineFigures
from daemon.core.clock import machine_millis
from daemon.core.ledger.deferred import DeferredBacklog
from daemon.usecases.worker.attempts import Histogram
from daemon.usecases.worker.machine_worker import MachineWorker

MEDIA_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()
BOOK = ("nim", "mode")
OUTCOMES = ("certified", "refused", "abandoned", "not_sent", "disputed")


class Seen(msgspec.Struct, frozen=True):
    """One scrape: what the key may see. `now` in ms."""

    now: int
    version: str
    workers: Sequence[MachineWorker]
    lines: Sequence[tuple[MachineWorker, LineFigures]]
    box: BoxFigures | None
    deferred: Sequence[tuple[MachineWorker, DeferredBacklog]] = ()
    outages: Sequence[tuple[MachineWorker, int]] = ()
    """Since when each cannot certify (ms), 0 for those that can."""


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
        yield from _certifications(seen.workers)
        yield from _machines(seen.workers)
        yield from _tax_server(seen.workers, seen.now)
        yield from _deferred(seen)
        yield _gauge(
            "mcfd_outage_seconds",
            "For how long the machine cannot certify, as the register of outages has it; 0 while it can.",
            ((_book(worker), _since(since or seen.now, seen.now)) for worker, since in seen.outages),
        )
        yield from _lines(seen.lines)
        if seen.box is not None:
            yield from _outbox(seen.box, seen.now)
            yield from _box(seen.box)


def _book(worker: MachineWorker) -> list[str]:
    return [worker.book.nim, worker.book.mode]


def _certifications(workers: Sequence[MachineWorker]) -> Iterator[Metric]:
    ended = CounterMetricFamily(
        "mcfd_certifications",
        "Attempts that ended since the start, by outcome: certified, refused by the machine, abandoned on the line, not sent "
        "(no machine, or patience ended), disputed (an operator settles it).",
        labels=[*BOOK, "outcome"],
    )
    for worker in workers:
        for outcome in OUTCOMES:
            ended.add_metric([*_book(worker), outcome], worker.statistics.outcomes[outcome])
    yield ended
    line = HistogramMetricFamily("mcfd_line_seconds", "Time of a certification at the machine.", labels=BOOK)
    total = HistogramMetricFamily(
        "mcfd_certification_seconds", "From the arrival of a request to its durable certification.", labels=BOOK
    )
    for worker in workers:
        _add(line, worker, worker.statistics.line)
        _add(total, worker, worker.statistics.total)
    yield line
    yield total


def _add(family: HistogramMetricFamily, worker: MachineWorker, histogram: Histogram) -> None:
    bounds = [*(str(bound) for bound in histogram.bounds), "+Inf"]
    counts = accumulate(histogram.counts)
    family.add_metric(_book(worker), list(zip(bounds, counts, strict=True)), sum_value=histogram.total)


def _gauge(name: str, text: str, values: Iterable[tuple[list[str], float | None]]) -> GaugeMetricFamily:
    """Without the series whose value is not known."""
    family = GaugeMetricFamily(name, text, labels=BOOK)
    for labels, value in values:
        if value is not None:
            family.add_metric(labels, value)
    return family


def _machines(workers: Sequence[MachineWorker]) -> Iterator[Metric]:
    yield _gauge(
        "mcfd_queue_length",
        "Requests at the machine and waiting for it.",
        ((_book(worker), worker.waiting) for worker in workers),
    )
    yield _gauge(
        "mcfd_machine_connected",
        "Whether the machine answers.",
        ((_book(worker), worker.connected) for worker in workers),
    )
    yield _gauge(
        "mcfd_machine_attention",
        "Whether an operator has something to settle before anything is certified (mcfd machine settle).",
        ((_book(worker), bool(worker.obstacle)) for worker in workers),
    )
    yield _gauge(
        "mcfd_machine_test_mode",
        "Whether the machine's codes begin with TESTFACT: what it certifies has no fiscal value.",
        ((_book(worker), worker.in_test_mode) for worker in workers),
    )
    yield _gauge(
        "mcfd_clock_drift_seconds",
        "By how much the box is ahead of the machine's clock.",
        ((_book(worker), worker.drift_seconds) for worker in workers),
    )


def _tax_server(workers: Sequence[MachineWorker], now: int) -> Iterator[Metric]:
    links = [(_book(worker), worker.server_link) for worker in workers if worker.server_link is not None]
    yield _gauge(
        "mcfd_tax_server_silence_seconds",
        "Time since the machine last reached the tax server; from 7 days (604800) on the user is warned daily.",
        ((book, _since(machine_millis(link.last_contact), now)) for book, link in links),
    )
    yield _gauge(
        "mcfd_tax_server_waiting",
        "Transactions in the machine that the tax server has not acknowledged.",
        ((book, max(0, link.documents - link.acknowledged)) for book, link in links),
    )


def _deferred(seen: Seen) -> Iterator[Metric]:
    yield _gauge(
        "mcfd_deferred_oldest_seconds",
        "Age of the oldest sale that waits for its certification, counted from the sale, 0 for none; the law leaves 48 hours (172800).",
        ((_book(worker), _since(backlog.oldest_at or seen.now, seen.now)) for worker, backlog in seen.deferred),
    )


def _since(then: int | None, now: int) -> float | None:
    return None if then is None else max(0, now - then) / 1000


def _lines(lines: Sequence[tuple[MachineWorker, LineFigures]]) -> Iterator[Metric]:
    for name, text in (
        ("exchanges", "Commands sent to the machine."),
        ("retries", "Frames sent again, after a NAK, silence or garbage."),
        ("garbage", "Times that something else than a frame came from the line."),
        ("stale", "Replies that came too late and were dropped."),
        ("bytes_sent", "Bytes sent to the machine."),
        ("bytes_received", "Bytes received from the machine."),
    ):
        family = CounterMetricFamily(f"mcfd_line_{name}", text, labels=BOOK)
        for worker, figures in lines:
            family.add_metric(_book(worker), getattr(figures, name))
        yield family


def _outbox(box: BoxFigures, now: int) -> Iterator[Metric]:
    labels = ["destination", *BOOK]
    waiting = GaugeMetricFamily("mcfd_outbox_waiting", "Closures and events still to be delivered.", labels=labels)
    parked = GaugeMetricFamily(
        "mcfd_outbox_parked", "Refused for good by the receiver (mcfd upstream replay).", labels=labels
    )
    oldest = GaugeMetricFamily("mcfd_outbox_oldest_seconds", "Age of the oldest that waits.", labels=labels)
    for destination, backlogs in box.outbox.items():
        for backlog in backlogs:
            labels = [destination, backlog.nim, backlog.mode]
            waiting.add_metric(labels, backlog.waiting)
            parked.add_metric(labels, backlog.parked)
            oldest.add_metric(labels, (now - backlog.oldest_at) / 1000 if backlog.waiting else 0)
    yield waiting
    yield parked
    yield oldest


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
