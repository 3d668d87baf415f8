"""The bench's arithmetic: what it sums up, what counts as reached, what it prints and records."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.__main__ import PARTS
from bench.figures import (
    LIMITS,
    RUNS,
    Recorded,
    Row,
    box,
    differences,
    kind_of,
    last_recorded,
    median,
    milliseconds,
    quantile,
    record,
    significant,
    table,
    values_of,
)
from bench.shop.shops import line_seconds
from bench.shop.till import rate


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


def test_what_was_not_measured_neither_passes_nor_misses() -> None:
    """Its note says why, and it stands in the table."""
    row = Row("hq", None, "no PostgreSQL")
    assert row.verdict == "not measured"
    assert "no PostgreSQL" in table([row])


def test_the_table_says_limit_value_and_verdict() -> None:
    """Each row in one line."""
    line = table([Row("line-1", 1.0312, "60.9 ms / 59.1 ms, 150 sales")]).splitlines()[1]
    for part in ("line-1", "≤ 1.15", "1.031", "pass", "60.9 ms / 59.1 ms"):
        assert part in line


def test_medians_and_quantiles() -> None:
    """One slow sale in ten changes no median; of a hundred values the p99 is the 99th and not the worst."""
    assert median([0.001, *[0.060] * 8, 0.500]) == 0.060
    hundred = [float(number) for number in range(1, 101)]
    assert quantile(hundred[::-1], 0.99) == 99
    assert quantile(hundred[:10], 0.9) == 9
    assert quantile([7.0], 0) == 7


def test_the_line_needs_ten_bits_a_byte() -> None:
    """680 bytes at 115 200 bit/s take 59 ms."""
    assert line_seconds(680) == pytest.approx(0.059, abs=0.0005)


def test_a_rate_counts_from_the_end_of_the_warm_up() -> None:
    """Ten answers a second after a slow start are ten a second."""
    times = [0.0, 3.0, *(4.0 + turn / 10 for turn in range(21))]
    assert rate(times, 2) == pytest.approx(10)


def test_values_have_the_digits_that_count() -> None:
    """From microseconds to minutes, from ratios to thousands."""
    assert [milliseconds(value) for value in (0.000042, 0.0606, 7.5)] == ["42 µs", "60.6 ms", "7.50 s"]
    assert [significant(value) for value in (1.0234, 59.81, 5021.4)] == ["1.023", "59.8", "5,021"]


def test_the_box_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures without the machine they were taken on mean nothing."""
    monkeypatch.setattr("bench.figures.RESULTS", tmp_path)
    assert {"cpu", "cores", "fsync_ms", "python", "sqlite", "revision"} <= set(box())
    assert kind_of({"cpu": "AMD EPYC (Milan)", "cores": 2}) == "amd-epyc-milan-2-cores"


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
