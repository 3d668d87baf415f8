"""The attempts of one machine: what the tests of a shop at work do not tell apart."""

import pytest
from support.core_samples import book_state, record

from daemon.core.errors import StorageFull
from daemon.core.ledger.phases import Phase, Step
from daemon.core.machine.state import FiscalCounters
from daemon.usecases.worker.attempts import Attempts, WorkerStatistics


async def test_an_end_leaves_the_number_to_the_attempt_that_has_it_now() -> None:
    """A number that was given anew meanwhile is not taken from the second by the end of the first."""
    attempts = Attempts()
    first = attempts.intend("A")
    first.phase = Phase.ENDING
    second = attempts.intend("A")
    attempts.step(first, Step.STORED)
    assert attempts.find("A") is second


async def test_what_the_ledger_knows_is_taken() -> None:
    """Its counters, or none where it never heard of the machine, and its question to an operator."""
    attempts = Attempts()
    assert (attempts.counters, attempts.met_machine) == (FiscalCounters(0, 0, 0), False)
    for counters in (FiscalCounters(3, 2, 1), None):
        attempts.apply(book_state(counters=counters, attention="look"))
        assert (attempts.counters, attempts.attention) == (counters or FiscalCounters(0, 0, 0), "look")


async def test_a_disk_that_takes_nothing_is_waited_for_a_while_only() -> None:
    """An end that does not become durable: after its patience a request is refused, as there is no room."""
    attempts = Attempts()
    attempts.intend("A").phase = Phase.ENDING
    assert attempts.ending
    with pytest.raises(StorageFull, match="the invoice before this one"):
        await attempts.all_durable(patience=0.02)


def test_what_a_certification_took_is_counted_with_it() -> None:
    """At the machine and altogether; not of one that a recovery found, nor of a refusal."""
    statistics = WorkerStatistics()
    statistics.note(record(line_ms=250, duration_ms=1500))
    statistics.note(record(line_ms=0, duration_ms=9000))
    statistics.note(record(state="refused", line_ms=100, duration_ms=200))
    assert [(sum(each.counts), each.total) for each in (statistics.line, statistics.total)] == [(1, 0.25), (1, 1.5)]
    assert statistics.outcomes == {"certified": 2, "refused": 1}


async def test_who_waits_for_news_is_woken_each_time() -> None:
    """And waits for the next ones until the end."""
    attempts = Attempts()
    live = attempts.intend("A")
    for step, is_over in ((Step.UNKNOWN, False), (Step.SETTLED, True)):
        news = live.news
        attempts.step(live, step)
        assert (news.done(), live.news.done()) == (True, is_over)
