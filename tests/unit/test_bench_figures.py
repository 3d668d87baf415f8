"""The bench's arithmetic: what it sums up, what counts as reached, what it prints and records."""

from pathlib import Path

import pytest

from bench.__main__ import PARTS
from bench.figures import (
    LIMITS,
    RUNS,
    Recorded,
    Row,
    differences,
    last_recorded,
    median,
    quantile,
    record,
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


def test_medians_and_quantiles() -> None:
    """One slow sale in ten changes no median; of a hundred values the p99 is the 99th and not the worst."""
    assert median([0.001, *[0.060] * 8, 0.500]) == 0.060
    hundred = [float(number) for number in range(1, 101)]
    assert quantile(hundred[::-1], 0.99) == 99
    assert quantile(hundred[:10], 0.9) == 9
    assert quantile([7.0], 0) == 7


def test_a_run_is_recorded_with_the_others_of_its_release(tmp_path: Path) -> None:
    """The newest file of a kind is the one to compare with; the oldest runs go."""
    for at in range(RUNS + 2):
        record("0.1.0", "box", f"2026-11-{20 + at}", {"line-1": 1.04 + at / 1000}, tmp_path)
    record("0.2.0", "box", "2026-11-29", {"line-1": 1.03}, tmp_path)
    found = last_recorded("box", tmp_path)
    assert found is not None
    assert (found.release, found.runs) == ("0.2.0", ({"line-1": 1.03},))
    (tmp_path / "0.2.0-box.json").unlink()
    found = last_recorded("box", tmp_path)
    assert found is not None
    assert [run["line-1"] for run in found.runs] == [1.042, 1.043, 1.044]
    assert last_recorded("none", tmp_path) is None


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
