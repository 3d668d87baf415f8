"""The query of a GET, read strictly: a parameter twice or unreadable is refused by name, an unknown one is ignored."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from common.language import Text
from daemon.api.access.context import ApiRequest, deps_of
from daemon.core.errors import FieldError, InvalidRequest
from daemon.core.report.ranges import read_range

MAX_LIMIT = 1000
"""Decision 20: of a page of the history, and its default."""
_MAX_DIGITS = 9


def read_query(request: ApiRequest, *names: str) -> dict[str, str]:
    """The values of the parameters of these names. `+` stands for itself, as in a time's offset that nobody escaped."""
    found: dict[str, str] = {}
    for part in request.scope["query_string"].split(b"&"):
        name, _, value = part.partition(b"=")
        key = unquote_to_bytes(name).decode("utf-8", "replace")
        if key not in names:
            continue
        if key in found:
            raise InvalidRequest([FieldError(key, Text("is given twice"))])
        try:
            found[key] = unquote_to_bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidRequest([FieldError(key, Text("is not UTF-8"))]) from None
    return found


def range_of(request: ApiRequest, query: dict[str, str]) -> tuple[int, int]:
    """`start <= t < end` in milliseconds (decision 18). Now is what the book counts by, which a wrong clock of the box does
    not move (decision 21): otherwise its latest certifications would lie after `to`."""
    now, timezone = request.auth.worker.now(), deps_of(request).timezone
    return read_range(query.get("from"), query.get("to"), now=now, timezone=timezone)


def integer(query: dict[str, str], name: str, *, default: int, least: int, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and least <= int(text) <= most:
        return int(text)
    raise InvalidRequest(
        [FieldError(name, Text("has to be a whole number from {least} to {most}", least=least, most=most))]
    )
