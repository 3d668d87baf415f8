"""The sandbox beside live tills: a share of the time, a few requests at once, and everything while nobody sells."""

import asyncio
from collections.abc import Callable

import pytest
from support.api import LIVE_KEY, NIM, TEST_KEY, Serve, until

from daemon.api.access import throttle
from daemon.api.access.throttle import APART, AT_ONCE, CREDIT, LIVE_FOR, SHARE, SandboxShare


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The processor time of the process, as the test sets it."""
    time = [0.0]
    monkeypatch.setattr(throttle.time, "process_time", lambda: time[0])
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
    due = clock.now + 1.0 / SHARE - CREDIT
    for clock.now in (1000.0, 1000.0 + APART, due - 0.1):
        waiting = asyncio.ensure_future(share.enter())
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
        waiting.cancel()
    clock.now = due
    (await share.enter())()
    clock.now += APART
    await use(share, busy, 100.0)
    clock.now += LIVE_FOR
    (await share.enter())()


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


class Noted(SandboxShare):
    """Who came in and left, and each live key."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []

    def note_live(self) -> None:
        self.events.append("live")

    async def enter(self) -> Callable[[], None]:
        self.events.append("in")
        leave = await super().enter()

        def left() -> None:
            self.events.append("out")
            leave()

        return left


KEYS = {"live": LIVE_KEY, "test": TEST_KEY, "wrong": TEST_KEY[:-1]}


@pytest.mark.parametrize(
    ("query", "whose", "status", "expected"),
    [
        ("GET /v1/me", "live", 200, ["live"]),
        ("GET /v1/me", "test", 200, ["in", "out"]),
        (f"GET /v1/mcf/{NIM}/reports/x", "test", 200, ["in", "out"]),
        (f"POST /v1/mcf/{NIM}/certify", "test", 415, ["in", "out"]),
        ("OPTIONS /v1/me", "test", 204, []),
        ("OPTIONS /v1/me", "live", 204, ["live"]),
        (f"GET /v1/mcf/{NIM}/events", "test", 422, []),
        ("GET /v1/mcf/EL09999999-1/info", "test", 403, []),
        ("GET /v1/me", "wrong", 401, []),
    ],
)
async def test_who_takes_a_place(serve: Serve, query: str, whose: str, status: int, expected: list[str]) -> None:
    """Each request of a test key until it is answered; no stream, nor what the router answers. A live key's is a till's sign."""
    share = Noted()
    served = await serve(sandbox=share)
    headers = {"authorization": f"Bearer {KEYS[whose]}", "last-event-id": "no id"}
    answer = await served.client.request(*query.split(), headers=headers)
    assert answer.status_code == status
    await until(lambda: len(share.events) >= len(expected))
    assert share.events == expected
