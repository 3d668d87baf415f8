"""The attempts of one machine: who waits for whom, and for how long."""

from __future__ import annotations

import asyncio

import pytest
from support.ledgers.ledger import invoice

from daemon.core.errors import StorageFull
from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Book, BookState
from daemon.core.ledger.phases import TABLE, Phase, Step
from daemon.core.machine.state import FiscalCounters
from daemon.usecases.worker.attempts import NO_COUNTERS, Attempts


async def test_a_disk_that_takes_nothing_is_waited_for_a_while_only() -> None:
    """An end that does not become durable: whoever needs it is told within its patience that it could not be stored."""
    attempts = Attempts()
    attempts.intend("A").phase = Phase.ENDING
    assert attempts.counters == FiscalCounters(0, 0, 0)
    async with asyncio.timeout(60):
        with pytest.raises(StorageFull):
            await attempts.all_durable(patience=0.02)
    still = attempts.all_durable(patience=1.0)
    still.send(None)  # it waits
    still.close()


def begun(number: str) -> Record:
    sale = invoice(number)
    return Record(7, number, "FV", "begun", 0, NO_COUNTERS, sale.total_ttc, sale)


def at(*phases: Phase) -> Attempts:
    """One attempt in each, by the phase's name."""
    attempts = Attempts()
    for phase in phases:
        attempts.intend(phase.name).phase = phase
    return attempts


@pytest.mark.parametrize("phase", [each for each in Phase if each is not Phase.ENDED])
async def test_who_has_to_wait_for_an_attempt(phase: Phase) -> None:
    """Its own end for whoever wants all to be durable; for 38h whatever may have been certified, but never the one that asks itself."""
    attempts = at(phase)
    assert attempts.ending == (phase is Phase.ENDING)
    assert attempts.is_ours(begun(phase.name)) == TABLE[phase].ours
    assert not attempts.is_ours(begun("another"))
    mine = attempts.find(phase.name)
    assert mine is not None
    other = attempts.intend("mine")
    assert attempts.is_way_free(other) is not TABLE[phase].blocks
    for waits, patience in (
        (phase is Phase.ENDING, lambda: attempts.all_durable(0)),
        (TABLE[phase].blocks, lambda: attempts.way_free(other, 0)),
        (False, lambda: attempts.way_free(mine, 0)),
    ):
        if waits:
            with pytest.raises(StorageFull, match="the invoice before this one"):
                await patience()
        else:
            await patience()


async def test_whoever_waits_goes_on_when_the_last_of_them_is_stored() -> None:
    """Each that becomes durable is looked at again; nobody goes on while one is left."""
    attempts = at(Phase.ENDING)
    second = attempts.intend("second")
    second.phase = Phase.ENDING
    waiting = asyncio.ensure_future(attempts.all_durable(60))
    for live in (attempts.find(Phase.ENDING.name), second):
        await asyncio.sleep(0)
        assert live is not None
        assert not waiting.done()
        attempts.step(live, Step.STORED)
    async with asyncio.timeout(60):
        await waiting
    assert attempts.find("second") is None


async def test_what_is_in_doubt_is_known_once_and_settled_by_the_ledger() -> None:
    """An attempt that is under way here is no other one; what is not in doubt is nobody else's to settle."""
    attempts = at(Phase.ENDING)
    doubted = attempts.doubt(begun("A"))
    assert (doubted.phase, doubted.id, attempts.doubt(begun("A"))) == (Phase.IN_DOUBT, 7, doubted)
    assert attempts.doubt(begun(Phase.ENDING.name)).phase is Phase.ENDING
    news = doubted.news
    attempts.settle([begun("A"), begun(Phase.ENDING.name), begun("unknown")])
    assert (news.done(), attempts.find("A"), attempts.ending) == (True, None, True)


async def test_who_waits_for_news_is_woken_and_waits_for_the_next() -> None:
    """The phase is as it was; the next news is another one, and an attempt that has ended has no more."""
    attempts = at(Phase.PREPARED)
    live = attempts.find(Phase.PREPARED.name)
    assert live is not None
    first = live.news
    attempts.wake()
    assert (first.done(), live.news.done(), live.phase) == (True, False, Phase.PREPARED)
    attempts.step(live, Step.FAILED)
    attempts.step(live, Step.STORED)
    last = live.news
    assert (last.done(), live.phase) == (True, Phase.ENDED)


async def test_an_end_leaves_the_number_to_whoever_has_it_now() -> None:
    """A number that was given anew meanwhile is not taken from the second by the end of the first."""
    attempts = at(Phase.ENDING)
    first = attempts.find(Phase.ENDING.name)
    second = attempts.intend(Phase.ENDING.name)
    assert first is not None
    attempts.step(first, Step.STORED)
    assert attempts.find(Phase.ENDING.name) is second


async def test_another_book_is_another_machine() -> None:
    """What was in doubt belongs to the old one; what this process brings to its end itself stays; the machine is met anew."""
    attempts = at(Phase.IN_DOUBT, Phase.ENDING)
    attempts.met_machine = True
    attempts.forget()
    assert (attempts.find(Phase.IN_DOUBT.name), attempts.ending, attempts.met_machine) == (None, True, False)


async def test_what_the_ledger_knows_is_taken() -> None:
    """Its counters, or none where it never heard of the machine, and its question to an operator."""
    attempts = Attempts()
    assert (attempts.counters, attempts.met_machine) == (FiscalCounters(0, 0, 0), False)
    for counters in (FiscalCounters(3, 2, 1), None):
        attempts.take(BookState(Book(1, "EL02000015-1", "live"), counters, "", 0, 0, {}, "", "look", 0, 0))
        assert (attempts.counters, attempts.attention) == (counters or FiscalCounters(0, 0, 0), "look")
