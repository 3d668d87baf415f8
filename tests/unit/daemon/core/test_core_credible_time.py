"""Which clock is believed (decision 21), over every combination of right and wrong clocks."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.clock import (
    BOUND,
    DAY,
    EARLIEST,
    FIRST_BOUND,
    HOUR,
    SLACK,
    ClockReading,
    Clocks,
    Source,
    decide_time,
    millis_text,
    question,
)

NOON = 1_795_000_000_000
"""A day in November 2026."""
YEAR = 365 * DAY

moments = st.integers(min_value=0, max_value=253_402_300_799_999)


def clocks(box: int, machine: int | None = None, book: int = NOON, **more: int) -> Clocks:
    return Clocks(
        book=book,
        box=box,
        synchronised=more.get("synchronised", False),
        machine=machine,
        stepped=more.get("stepped", False),
        accepted=more.get("accepted", 0),
    )


@given(moments, moments, st.none() | moments, st.booleans(), st.booleans())
def test_no_time_is_before_the_book_and_none_that_nobody_vouches_for_far_after_it(
    book: int, box: int, machine: int | None, synchronised: bool, stepped: bool
) -> None:
    """Whatever the clocks say, also in the year 9999: not before, and beyond the bound only by a synchronised box."""
    reading = decide_time(Clocks(book, box, synchronised, machine, stepped, 0))
    assert reading.at >= book
    if book and reading.at > book + BOUND:
        assert (reading.source, synchronised) == (Source.BOX, True)


DECIDED = {
    "a machine with a wrong clock has no say while the box is right": [
        (clocks(NOON + HOUR, wrong, synchronised=synchronised), Source.BOX, NOON + HOUR)
        for wrong in (NOON + 10 * YEAR, NOON - 10 * YEAR, 0, 253_402_300_799_000, None)
        for synchronised in (True, False)
    ],
    "a box with a wrong clock takes the machine's": [
        (clocks(wrong, NOON + HOUR), Source.MACHINE, NOON + HOUR) for wrong in (0, NOON - 10 * YEAR, NOON + 10 * YEAR)
    ],
    "a synchronised box is believed after any absence": [
        (clocks(NOON + YEAR, NOON + 9 * YEAR, synchronised=True), Source.BOX, NOON + YEAR)
    ],
    "a step of the box is believed only against no other clock": [
        (clocks(NOON + 5 * HOUR, NOON + HOUR, stepped=True), Source.MACHINE, NOON + HOUR),
        (clocks(NOON + 5 * HOUR, None, stepped=True), Source.BOX, NOON + 5 * HOUR),
    ],
    "an empty book begins with a clock of these years": [
        (clocks(NOON, None, book=0), Source.BOX, NOON),
        (clocks(NOON + 20 * YEAR, NOON, book=0), Source.MACHINE, NOON),
        (clocks(0, NOON, book=0), Source.MACHINE, NOON),
        (clocks(EARLIEST, NOON, book=0, synchronised=True), Source.BOX, EARLIEST),
        (clocks(EARLIEST, None, book=0), Source.BOX, EARLIEST),
        (clocks(EARLIEST - 1, None, book=0), Source.BOOK, EARLIEST),
        (clocks(EARLIEST + FIRST_BOUND, None, book=0), Source.BOX, EARLIEST + FIRST_BOUND),
        (clocks(EARLIEST + FIRST_BOUND + 1, None, book=0), Source.BOOK, EARLIEST),
    ],
    "of another, a millisecond beyond its bounds, no clock is": [
        (clocks(EARLIEST, None, synchronised=True), Source.BOX, NOON),
        (clocks(NOON + BOUND, None), Source.BOX, NOON + BOUND),
        (clocks(NOON + BOUND + 1, None), Source.BOOK, NOON),
        (clocks(NOON - SLACK, None), Source.BOX, NOON),
        (clocks(NOON - SLACK - 1, None), Source.BOOK, NOON),
    ],
    "an operator's word is believed to its last moment": [
        (clocks(NOON + YEAR + more, accepted=NOON + YEAR), source, at)
        for more, source, at in ((0, Source.BOX, NOON + YEAR), (1, Source.BOOK, NOON))
    ],
}


@pytest.mark.parametrize("fact", DECIDED)
def test_which_clock_is_believed(fact: str) -> None:
    """Wrong is ten years ahead, ten behind, 1970, 9999, unreadable."""
    for seen, source, at in DECIDED[fact]:
        reading = decide_time(seen)
        assert (reading.source, reading.at) == (source, at), seen
        assert source is not Source.BOX or reading.ahead == 0


def test_two_wrong_clocks_move_nothing_and_one_ahead_is_asked_about() -> None:
    """Time stands still; where a clock is too far ahead, an operator is asked, in a sentence that names each that is."""
    for box, machine in product((0, NOON + 10 * YEAR), (0, NOON - YEAR, NOON + 10 * YEAR)):
        seen = clocks(box, machine)
        reading = decide_time(seen)
        assert (reading.at, reading.source) == (NOON, Source.BOOK)
        asks = question(seen, reading)
        assert bool(asks) == (max(box, machine) > NOON)
        assert not asks or "mcfd time accept" in asks
        assert ("the box says" in asks, "the machine says" in asks) == (box > NOON, machine > NOON)


def test_a_synchronised_clock_from_before_the_program_was_made_is_not_believed() -> None:
    """Such a statement is mistaken. That is the beginning of 2025."""
    assert millis_text(EARLIEST) == "2025-01-01T00:00:00.000Z"
    assert decide_time(clocks(EARLIEST - 1, NOON + HOUR, synchronised=True)).source is Source.MACHINE


def test_a_poisoned_book_is_told() -> None:
    """The clock is vouched for and the book is ten years ahead of it: time stands still, and by how much is known."""
    reading = decide_time(clocks(NOON, NOON, book=NOON + 10 * YEAR, synchronised=True))
    assert (reading.at, reading.behind) == (NOON + 10 * YEAR, 10 * YEAR)


def test_an_empty_book_is_moved_by_no_clock_that_is_not_believed() -> None:
    """Box and machine ten years ahead: an operator is asked; what is written meanwhile leaves the book where a right clock is believed at once."""
    reading = decide_time(clocks(NOON + 10 * YEAR, NOON + 10 * YEAR, book=0))
    assert (reading.at, reading.source, reading.ahead > 0) == (EARLIEST, Source.BOOK, True)
    assert decide_time(clocks(NOON + 10 * YEAR, NOON + 10 * YEAR, book=reading.at)).ahead
    assert decide_time(clocks(NOON, NOON + 10 * YEAR, book=reading.at)).source is Source.BOX


@pytest.mark.parametrize(
    ("box", "machine", "named"),
    [
        (0, NOON, ["machine"]),
        (-1, NOON, ["machine"]),
        (1, NOON, ["box", "machine"]),
        (NOON, 0, ["box"]),
        (NOON, -1, ["box"]),
        (NOON, 1, ["box", "machine"]),
        (NOON, None, ["box"]),
    ],
)
def test_only_a_clock_that_is_after_the_book_is_asked_about(box: int, machine: int | None, named: list[str]) -> None:
    """Of a book from before the program was made, beside which nothing is credible: the same moment, one before and one after it."""
    end = EARLIEST - DAY
    at = [each if each in (None, NOON) else end + each for each in (box, machine)]
    asks = question(clocks(at[0] or 0, at[1], book=end), ClockReading(end, Source.BOOK, ahead=NOON - end))
    assert [clock for clock in ("box", "machine") if f"the {clock} says" in asks] == named


@pytest.mark.parametrize(("box", "behind", "ahead"), [(NOON - SLACK, 0, 0), (NOON + BOUND + 1, 0, BOUND + 1)])
def test_by_how_much_a_clock_is_off(box: int, behind: int, ahead: int) -> None:
    """Within the slack there is no report; a millisecond past the bound an operator is asked, and the book's own time holds."""
    reading = decide_time(clocks(box))
    assert (reading.behind, reading.ahead, reading.at) == (behind, ahead, NOON)
    assert decide_time(clocks(NOON - SLACK - 1, synchronised=True)).behind == SLACK + 1
    assert decide_time(clocks(NOON - SLACK, synchronised=True)).behind == 0
    end = EARLIEST - 2 * BOUND
    assert [decide_time(clocks(end + BOUND + more, book=end)).ahead for more in (0, 1)] == [0, BOUND + 1]


def test_a_box_that_is_right_again_is_told_how_to_set_its_book_right() -> None:
    """Found by the simulation: two hours ahead for a while, beside a machine that is ten years ahead, and no clock that could be set would end it."""
    for box, is_behind in ((NOON, True), (NOON + 10 * YEAR, False)):
        seen = clocks(box, NOON + 10 * YEAR, book=NOON + 2 * HOUR)
        assert ("mcfd time repair" in question(seen, decide_time(seen))) == is_behind
    book = EARLIEST + DAY
    for box, is_credible in ((EARLIEST, True), (EARLIEST - 1, False), (book, False)):
        asks = question(clocks(box, NOON, book=book), ClockReading(book, Source.BOOK, ahead=NOON - book))
        assert ("mcfd time repair" in asks) == is_credible
