"""The crash matrix: a real daemon on a real line, killed at every step; afterwards nothing is lost and nothing is there twice.

Two lanes, each a machine with its ledger, share the points; a lane goes through its points one after the other, so that each
also begins with what the one before left behind.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.crash.lane import (
    THREE_ITEMS,
    AtFrame,
    Lane,
    Point,
    every_commit,
    every_frame,
)

LANES = 2
Tried = Callable[[str, Sequence[Point], Callable[[Lane, Point], object]], int]


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Lane]]:
    folder: Path = tmp_path_factory.mktemp("lanes")
    lanes = [Lane(folder / f"lane-{at}") for at in range(LANES)]
    with lanes[0], lanes[1]:
        yield lanes


@pytest.fixture
def tried(lanes: list[Lane], record_property: Callable[[str, object], None]) -> Tried:
    """Runs every point on one of the lanes, and has it printed how many there were."""

    def run(name: str, points: Sequence[Point], through: Callable[[Lane, Point], object]) -> int:
        def go(at: int) -> int:
            lane = lanes[at]
            reached = 0
            for point in points[at::LANES]:
                lane.ensure()
                try:
                    reached += through(lane, point) is not False
                except BaseException as error:
                    error.add_note(f"{name}, at {point}")
                    raise
            lane.check_totals()
            return reached

        with ThreadPoolExecutor(LANES) as threads:
            count = sum(threads.map(go, range(LANES)))
        record_property("points", (name, count))
        return count

    return run


FRAMES = every_frame(8)


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(FRAMES, id="every one", marks=pytest.mark.long),
        pytest.param(
            [at for at in FRAMES if (at.when, at.direction) == ("after", "in") and not at.power], id="once a frame"
        ),
    ],
)
def test_killed_at_every_frame_of_an_invoice(tried: Tried, points: Sequence[AtFrame]) -> None:
    """C3h, C0h, 31h for each of three items, 33h, 35h, 38h; the machine stood where the point says."""
    stages = ["idle", "idle", "invoice open", *["items"] * len(THREE_ITEMS), "subtotalled", "paid", "idle"]

    def through(lane: Lane, point: Point) -> None:
        assert isinstance(point, AtFrame)
        lane.certify_through(point, THREE_ITEMS)
        executed = (point.when, point.direction) != ("before", "in")
        assert lane.stage == stages[point.frame - 1 + executed]

    assert tried("certify, 3 items, frames", points, through) == len(points)


def test_killed_at_every_commit_of_an_invoice(tried: Tried) -> None:
    """The intent, the outcome, and the tick that brings it into the totals."""
    assert tried("certify, commits", every_commit(3), Lane.certify_through) == 6


@pytest.mark.long
def test_killed_while_three_tills_wait(tried: Tried) -> None:
    """From the 38h of the first invoice to that of the second, while the outcome of one and the intents of others are being written."""
    frames = [at for at in every_frame(12) if at.frame >= 6 and not at.power]
    points: list[Point] = [*frames, *every_commit(4)]
    count = tried("3 tills at once", points, lambda lane, at: lane.certify_together_through(at, 3))
    assert count >= len(points) - 2  # how many commits there are depends on who shares one


@pytest.mark.long
def test_killed_at_every_commit_of_a_sale_that_waits(tried: Tried) -> None:
    """It is taken on, its intent, its outcome; and around the 38h of its certification."""
    frames: list[Point] = [AtFrame(6, when, way) for when in ("before", "after") for way in ("in", "out")]
    points: list[Point] = [*every_commit(3), *frames]
    assert tried("a sale that waits", points, Lane.defer_through) == len(points)


def test_killed_at_every_frame_and_commit_of_a_z(tried: Tried) -> None:
    """C1h, and the one commit that is the closure with its number, its key and the next period."""
    assert tried("Z", [*every_frame(1), *every_commit(1)], Lane.close_through) == 7


RECOVERY = [*every_frame(5), *every_commit(2)]
"""C1h twice, 38h C, C1h, C2h; the verdict, the tick."""
BETWEEN = [at for at in every_frame(5) if at.when == "after" and at.direction == "out"]
"""Between two of these commands."""


@pytest.mark.parametrize(
    ("situation", "first", "points"),
    [
        pytest.param("certified, its answer lost", AtFrame(6, "after", "in"), RECOVERY, marks=pytest.mark.long),
        pytest.param(
            *("not certified, the invoice left open", AtFrame(6, "before", "in", power=True), RECOVERY),
            marks=pytest.mark.long,
        ),
        ("still in the machine's hands", AtFrame(6, "before", "in"), BETWEEN),
        pytest.param("half entered", AtFrame(4, "after", "in"), BETWEEN, marks=pytest.mark.long),
    ],
)
def test_killed_at_every_step_of_the_recovery(
    tried: Tried, situation: str, first: AtFrame, points: Sequence[Point]
) -> None:
    """A second kill in the recovery, after a first in an invoice."""
    count = tried(f"recovery, {situation}", points, lambda lane, at: lane.recover_through(first, at))
    assert count == len(points)
