"""Times: RFC 3339 in UTC with `Z` where people read, milliseconds since 1970 where hashes are taken."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from exchange.errors import BadEvent

_START = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)


def instant_millis(text: str, field: str) -> int:
    """BadEvent, naming the field, when it is no instant."""
    told = BadEvent(field, "is not an instant in UTC")
    if _INSTANT.fullmatch(text) is None:
        raise told
    try:
        return (datetime.fromisoformat(text) - _START) // timedelta(milliseconds=1)
    except ValueError:
        raise told from None


def instant_text(at: int) -> str:
    return (_START + timedelta(milliseconds=at)).isoformat(timespec="milliseconds")[:23] + "Z"
