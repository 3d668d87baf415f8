"""The time that limits of calls are counted in, on a box whose clock may be wrong."""

import asyncio

import pytest

from daemon.app.outward.calls import READING_SECONDS, LaneClock

RELAY = 1_795_600_000_000
"""The relay's time when the loop's is 0 (ms)."""
WRONG = RELAY - 86_400_000


class Loop:
    """The clock of the loop, at the test's hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self)

    def time(self) -> float:
        return self.seconds


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    return Loop(monkeypatch)


def test_the_time_of_the_relay(loop: Loop) -> None:
    """That of the call which came soonest; a later one that was under way for longer changes nothing, nor does a step of the box's clock."""
    box = WRONG
    clock = LaneClock(lambda: False, lambda: box)
    assert clock.now() == WRONG
    loop.seconds = 1.0
    clock.note_call(RELAY)  # a second under way
    loop.seconds = 10.0
    clock.note_call(RELAY + 10_000)  # at once
    assert clock.now() == RELAY + 10_000
    box += 7_200_000
    loop.seconds = 100.0
    clock.note_call(RELAY + 10_000)  # 90 s under way
    assert clock.now() == RELAY + 100_000


def test_a_relay_whose_clock_is_ahead(loop: Loop) -> None:
    """Its time counts for an hour at the most; then that of the others does again. The clock of a box that somebody vouches for counts, whatever a relay says."""
    clock, right = LaneClock(lambda: False, lambda: WRONG), LaneClock(lambda: True, lambda: WRONG)
    for each in (clock, right):
        each.note_call(RELAY + 86_400_000)
    assert right.now() == WRONG
    loop.seconds = READING_SECONDS - 1
    clock.note_call(RELAY + 3_599_000)
    assert clock.now() == RELAY + 86_400_000 + 3_599_000
    loop.seconds = READING_SECONDS
    clock.note_call(RELAY + 3_600_000)
    assert clock.now() == RELAY + 3_600_000
