"""Ranges of the A report and the history (decision 18)."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.core_samples import AT

from daemon.core.clock import DAY, millis, millis_text
from daemon.core.errors import InvalidRequest
from daemon.core.report.ranges import read_range
from daemon.paper.layout import last_moment

OUAGA = "Africa/Ouagadougou"


def read(from_, to, timezone=OUAGA):
    return tuple(millis_text(at) for at in read_range(from_, to, now=AT, timezone=timezone))


def faults(from_, to):
    with pytest.raises(InvalidRequest) as caught:
        read_range(from_, to, now=AT, timezone=OUAGA)
    return [error.field for error in caught.value.errors]


@pytest.mark.parametrize(
    ("ends", "start", "end"),
    [
        (("2026-01-01", "2026-01-31"), "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"),
        (("2026-03-29", "2026-03-29", "Europe/Paris"), "2026-03-28T23:00:00.000Z", "2026-03-29T22:00:00.000Z"),
        *(
            ((f"2026-01-01T{start}", f"2026-01-01T{end}"), *(f"2026-01-01T{at}Z" for at in found))
            for start, end, *found in (
                ("01:30:00+01:00", "00:00:00.5-01:00", "00:30:00.000", "01:00:00.500"),
                ("05:45:00+05:45", "00:00:00-03:30", "00:00:00.000", "03:30:00.000"),
                ("00:00:00.0001Z", "00:00:01.000000001Z", "00:00:00.001", "00:00:01.001"),
                ("00:00:00.001000001Z", "00:00:01Z", "00:00:00.002", "00:00:01.000"),
                ("01:00:00 01:00", "01:30:00z", "00:00:00.000", "01:30:00.000"),
            )
        ),
    ],
)
def test_a_range_is_two_instants(ends, start, end):
    """A date is a whole day of the configured zone, that of `to` included, also across a change of the clocks: the 29th of March 2026 has 23 hours in Paris. A timestamp is an
    instant, `from ≤ t < to`, with any offset: nothing that happened at .000 is at or after .0001. Clients forget to encode `+` in a query."""
    assert read(*ends) == (start, end)


def test_left_out_means_the_last_31_days():
    """`to` is now, the millisecond itself included, and `from` 31 days before `to`."""
    start, end = read_range(None, None, now=AT, timezone=OUAGA)
    assert (start, end) == (AT + 1 - 31 * DAY, AT + 1)
    start, end = read_range(None, "2026-02-01T00:00:00Z", now=AT, timezone=OUAGA)
    assert end - start == 31 * DAY


def test_the_ends_of_the_calendar_can_be_asked_for():
    """Tills write 9999-12-31 for ever; what comes out can still be written down."""
    assert read("0001-01-01", "9999-12-31") == ("0001-01-01T00:00:00.000Z", "9999-12-31T00:00:00.000Z")
    assert read(None, "0001-01-01") == ("0001-01-01T00:00:00.000Z", "0001-01-02T00:00:00.000Z")
    for name in ("America/New_York", "Asia/Tokyo"):
        start, _ = read_range("0001-01-01T00:00:00+14:00", None, now=AT, timezone=name)
        assert datetime.fromtimestamp(start / 1000, ZoneInfo(name)).year == 1
    assert read("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "Asia/Tokyo")
    assert last_moment(read(None, "0001-01-01T00:00:00+23:59")[1]) == "0001-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-02-30",
        "2026-1-1",
        "20260101",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00Z",
        "2026-W01-1",
        "٢٠٢٦-٠١-٠١",
        "2026-01-01\n",
        "0000-01-01",
    ],
)
def test_what_cannot_be_read_is_refused_with_its_side(text):
    """A timestamp needs an offset; nothing is guessed."""
    assert faults(text, None) == ["from"]
    assert faults(None, text) == ["to"]
    assert sorted(faults(text, text)) == ["from", "to"]


def test_from_after_to_is_refused():
    """Also when `to` is left out and `from` is in the future; equal instants are an empty range."""
    assert faults("2026-01-02", "2026-01-01") == ["from"]
    assert faults("2027-01-01", None) == ["from"]
    assert read("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z")


@given(st.text(max_size=40), st.none() | st.text(max_size=40))
def test_any_text_is_a_range_or_a_refusal(from_, to):
    """Nothing a client sends makes the reading fail otherwise."""
    try:
        start, end = read_range(from_, to, now=AT, timezone="Europe/Paris")
    except InvalidRequest:
        return
    assert start <= end


@given(st.datetimes(datetime(1, 3, 1), datetime(9999, 12, 30), timezones=st.just(UTC)))  # noqa: DTZ001 - hypothesis wants naive bounds
def test_a_written_instant_is_read_as_itself(moment):
    """What our own reports print can be asked for again."""
    at = millis(moment)
    assert read_range(millis_text(at), "9999-12-31", now=AT, timezone=OUAGA)[0] == at
