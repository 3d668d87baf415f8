"""Time that never goes backwards (decision 21)."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.core_samples import AT

from daemon.core import clock


def test_the_machines_digits_are_utc():
    """`YYYYMMDDhhmmss` in a country that is UTC+0 all year, or in the zone that the configuration names; the last hour of the calendar is no time in one behind UTC. The drift is
    positive when the box is ahead; within the machine's own second there is none."""
    assert clock.machine_millis("20260105100000") == AT - 123
    assert clock.machine_millis("20260105110000", clock.zone("Africa/Lagos")) == AT - 123
    assert clock.machine_millis("99991231235959", clock.zone("America/New_York")) is None
    drifts = {"20260105100000": 0, "20260105095800": 120, "20260105100130": -90}
    assert {digits: clock.drift_seconds(AT, digits) for digits in drifts} == drifts


@pytest.mark.parametrize(
    "garbage", ["", "2026", "20261305100000", "20260105106000", "2026010510000x", "٢٠٢٦٠١٠٥١٠٠٠٠٠", "+2026010510000"]
)
def test_garbage_is_no_time(garbage):
    """A machine whose clock cannot be read has no time, and no drift."""
    assert clock.machine_millis(garbage) is None
    assert clock.drift_seconds(AT, garbage) is None


@given(st.text())
def test_any_text_can_be_asked(text):
    """Nothing a machine sends makes the reading fail."""
    clock.machine_millis(text)


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis wants naive bounds
def test_a_written_instant_reads_back(moment):
    """RFC 3339, UTC, `Z`, milliseconds, for every year a date can name."""
    at = clock.millis(moment)
    text = clock.millis_text(at)
    assert len(text) == 24
    assert text.endswith("Z")
    assert clock.millis(datetime.fromisoformat(text)) == at
