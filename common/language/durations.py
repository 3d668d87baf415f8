"""Lengths of time in words."""

from __future__ import annotations

from common.language import Text

MINUTE, HOUR, DAY = 60, 3600, 86_400


def duration(seconds: int) -> Text:
    """Its length in the largest unit of which it has two, whatever its sign."""
    length = abs(seconds)
    if length < 2 * MINUTE:
        return Text("{count} s", count=length)
    if length < 2 * HOUR:
        return Text("{count} min", count=length // MINUTE)
    if length < 2 * DAY:
        return Text("{count} h", count=length // HOUR)
    return Text("{count} d", count=length // DAY)
