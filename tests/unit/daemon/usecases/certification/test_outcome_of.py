"""An outcome that is not known yet is waited for, within bounds."""

import asyncio
from pathlib import Path

import pytest
from support.ledgers.ledger import Till, invoice, opened, opened_till
from support.ledgers.worker import worker_of

from common.language import reasons
from daemon.core.audit import Call
from daemon.core.errors import KeyReused, LineLost, MachineAttention, MachineBusy, MachineOffline
from daemon.core.ledger.phases import Phase, Step
from daemon.core.ledger.take_over import NumberReserved
from daemon.usecases.certification import certify
from daemon.usecases.certification.idempotency import once, outcome_of
from daemon.usecases.worker.machine_worker import Limits, MachineWorker


async def test_an_outcome_is_waited_for_as_long_as_there_is_time(tmp_path: Path) -> None:
    """Until it is known; when the patience is over, or the daemon stops, the till is told to come again; an operator who has to tell is named."""
    async with opened_till(tmp_path / "ledger.sqlite3") as (_, till):
        worker = worker_of(till)
        attempt_id = await till.begin(invoice("A"))
        worker.limits = Limits(doubt_patience=0.02)
        async with asyncio.timeout(60):
            with pytest.raises(LineLost, match="not known yet"):
                await outcome_of(worker, attempt_id)
        worker.limits = Limits(doubt_patience=3600.0)
        waiting = asyncio.ensure_future(outcome_of(worker, attempt_id))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        record = await till.finish(attempt_id, invoice("A"))
        worker.attempts.settle([record])
        async with asyncio.timeout(60):
            assert await waiting == record
        other = await till.begin(invoice("B"))
        worker.closing = True
        with pytest.raises(LineLost, match="not known yet") as caught:
            await outcome_of(worker, other)
        assert caught.type is LineLost
        worker.attempts.attention = "another machine"
        with pytest.raises(MachineAttention, match="another machine") as caught:
            await outcome_of(worker, other)
        assert caught.type is MachineAttention


async def test_a_number_in_doubt_is_refused_with_what_was_found_about_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else the machine's operator is asked; so is the same request, sent again with its key, also where its machine is not configured any
    more. In words."""
    found = str(reasons.STOPPING)
    async with opened_till(tmp_path / "ledger.sqlite3") as (store, till):
        worker = worker_of(till)
        attempt_id = await till.begin(invoice("A"))
        await store.ledger.dispute(till.book, attempt_id, reasons.STOPPING, at=till.at)
        for attention in ("", "look at another one"):
            worker.attempts.attention = attention
            with pytest.raises(MachineAttention, match=found):
                certify.refuse_duplicate(worker, invoice("A"))
            with pytest.raises(MachineAttention, match=found):
                await outcome_of(worker, attempt_id)
        monkeypatch.setattr(MachineWorker, "worker_of", lambda *_: None)
        with pytest.raises(NumberReserved, match=f"^{found}$"):
            await outcome_of(worker, attempt_id)


async def test_the_first_request_of_a_key_is_waited_for_as_long_as_it_may_take(tmp_path: Path) -> None:
    """For its turn at the machine and then for an outcome that is in doubt; another body under that key is told at once."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        worker = worker_of(await Till.of(store))
        go_on = asyncio.Event()
        ran: list[str] = []

        async def run() -> str:
            await go_on.wait()
            ran.append("run")
            return "done"

        call = Call("r1", "k", b"one")
        first = asyncio.ensure_future(once(worker, call, run, lambda _: None))
        await asyncio.sleep(0)
        waiting = []
        for limits in (Limits(patience=3600.0, doubt_patience=0.0), Limits(patience=0.0, doubt_patience=3600.0)):
            worker.limits = limits
            waiting.append(asyncio.ensure_future(once(worker, call, run, lambda _: None)))
            await asyncio.sleep(0)
        worker.limits = Limits(patience=0.0, doubt_patience=0.0)
        with pytest.raises(MachineBusy, match="still running"):
            await once(worker, call, run, lambda _: None)
        with pytest.raises(KeyReused):
            await once(worker, Call("r2", "k", b"two"), run, lambda _: None)
        assert not any(each.done() for each in waiting)
        go_on.set()
        async with asyncio.timeout(60):
            answers = [await each for each in (first, *waiting)]
        assert [(answer.value, answer.replayed) for answer in answers] == [("done", False)] * 3
        assert len(ran) == 3  # the ledger has nothing under that key, as after a failure


async def test_a_number_under_way_is_waited_for_as_long_as_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until its end; not at all once the patience is over or the daemon stops, nor for a machine that has to tell first and is away."""
    async with opened(tmp_path / "ledger.sqlite3") as store:
        worker = worker_of(await Till.of(store))
        now = asyncio.get_running_loop().time()
        live = worker.attempts.intend("A")
        waiting = asyncio.ensure_future(certify.number_decided(worker, live, now + 3600))
        await asyncio.sleep(0)
        assert not waiting.done()
        with monkeypatch.context() as clock:
            clock.setattr(asyncio.get_running_loop(), "time", lambda: now, raising=False)
            still = certify.number_decided(worker, live, now + 0.5)
            still.send(None)  # it waits
            still.close()
        for is_closing, until in ((False, now), (True, now + 3600)):
            worker.closing = is_closing
            with pytest.raises(MachineBusy, match="is being certified"):
                certify.number_decided(worker, live, until).send(None)
        worker.closing = False
        live.phase = Phase.IN_DOUBT
        with pytest.raises(MachineOffline):
            certify.number_decided(worker, live, now + 3600).send(None)
        worker.attempts.step(live, Step.SETTLED)
        async with asyncio.timeout(60):
            await waiting
