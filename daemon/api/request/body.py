"""From the bytes of a request to the object that `core.intake` reads: exact numbers, no duplicate keys, bounded in every way.

Neither Litestar's nor msgspec's decoding is used: the first is lax, the second keeps the last of two equal keys and cannot
hand over exact numbers without a schema. The scanner is the standard library's, in C, with hooks.
"""

from __future__ import annotations

import asyncio
import json
import re
from decimal import Decimal
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from litestar.types import Receive

from common.language import Text
from common.numbers import whole_number
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.http.answers import Headers
from daemon.api.refusals import BodyTimeout, InvalidJson, TooLarge, UnsupportedMediaType
from daemon.core.errors import InvalidRequest
from daemon.core.invoice.request import MAX_ITEMS
from daemon.core.report.ranges import read_range

MAX_BODY: Final = 1024 * 1024
"""Decision 11: 1 MiB."""
SMALL_BODY: Final = 8 * 1024
"""Without a key or a session yet: a name and a password, or a code."""
BODY_SECONDS = 30.0
MAX_DEPTH: Final = 32
"""An invoice has 3 levels; this is room for whatever unknown fields hold."""
MAX_GROUPS: Final = 4096
MAX_VALUES: Final = 50_000
"""Objects (and arrays) and values of one body: an invoice of 1 000 items with a dozen fields each, four times over."""
MAX_DIGITS: Final = 40
"""Of a number that becomes an `int`; Python's own limit is in the thousands."""
MOST_DIGITS: Final = 1000
"""Of a number that is read at all; every longer one is `BEYOND`."""
MAX_EXPONENT_DIGITS: Final = 6
BEYOND: Final = Decimal("1E+999999")
"""Stands for a number with an exponent that cannot be meant. The core refuses it by name wherever it counts, as it does
`1e400`; where a malformed number is folded or ignored (decisions 1 and 4), it is no reason to refuse the invoice either."""


_EXPONENT = re.compile(r"[eE][+-]?0*([0-9]+)$")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_MESSAGES = {
    str(text): text
    for text in (
        Text("Expecting value"),
        Text("Expecting ',' delimiter"),
        Text("Expecting ':' delimiter"),
        Text("Expecting property name enclosed in double quotes"),
        Text("Illegal trailing comma before end of object"),
        Text("Illegal trailing comma before end of array"),
        Text("Unterminated string starting at"),
        Text("Invalid control character at"),
        Text("Invalid \\escape"),
        Text("Invalid \\uXXXX escape"),  # JSON's own notation, word for word
        Text("Extra data"),
    )
}
"""The messages of the standard library's scanner, so that they can be translated."""
_TOO_DEEP = Text("the body is nested deeper than {levels} levels", levels=MAX_DEPTH)
_TOO_MANY = Text(
    "must hold at most {groups} objects and {values} values: an invoice has at most {items} items",
    groups=MAX_GROUPS,
    values=MAX_VALUES,
    items=MAX_ITEMS,
)
MAX_LIMIT = 1000
"""Decision 20: of a page of the history, and its default."""


def json_of(headers: Headers, raw: bytes) -> dict[str, Any]:
    """The object in a body; UnsupportedMediaType where its headers do not say that it is JSON."""
    _check_type(headers)
    return parse(raw)


async def read_empty(headers: Headers, receive: Receive) -> bytes:
    """The body of a request that needs none: empty, whatever the content type says, or a JSON object."""
    raw = await read_bytes(headers, receive)
    if raw:
        json_of(headers, raw)
    return raw


async def read_bytes(headers: Headers, receive: Receive, most: int = MAX_BODY) -> bytes:
    """Counted while it arrives, so a chunked body cannot grow past the limit either.

    A body that stops half-way ends in InvalidJson, one that is too slow in BodyTimeout, and nothing has been looked at."""
    _check_length(headers, most)
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise InvalidJson(Text("the body ended before it was complete"))
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > most:
                    raise TooLarge(Text("the body is larger than {max_body} bytes", max_body=most))
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    except TimeoutError:
        raise BodyTimeout from None


