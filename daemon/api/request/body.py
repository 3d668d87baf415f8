"""Decodes a request's body for `core.intake`: exact numbers, no duplicate keys, bounded size, depth and number of
values.

Litestar's decoding is lax. msgspec keeps the last of two equal keys and needs a schema for exact numbers. So the
standard library's scanner is used, with hooks."""

import asyncio
import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, unquote_to_bytes

from litestar.types import Receive

from common.language import Text, by_weight
from common.numbers import parse_integer
from common.wire.json_values import read_decimal, read_integer
from daemon.api.access.context import ApiRequest, deps_of
from daemon.api.http.answers import Headers
from daemon.api.refusals import BodyTimeout, InvalidJson, TooLarge, UnsupportedMediaType
from daemon.core.errors import InvalidRequest
from daemon.core.invoice.request import MAX_ITEMS
from daemon.core.report.ranges import read_range

MAX_BODY: Final = 1024 * 1024
"""Bytes (decision 11)."""
SMALL_BODY: Final = 8 * 1024
"""Bytes of a body without a key or session: a name and a password, or a code."""
BODY_SECONDS = 30.0
MAX_DEPTH: Final = 32
"""Levels of nesting; an invoice has 3, unknown fields may have more."""
MAX_FIELDS: Final = 200
MAX_GROUPS: Final = 4096
MAX_VALUES: Final = 50_000
"""Objects, arrays and values in one body: four times an invoice of 1 000 items with a dozen fields each."""
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
        Text("Unterminated string starting"),
        Text("Invalid control character"),
        Text("Invalid \\escape"),
        Text("Invalid \\uXXXX escape"),  # JSON's own notation, word for word
        Text("Extra data"),
    )
}
"""Messages of the standard library's scanner, for translation."""
_TOO_DEEP = Text("the body is nested deeper than {levels} levels", levels=MAX_DEPTH)
_TOO_MANY = Text(
    "must hold at most {groups} objects and {values} values: an invoice has at most {items} items",
    groups=MAX_GROUPS,
    values=MAX_VALUES,
    items=MAX_ITEMS,
)
MAX_LIMIT = 1000
"""Greatest number of entries on a page of the history, and the default (decision 20)."""
MAX_NUMBER: Final = 999_999_999
"""Greatest number of a closure, a movement or an outage."""


async def read_json(request: ApiRequest) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a body, and its object."""
    raw = await read_bytes(request.scope["headers"], request.receive)
    return raw, json_of(request.scope["headers"], raw)


def json_of(headers: Headers, raw: bytes) -> dict[str, Any]:
    """The object in a body; UnsupportedMediaType if its content type is not JSON."""
    _check_type(headers)
    return parse(raw)


async def read_empty(headers: Headers, receive: Receive) -> tuple[bytes, dict[str, Any]]:
    """The bytes of an optional body, and its object: empty with any content type, or JSON."""
    raw = await read_bytes(headers, receive)
    return raw, json_of(headers, raw) if raw else {}


async def read_bytes(headers: Headers, receive: Receive, most: int = MAX_BODY) -> bytes:
    """The bytes of a body, counted while they arrive, so that a chunked body cannot exceed the limit either. TooLarge,
    InvalidJson for a body that stops midway, BodyTimeout for one that is too slow."""
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
                    return b"".join(chunks)
    except TimeoutError:
        raise BodyTimeout from None


def parse(raw: bytes) -> dict[str, Any]:
    """An object of `str`, `bool`, `None`, `list`, `dict`, `int` and `Decimal` values; InvalidJson."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidJson(Text("the body is not UTF-8")) from None
    try:
        _check_values(text)
        value = _DECODER.decode(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        place = {"lineno": error.lineno, "colno": error.colno}
        found = error.msg.removesuffix(" at")
        why = Text("{msg} at line {lineno} column {colno}", msg=_MESSAGES.get(found, found), **place)
        raise InvalidJson(why) from None
    except RecursionError:
        raise InvalidJson(_TOO_DEEP) from None
    if type(value) is not dict:
        raise InvalidJson(Text("the body has to be a JSON object"))
    if text.count("{") + text.count("[") > MAX_DEPTH or _SURROGATE.search(text):
        _inspect(value)
    return value


def _check_values(text: str) -> None:
    """Counts values before decoding: two bytes of JSON can become a hundred in memory. InvalidRequest (decision 3)."""
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
    if charset.startswith(b"charset=") and charset not in (b"charset=utf-8", b"charset=utf8"):
        raise UnsupportedMediaType(Text("JSON is UTF-8; another charset is not taken"))


def _check_length(headers: Headers, most: int) -> None:
    for name, value in headers:
        if name == b"content-length" and int(value) > most:
            raise TooLarge(Text("the body is larger than {max_body} bytes", max_body=most))


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
    parse_int=read_integer, parse_float=read_decimal, parse_constant=_constant, object_pairs_hook=_object
)


def _inspect(value: object) -> None:
    """Refuses too much nesting, and strings with half a surrogate pair, which cannot be encoded."""
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
    """The values of the URL parameters of these names. `+` is a space, as HTML forms and HTTP libraries write one;
    `read_instant` takes a space for the sign of an offset that was not escaped."""
    found: dict[str, str] = {}
    for part in request.scope["query_string"].split(b"&"):
        name, _, value = part.partition(b"=")
        key = unquote_to_bytes(name).decode("utf-8", "replace")
        if key not in names:
            continue
        if key in found:
            raise InvalidRequest.at(key, Text("is given twice"))
        try:
            found[key] = unquote_to_bytes(value.replace(b"+", b" ")).decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidRequest.at(key, Text("is not UTF-8")) from None
    return found


def accepted_form(request: ApiRequest, forms: Mapping[str, str], usual: str) -> str:
    """The form of the media type of `Accept` with the highest weight among `forms`; `usual` if there is none."""
    kinds = by_weight(request.headers.get("accept", ""))
    return next((forms[kind] for kind in kinds if kind in forms), usual)


def fields(text: str) -> dict[str, str]:
    """The first value of each field of a screen's query or form."""
    with contextlib.suppress(ValueError):
        return {name: values[0].strip() for name, values in parse_qs(text, max_num_fields=MAX_FIELDS).items()}
    return {}


def range_of(request: ApiRequest, query: dict[str, str]) -> tuple[int, int]:
    """`start <= t < end` in ms (decision 18). "Now" is the book's time (decision 21): after a fast clock the latest
    certifications would otherwise be after `to`."""
    now, timezone = request.auth.worker.now(), deps_of(request).timezone
    return read_range(query.get("from"), query.get("to"), now=now, timezone=timezone)


def read_page(request: ApiRequest) -> tuple[int, int, int, int]:
    """`start`, `end`, `after` and `limit` of a list of a range that is read page by page."""
    return *range_of(request, read_query(request, "from", "to")), *read_place(request)


def read_place(request: ApiRequest) -> tuple[int, int]:
    """`after` and `limit` of a list that is read page by page."""
    query = read_query(request, "limit", "after")
    after = integer(query, "after", default=0, least=0, most=MAX_NUMBER)
    return after, integer(query, "limit", default=MAX_LIMIT, least=1, most=MAX_LIMIT)


def integer(query: dict[str, str], name: str, *, default: int, least: int, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if (number := parse_integer(text)) is not None and least <= number <= most:
        return number
    raise InvalidRequest.at(name, Text("has to be a whole number from {least} to {most}", least=least, most=most))
