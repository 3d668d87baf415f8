"""The time of one book while it runs, with clocks of the test's own (which clock is believed: `test_core_credible_time.py`)."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from structlog.testing import capture_logs
from support.core_samples import book_state

from daemon.core.clock import BOUND, DAY, HOUR, SLACK, millis
from daemon.core.ledger.book import Book
from daemon.usecases.worker.book_clock import DRIFT_ALERT, BookClock, BoxClock

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
BOOK = Book(1, "EL02000015-1", "live")
STATE = book_state(last_at=millis(NOON))


class Times:
    """`box` in ms since 1970; `passed` are the seconds of the loop's clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.box = millis(NOON)
        self.synchronised = False
        self.passed = 5_000.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.passed, raising=False)
        self.clock = BookClock(BoxClock(lambda: self.box, lambda: self.synchronised), BOOK)

    def machine_says(self, at: datetime) -> None:
        self.clock.apply_machine(f"{at:%Y%m%d%H%M%S}")


@pytest.fixture
async def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(monkeypatch)


async def test_two_clocks_that_drift_apart_are_told_of_once(times: Times) -> None:
    """More than two minutes, either way: at the first look that finds it, and at the next one after they had come together."""
    limit = timedelta(seconds=DRIFT_ALERT)
    second = timedelta(seconds=1)
    with capture_logs() as logs:
        for drift in (limit, limit + second, 2 * limit, limit, -limit, -limit - second, timedelta(0), limit + second):
            times.machine_says(NOON - drift)
            assert times.clock.drift == drift.total_seconds()
        times.clock.apply_machine("no time")
    assert times.clock.drift == DRIFT_ALERT + 1
    assert [(line["event"], line["seconds"]) for line in logs] == [("clock.drift", s) for s in (121, -121, 121)]


async def test_a_book_keeps_its_youngest_time_until_an_operator_sets_it_back(times: Times) -> None:
    """What the ledger says later is older than what is known here; after `mcfd time repair` it is what counts, once. Of a new taxpayer nothing is known, and its ledger is believed
    whatever it says. A clock beyond the bound is asked about, and is believed as far as the operator has said."""
    later, earlier = (msgspec.structs.replace(STATE, last_at=STATE.last_at + by) for by in (DAY, -DAY))
    for state in (later, STATE):
        times.clock.apply_book(state)
        assert times.clock.last_at == later.last_at
    repaired = msgspec.structs.replace(earlier, time_repairs=1)
    times.clock.apply_book(repaired)
    assert times.clock.last_at == earlier.last_at
    times.clock.last_at = STATE.last_at
    times.clock.apply_book(repaired)
    assert times.clock.last_at == STATE.last_at
    times.box += BOUND + DAY
    assert "mcfd time accept" in times.clock.question()
    times.clock.apply_book(msgspec.structs.replace(repaired, accepted_to=times.box))
    assert times.clock.question() == ""
    times.clock.change_book(Book(2, BOOK.nim, "live"))
    assert times.clock.last_at == 0
    times.clock.last_at = STATE.last_at
    times.clock.apply_book(msgspec.structs.replace(STATE, last_at=7))
    assert times.clock.last_at == 7


async def test_a_look_at_the_time_leaves_nothing_behind(times: Times) -> None:
    """Neither before the machine was met nor after it, whether or not the box's clock is synchronised: the book is as old as the ledger says."""
    times.clock.apply_book(STATE)
    times.box += DAY
    assert times.clock.now() == times.box
    times.machine_says(NOON)
    for times.synchronised in (True, False):
        assert times.clock.now() == times.box
        assert times.clock.last_at == STATE.last_at


@pytest.mark.parametrize(("step", "believed"), [(SLACK, True), (SLACK + 1, False), (-SLACK, True)])
async def test_a_step_of_the_box_against_the_loops_clock(times: Times, step: int, believed: bool) -> None:
    """Ten minutes have passed, and the box says that, or an hour more, and is believed; a millisecond beyond it is the machine that is,
    whose time has gone on by as much."""
    times.clock.apply_book(STATE)
    times.machine_says(NOON)
    assert times.clock.now() == millis(NOON)
    times.passed += 600
    times.box += 600_000 + step
    with capture_logs() as logs:
        result = times.clock.now()
    assert result == (max(times.box, millis(NOON)) if believed else millis(NOON) + 600_000)
    assert [line["event"] for line in logs] == ([] if believed else ["clock.source"])


async def test_a_book_ahead_of_a_clock_that_is_right_is_told_once(times: Times) -> None:
    """By how much, and what to do; again only after it was right meanwhile."""
    times.synchronised = True
    times.clock.apply_book(msgspec.structs.replace(STATE, last_at=STATE.last_at + DAY))
    with capture_logs() as logs:
        for box in (millis(NOON), millis(NOON) + HOUR, millis(NOON) + 2 * DAY, millis(NOON)):
            times.box = box
            times.clock.now()
    assert [(line["event"], line["seconds"]) for line in logs] == [
        ("clock.book_ahead", DAY // 1000), ("clock.book_ahead", DAY // 1000),
    ]  # fmt: skip
