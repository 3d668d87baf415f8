"""What the bench kept of earlier runs, and what it says of this one beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.figures import Row
from bench.history import RUNS, Recorded, differences, kind_of, last_recorded, record, values_of
from bench.published import BEGIN, END, published


def test_a_machine_is_told_by_its_processor_and_cores() -> None:
    """As part of a file's name."""
    assert kind_of({"cpu": "AMD EPYC (Milan)", "cores": 2}) == "amd-epyc-milan-2-cores"


def test_a_run_is_kept_with_the_others_of_its_release(tmp_path: Path) -> None:
    """The newest file of a kind is the one to compare with; the oldest runs go."""
    for at in range(RUNS + 2):
        record("0.1.0", "box", f"2026-11-{20 + at}", {"1": 1.04 + at / 1000}, tmp_path)
    record("0.2.0", "box", "2026-11-29", {"1": 1.03}, tmp_path)
    record("0.2.0", "other", "2026-11-30", {"1": 1.01}, tmp_path)
    found = last_recorded("box", tmp_path)
    assert found is not None
    assert (found.release, found.runs) == ("0.2.0", ({"1": 1.03},))
    (tmp_path / "0.2.0-box.json").unlink()
    found = last_recorded("box", tmp_path)
    assert found is not None
    assert [run["1"] for run in found.runs] == [1.042, 1.043, 1.044]
    assert last_recorded("none", tmp_path) is None


@pytest.mark.parametrize(
    ("row", "now", "verdict"),
    [
        ("1", 1.05, "as before"),
        ("1", 1.065, "worse"),
        ("1", 1.015, "better"),
        ("5", 0.96, "as before"),
        ("5", 0.90, "worse"),
        ("5", 0.99, "better"),
    ],
)
def test_only_what_is_beyond_the_noise_is_better_or_worse(row: str, now: float, verdict: str) -> None:
    """Beyond what the recorded runs lie apart, and in the sense of the row's goal."""
    runs = ({"1": 1.03, "5": 0.95}, {"1": 1.04, "5": 0.96}, {"1": 1.05, "5": 0.97})
    (found,) = differences(Recorded("0.1.0", "box", "", runs), {row: now})
    assert (found.verdict, found.before) == (verdict, runs[1][row])


def test_rows_that_only_one_side_has_are_left_out() -> None:
    """A row that is new, or that could not be measured here."""
    values = values_of([Row("1", None, "no line"), Row("2", 1.0, "")])
    assert values == {"2": 1.0}
    assert differences(Recorded("0.1.0", "box", "", ({"1": 1.0},)), values) == []


def test_the_last_runs_become_the_table_of_the_page() -> None:
    """Each run a column, the verdict over all of them; around the marks nothing changes, and writing it again neither."""
    runs = ({"1": 2.0, "2": 1.0}, {"1": 1.03, "2": 1.01}, {"1": 1.05, "2": 1.01}, {"1": 1.02, "2": 1.012})
    recorded = Recorded("0.1.0", "box", "2026-11-22T16:00:00+00:00", runs)
    page = published(f"before\n{BEGIN}old\n{END}after\n", recorded)
    assert page.startswith(f"before\n{BEGIN}Release 0.1.0, box, whole runs: 3, the last one 2026-11-22.\n")
    assert page.endswith(f"{END}after\n")
    lines = page.splitlines()
    assert (
        "| 1 | certify over HTTP, 1 item / its line time | ≤ 1.04 | 1.030 | 1.050 | 1.020 | reached in 2 of 3 |"
        in lines
    )
    assert any(line.startswith("| 2 |") and line.endswith("| 1.010 | 1.010 | 1.012 |  |") for line in lines)
    assert any(line.startswith("| 3 |") and line.endswith("| – | – | – | not measured |") for line in lines)
    assert any(line.startswith("| 0a |") and line.endswith("| for comparison |") for line in lines)
    assert published(page, recorded) == page
    with pytest.raises(ValueError, match="no place"):
        published("nothing", recorded)