def parse(raw: bytes) -> dict[str, Any]:
    """An object with `str`, `bool`, `None`, `list`, `dict`, `int` and `Decimal` in it."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidJson(Text("the body is not UTF-8")) from None
    try:
        _check_values(text)
        value = _DECODER.decode(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise InvalidJson(
            Text(
                "{msg} at line {lineno} column {colno}",
                msg=_MESSAGES.get(error.msg, error.msg),
                lineno=error.lineno,
                colno=error.colno,
            )
        ) from None
    except RecursionError:
        raise InvalidJson(_TOO_DEEP) from None
    if type(value) is not dict:
        raise InvalidJson(Text("the body has to be a JSON object"))
    if text.count("{") + text.count("[") > MAX_DEPTH or _SURROGATE.search(text):
        _inspect(value)
    return value


def _check_values(text: str) -> None:
    """Before anything is made of it: a byte or two of JSON can become an object of a hundred. InvalidRequest (decision 3), as below the limit of bytes."""
    groups = text.count("{"), text.count("[")
    if max(groups) > MAX_GROUPS:
        start = text[:4096]
        if start.count("{") + start.count("[") - start.count("}") - start.count("]") > MAX_DEPTH:
            raise InvalidJson(_TOO_DEEP)
        raise InvalidRequest.at("body", _TOO_MANY)
    if text.count(",") > MAX_VALUES:
        raise InvalidRequest.at("body", _TOO_MANY)


def _check_type(headers: Headers) -> None:
    sent = encoding = b""
    for name, value in headers:
        if name == b"content-type":
            sent = value
        elif name == b"content-encoding":
            encoding = value
    if encoding and encoding.strip().lower() != b"identity":
        raise UnsupportedMediaType(Text("a compressed body is not taken; send it without Content-Encoding"))
    if sent == b"application/json":
        return
    media_type, _, parameters = sent.partition(b";")
    if media_type.strip().lower() != b"application/json":
        raise UnsupportedMediaType(Text("the body has to be sent with Content-Type: application/json"))
    charset = parameters.replace(b" ", b"").replace(b'"', b"").lower()
    if charset.startswith(b"charset=") and charset != b"charset=utf-8":
        raise UnsupportedMediaType(Text("JSON is UTF-8; another charset is not taken"))


def _check_length(headers: Headers, most: int) -> None:
    for name, value in headers:
        if name == b"content-length" and int(value) > most:
            raise TooLarge(Text("the body is larger than {max_body} bytes", max_body=most))


def _integer(text: str) -> int | Decimal:
    if len(text) <= MAX_DIGITS:
        return int(text)
    return Decimal(text) if len(text) <= MOST_DIGITS else BEYOND


def _decimal(text: str) -> Decimal:
    if len(text) > MOST_DIGITS:
        return BEYOND
    exponent = _EXPONENT.search(text)
    if exponent and len(exponent[1]) > MAX_EXPONENT_DIGITS:
        return BEYOND
    return Decimal(text)


def _constant(text: str) -> None:
    raise InvalidJson(Text("{text} is not JSON", text=text))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # add gives None
        raise InvalidJson(Text("the key {value!r} occurs twice in one object", value=twice[:40]))
    return value


_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_decimal, parse_constant=_constant, object_pairs_hook=_object
)


def _inspect(value: object) -> None:
    """Depth, and strings that no encoder takes (half of a surrogate pair). Only bodies that may hold either come here."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(node)
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
            elif isinstance(node, str):
                _check_text(node)
        if not below:
            return
        level = below
    raise InvalidJson(_TOO_DEEP)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidJson(Text("a string holds half of a surrogate pair, which is no character")) from None


def read_query(request: ApiRequest, *names: str) -> dict[str, str]:
    """The values of the parameters of these names. `+` stands for itself, as in a time's offset without an escape."""
    found: dict[str, str] = {}
    for part in request.scope["query_string"].split(b"&"):
        name, _, value = part.partition(b"=")
        key = unquote_to_bytes(name).decode("utf-8", "replace")
        if key not in names:
            continue
        if key in found:
            raise InvalidRequest.at(key, Text("is given twice"))
        try:
            found[key] = unquote_to_bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidRequest.at(key, Text("is not UTF-8")) from None
    return found


def range_of(request: ApiRequest, query: dict[str, str]) -> tuple[int, int]:
    """`start <= t < end` in milliseconds (decision 18). Now is what the book counts by, which a wrong clock of the box does
    not move (decision 21): otherwise its latest certifications would lie after `to`."""
    now, timezone = request.auth.worker.now(), deps_of(request).timezone
    return read_range(query.get("from"), query.get("to"), now=now, timezone=timezone)


def read_page(request: ApiRequest, *, last: int) -> tuple[int, int, int, int]:
    """`start` and `end` of a list that is read page by page, and after which number (up to `last`) how many of it: `from`, `to`, `after`, `limit`."""
    query = read_query(request, "from", "to", "limit", "after")
    start, end = range_of(request, query)
    limit = integer(query, "limit", default=MAX_LIMIT, least=1, most=MAX_LIMIT)
    return start, end, integer(query, "after", default=0, least=0, most=last), limit


def integer(query: dict[str, str], name: str, *, default: int, least: int, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if (number := whole_number(text)) is not None and least <= number <= most:
        return number
    raise InvalidRequest.at(name, Text("has to be a whole number from {least} to {most}", least=least, most=most))
