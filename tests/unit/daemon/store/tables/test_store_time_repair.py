"""By how much a clock was ahead."""

from __future__ import annotations

import pytest

from daemon.core.clock import HOUR
from daemon.store.tables.book.entries import hours_ahead


@pytest.mark.parametrize(("by", "hours"), [(1, 1), (HOUR - 1, 1), (HOUR, 1), (HOUR + 1, 2), (49 * HOUR, 49)])
def test_a_clock_is_ahead_by_whole_hours(by: int, hours: int) -> None:
    """The next one up: the last sale was a while ago."""
    assert hours_ahead(1_765_000_000_000 + by, 1_765_000_000_000) == hours * HOUR
