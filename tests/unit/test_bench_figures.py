"""The bench's arithmetic: what it sums up, what counts as reached, what it prints and records."""

import pytest

from bench.__main__ import PARTS
from bench.figures import (
    LIMITS,
    Recorded,
    Row,
    differences,
    values_of,
)


def test_each_row_is_measured_by_one_part() -> None:
    """No row of the table without a part, none in two."""
    assert sorted(name for names in PARTS for name in names.split()) == sorted(LIMITS)


@pytest.mark.parametrize(
    ("row", "reached", "missed"), [("line-1", 1.15, 1.1501), ("machines", 0.95, 0.9499), ("hq", 150, 149.9)]
)
def test_a_limit_itself_is_reached(row: str, reached: float, missed: float) -> None:
    """`≤` and `≥` mean what they say."""
    assert Row(row, reached, "").verdict == "pass"
    assert Row(row, missed, "").verdict == "MISS"


@pytest.mark.parametrize(
    ("row", "now", "verdict"),
    [
        ("line-1", 1.05, "as before"),
        ("line-1", 1.065, "worse"),
        ("line-1", 1.015, "better"),
        ("machines", 0.90, "worse"),
        ("machines", 0.99, "better"),
    ],
)
def test_only_what_is_beyond_the_noise_is_better_or_worse(row: str, now: float, verdict: str) -> None:
    """Beyond what the recorded runs lie apart, and in the sense of the row's limit; rows that one side lacks are left out."""
    runs = ({"line-1": 1.03, "machines": 0.95}, {"line-1": 1.04, "machines": 0.96}, {"line-1": 1.05, "machines": 0.97})
    (found,) = differences(Recorded("0.1.0", "box", "", runs), values_of([Row(row, now, ""), Row("hq", None, "")]))
    assert (found.verdict, found.before) == (verdict, runs[1][row])
