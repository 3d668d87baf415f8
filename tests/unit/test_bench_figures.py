"""The bench's arithmetic: what it sums up, what counts as reached, how long bytes take, what it draws."""

import io
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.figures import Row, median, milliseconds, quantile, ratio, shown, table
from bench.goals import GOALS
from bench.plots import Axis, Line, chart, decades
from bench.results import box
from bench.rows import page, slow_box
from bench.shop.shops import line_seconds
from bench.shop.till import rate


def test_every_row_of_the_issue_has_a_goal():
    """Numbers without a gap; some of them ask for two or more figures, and row 0 for none: it is there to compare with."""
    numbers = {int(row.rstrip("abcde")) for row, goal in GOALS.items() if goal.limit is not None}
    assert numbers == set(range(1, max(numbers) + 1))


@pytest.mark.parametrize(("row", "reached", "missed"), [("1", 1.04, 1.0401), ("5", 0.95, 0.9499), ("8", 1000, 999.9)])
def test_a_goal_itself_is_reached(row, reached, missed):
    """`≤` and `≥` mean what they say."""
    assert Row(row, reached, "").verdict == "pass"
    assert Row(row, missed, "").verdict == "MISS"


def test_what_was_not_measured_neither_passes_nor_misses():
    """Its note says why, and it stands in the table."""
    row = Row("6a", None, "no SQLite to be reached")
    assert row.verdict == "not measured"
    assert "no SQLite to be reached" in table([row])


def test_a_figure_to_compare_with_has_nothing_to_reach():
    """The box without mcfd neither passes nor misses, however slow it is."""
    row = Row("0a", 1.5, "")
    assert row.verdict == "beside"
    assert "–" in table([row]).splitlines()[1].split()


def test_medians_not_best_values():
    """One slow certification in ten changes nothing, and neither does a quick one."""
    times = [0.001, *[0.060] * 8, 0.500]
    assert median(times) == 0.060
    assert ratio(times, [0.059] * 3) == pytest.approx(60 / 59)
    assert quantile(times, 0.95) == 0.500
    assert quantile(times, 0.5) == 0.060


def test_a_quantile_is_a_nearest_rank():
    """Of a hundred values the p99 is the 99th and not the worst, of ten the p90 is the ninth; of fewer than that it is the worst, and of one that one."""
    hundred = [float(number) for number in range(1, 101)]
    assert quantile(hundred[::-1], 0.99) == 99
    assert quantile(hundred, 0.5) == 50
    assert quantile(hundred[:10], 0.9) == 9
    assert quantile(hundred[:80], 0.99) == 80
    assert quantile([7.0], 0.99) == 7
    assert quantile([7.0], 0) == 7


def test_what_delays_a_till_in_each_round_shows_and_what_does_so_once_does_not():
    """Row 14c: two sales of a hundred are slow in every round, and the whole of one round; the first is the page's, the second the host's."""
    calm, hindered = [0.060] * 100, [0.200] * 100
    assert page._usual_p99([calm, hindered, calm]) == 0.060
    assert page._usual_p99([[*calm[2:], 0.070, 0.070]] * 3) == 0.070


def test_the_line_needs_ten_bits_a_byte():
    """680 bytes at 115 200 bit/s: 59 ms, as the issue reckons."""
    assert line_seconds(680) == pytest.approx(0.059, abs=0.0005)


def test_a_rate_counts_from_the_end_of_the_warm_up():
    """Ten answers a second after a slow start are ten a second."""
    times = [0.0, 3.0, *(4.0 + turn / 10 for turn in range(21))]
    assert rate(times, 2) == pytest.approx(10)


def test_values_are_shown_with_the_digits_that_count():
    """From microseconds to minutes, from ratios to thousands."""
    assert [milliseconds(value) for value in (0.000042, 0.0606, 7.5)] == ["42 µs", "60.6 ms", "7.50 s"]
    assert [shown(value) for value in (1.0234, 59.81, 5021.4)] == ["1.023", "59.8", "5,021"]


def test_the_table_says_goal_value_and_verdict():
    """Each row in one line, ready to be read."""
    line = table([Row("1", 1.0312, "60.9 ms / 59.1 ms, 150 certifications")]).splitlines()[1]
    assert line.split("  ")[0] == "1"
    for part in ("≤ 1.04", "1.031", "pass", "60.9 ms / 59.1 ms"):
        assert part in line


def test_a_chart_is_well_formed_and_inside_its_frame():
    """SVG that any browser reads, every point where its axes put it."""
    points = [(10, 0.001), (100_000, 0.2)]
    text = chart(
        "A & B",
        Axis("count", decades([10, 100_000]), str, logarithmic=True),
        Axis("time", decades([0.001, 0.2]), str, logarithmic=True),
        [Line("summing <all>", points), Line("ours", [(10, 0.001), (100_000, 0.001)], dashed=True)],
    )
    root = ET.fromstring(text)  # noqa: S314  our own text
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    circles = [node for node in root.iter() if node.tag.endswith("circle")]
    assert len(circles) == 4
    assert all(0 < float(c.attrib["cx"]) < width and 0 < float(c.attrib["cy"]) < height for c in circles)
    rising, flat = circles[:2], circles[2:]
    assert float(rising[0].attrib["cy"]) > float(rising[1].attrib["cy"])
    assert flat[0].attrib["cy"] == flat[1].attrib["cy"]


class Brake:
    """Takes what it was told last; a loop takes a fifth longer yet, for timers and switches, and one look in six is far off."""

    def __init__(self):
        self.stdin, self.stdout, self.looks = io.StringIO(), io.StringIO("held\n" * 100), 0

    def loop(self):
        self.looks += 1
        told = self.stdin.getvalue().split()
        left = 1 - float(told[-1]) if told else 1.0
        return (1.2 if told else 1.0) / left * (3.0 if self.looks % 6 == 3 else 1.0)


def test_a_share_is_found_whatever_single_looks_say():
    """Row 18 slows a core down by a measured factor: one wrong look is made good by those after it."""
    brake = Brake()
    assert slow_box._regulated(brake, brake.loop) == pytest.approx(slow_box.TIMES, abs=slow_box.TOLERATED)


def test_a_slow_core_is_reckoned_where_none_can_be_had():
    """A figure always, which says how it came about: four times what stands beside the line."""
    row = slow_box._reckoned(Row("18a", 1.05, "44 / 42 ms"), "one core only")
    assert row.value == pytest.approx(1.2)
    assert row.note.startswith("reckoned, 4 ×")
    assert "one core only" in row.note
    assert row.detail["at_full_speed"] == 1.05


def test_the_box_is_named(tmp_path: Path, monkeypatch):
    """Figures without the machine they were taken on mean nothing."""
    monkeypatch.setattr("bench.results.RESULTS", tmp_path)
    assert {"cpu", "cores", "fsync_ms", "python", "sqlite", "revision"} <= set(box())
