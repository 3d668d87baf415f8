"""Times: RFC 3339 in UTC with `Z` for people, milliseconds since 1970 for hashes."""

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from common.wire.errors import BadEvent

_START = datetime(1970, 1, 1, tzinfo=UTC)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)


def now_millis() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def instant_millis(text: str, field: str) -> int:
    """Raises BadEvent, naming the field, if it is not an instant."""
    millis = _millis(text)
    if millis is None:
        raise BadEvent(field, "is not an instant in UTC")
    return millis


@lru_cache(maxsize=1024)  # each check of a closure reads its times
def _millis(text: str) -> int | None:
    if _INSTANT.fullmatch(text) is None:
        return None
    try:
        return (datetime.fromisoformat(text) - _START) // timedelta(milliseconds=1)
    except ValueError:
        return None


def instant_text(at: int) -> str:
    return (_START + timedelta(milliseconds=at)).isoformat(timespec="milliseconds")[:23] + "Z"
