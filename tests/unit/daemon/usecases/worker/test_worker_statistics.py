"""How long certifications take, as the metrics show it."""

from support.core_samples import record

from daemon.usecases.worker.attempts import WorkerStatistics


def test_each_certification_counts_in_both_times_once() -> None:
    """Seconds at the machine and in all, each in the bucket of its upper bound; one that was settled by asking afterwards in neither."""
    statistics = WorkerStatistics()
    for line_ms, duration_ms in ((50, 120), (51, 95_000), (0, 70)):
        statistics.note(record(line_ms=line_ms, duration_ms=duration_ms))
    statistics.note(record(state="refused", line_ms=40, duration_ms=40))
    assert statistics.outcomes == {"certified": 3, "refused": 1}
    assert (statistics.line.counts[:3], round(statistics.line.total, 3)) == ([1, 1, 0], 0.101)
    assert (statistics.total.counts[2], statistics.total.counts[-1], sum(statistics.total.counts)) == (1, 1, 2)
    assert round(statistics.total.total, 3) == 95.12
