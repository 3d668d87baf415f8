"""The sandbox beside live tills: a share of the time, a few requests at once, and everything while nobody sells."""

from __future__ import annotations

import asyncio

import pytest

from daemon.api.access import sandbox_share
from daemon.api.access.sandbox_share import APART, AT_ONCE, CREDIT, LIVE_FOR, SHARE, SandboxShare


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The processor time of the process, as the test sets it."""
    time = [0.0]
    monkeypatch.setattr(sandbox_share.time, "process_time", lambda: time[0])
    return time


async def use(share: SandboxShare, busy: list[float], seconds: float) -> None:
    leave = await share.enter()
    busy[0] += seconds
    leave()


async def test_while_tills_sell_it_waits_for_what_it_took(busy: list[float]) -> None:
    """After a second of work the next request waits until that was its share; a minute after the last sale it waits no more."""
    clock = Clock()
    share = SandboxShare(clock)
    share.note_live()
    await use(share, busy, 1.0)
    waiting = asyncio.ensure_future(share.enter())
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    waiting.cancel()
    clock.now += 1.0 / SHARE - CREDIT
    (await share.enter())()
    clock.now += APART
    await use(share, busy, 100.0)
    clock.now += LIVE_FOR
    (await share.enter())()


async def test_while_tills_sell_one_begins_after_the_other(busy: list[float]) -> None:
    """Those that come, or have waited, in the same moment: what the first one takes is not known yet."""
    clock = Clock()
    share = SandboxShare(clock)
    share.note_live()
    await share.enter()
    others = [asyncio.ensure_future(share.enter()) for _ in range(2)]
    assert not (await asyncio.wait(others, timeout=0.05))[0]
    clock.now += APART
    async with asyncio.timeout(60):
        await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
    assert [each.done() for each in others].count(True) == 1
    others[0].cancel()
    others[1].cancel()


async def test_alone_it_has_the_box_to_itself(busy: list[float]) -> None:
    """But never more than a few requests at once, and who breaks off gives its place back."""
    share = SandboxShare(Clock())
    await use(share, busy, 1000.0)
    leaves = [await share.enter() for _ in range(AT_ONCE)]
    late = asyncio.ensure_future(share.enter())
    assert not (await asyncio.wait([late], timeout=0.05))[0]
    late.cancel()
    leaves.pop()()
    async with asyncio.timeout(60):
        (await share.enter())()


async def test_a_till_that_waits_goes_first(busy: list[float]) -> None:
    """A request of the sandbox begins when `let_pass` has let it; one that breaks off meanwhile gives its place back."""
    passed = asyncio.Event()

    async def let_pass() -> None:
        await passed.wait()

    share = SandboxShare(Clock(), let_pass)
    waiting = [asyncio.ensure_future(share.enter()) for _ in range(AT_ONCE)]
    assert not (await asyncio.wait(waiting, timeout=0.05))[0]
    waiting.pop().cancel()
    passed.set()
    for each in [*waiting, asyncio.ensure_future(share.enter())]:
        await asyncio.wait_for(each, 60)
