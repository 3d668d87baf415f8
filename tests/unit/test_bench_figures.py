"""The bench's arithmetic: what it sums up, what counts as reached, what it prints."""

import pytest

from bench.figures import Row


@pytest.mark.parametrize(
    ("row", "reached", "missed"), [("line-1", 1.15, 1.1501), ("machines", 0.95, 0.9499), ("hq", 150, 149.9)]
)
def test_a_limit_itself_is_reached(row: str, reached: float, missed: float) -> None:
    """`≤` and `≥` mean what they say."""
    assert Row(row, reached, "").verdict == "pass"
    assert Row(row, missed, "").verdict == "MISS"
