"""What a body is, and what it may cost before anything is made of it (attack 4)."""

import contextlib
import random
import time
from decimal import Decimal
from typing import Any

import pytest

from common.language import translate
from common.wire.json_values import BEYOND, MAX_DIGITS, MAX_EXPONENT_DIGITS, MAX_PLAIN_DIGITS
from daemon.api.refusals import InvalidJson, TooLarge, UnsupportedMediaType
from daemon.api.request.body import (
    MAX_BODY,
    MAX_DEPTH,
    MAX_GROUPS,
    MAX_VALUES,
    json_of,
    parse,
    read_bytes,
    read_empty,
)
from daemon.core.errors import InvalidRequest

JSON = [(b"content-type", b"application/json")]


def feed(*chunks: bytes, cut: bool = False) -> Any:
    """An ASGI `receive` that gives the chunks one by one; `cut` ends in a hang-up instead of the last chunk's end."""
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if cut:
        messages.append({"type": "http.disconnect"})
    else:
        messages[-1]["more_body"] = False
    waiting = iter(messages)

    async def receive() -> Any:
        return next(waiting)

    return receive


LONG = ("1" * (MAX_DIGITS + 1), "0." + "1" * (MAX_DIGITS - 1), "1e" + "1" * (MAX_EXPONENT_DIGITS + 1))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("15000", 15000),
            ("-0", 0),
            ("9007199254740993", 9007199254740993),
            ("1" * MAX_PLAIN_DIGITS, int("1" * MAX_PLAIN_DIGITS)),
        ),
        *((text, Decimal(text)) for text in ("15000.0", "2.5", "1e2", "0.1", "1e400", "-1e400")),
        *((text, Decimal(text)) for text in ("1" * (MAX_PLAIN_DIGITS + 1), "1" * MAX_DIGITS)),
        *((text, Decimal(text)) for text in ("0." + "1" * (MAX_DIGITS - 2), "1e" + "1" * MAX_EXPONENT_DIGITS)),
        *((text, BEYOND) for text in (*LONG, "1e999999999", "1e-999999999", "0." + "1" * 9000, "9" * 5000)),
        *((text, BEYOND) for text in ("1E+0" + "9" * 4000, "1e99999999999999999999")),
    ],
)
def test_numbers_are_exact(text: str, value: object) -> None:
    """Never a binary float; one that nobody can mean is a stand-in far beyond any amount, and costs no time."""
    began = time.process_time()
    found = parse(f'{{"a": {text}}}'.encode())["a"]
    assert time.process_time() - began < 0.1
    assert found == value
    assert type(found) is type(value)
    assert (found is BEYOND) == (value is BEYOND)
    assert BEYOND > 10**100


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"   ",
        b"{",
        b'{"a": 1',
        b'{"a": 1}}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1_000}',
        b'{"a": 01}',
        b'{"a": .5}',
        b'{"a": 1.}',
        b'{"a": +1}',
        b"{'a': 1}",
        b'{"a": 1,}',
        b'{"a": "\n"}',
        b'{"a": "\\x"}',
        b"[]",
        b'"text"',
        b"null",
        b"\xff\xfe{\x00}\x00",
        b'{"a": "\xff"}',
        b'{"a": "\xc0\x80"}',
        b'{"a": 0x3A98}',
        b"{}{}",
        b"/* a till */ {}",
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\\ud800"}',
        b'{"\\udc00": 1}',
        b'{"a": 1, "a": 2}',
        b'{"b": {"a": 1, "a": 1}}',
        '{"a": １}'.encode(),
    ],
)
def test_what_is_not_our_json_is_refused(raw: bytes) -> None:
    """Not JSON, not UTF-8, not an object, a key twice, half a character."""
    with pytest.raises(InvalidJson):
        parse(raw)


def test_the_key_that_occurs_twice_is_named() -> None:
    """Not one that stands before it, and of a long one no more than its beginning."""
    for key in ("b", "b" * 100):
        with pytest.raises(InvalidJson, match=f"key '{key[:40]}' occurs twice"):
            parse(f'{{"a": 1, "{key}": 2, "c": 3, "{key}": 4}}'.encode())


@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_deep_nesting_is_refused(pair: str) -> None:
    """At any depth beyond the limit, whether or not Python's own recursion limit is met."""
    opening = pair[0] if pair == "[]" else '{"a":'
    for depth in (MAX_DEPTH - 1, MAX_DEPTH, 200, 900, 5_000, 100_000):
        raw = '{"x": ' + opening * depth + ("1" if pair == "{}" else "") + pair[1] * depth + "}"
        with contextlib.nullcontext() if depth < MAX_DEPTH else pytest.raises(InvalidJson, match="deep"):
            parse(raw.encode())


@pytest.mark.parametrize(
    ("unit", "most"),
    [("{}", MAX_GROUPS - 1), ("[]", MAX_GROUPS - 1), ("1", MAX_VALUES + 1)],
    ids=["{}", "[]", "values"],
)
def test_as_many_values_as_are_taken_and_one_more(unit: str, most: int) -> None:
    """The body itself is an object, the list in it an array."""
    assert len(parse(f'{{"a": [{",".join([unit] * most)}]}}'.encode())["a"]) == most
    with pytest.raises(InvalidRequest):
        parse(f'{{"a": [{",".join([unit] * (most + 1))}]}}'.encode())


def test_a_byte_order_mark_and_emoji_pass() -> None:
    """Some tills write a mark first; an escaped pair is one character."""
    assert parse(b'\xef\xbb\xbf{"a": "\\ud83d\\ude00"}') == {"a": "😀"}


def test_any_bytes_give_an_object_or_a_refusal() -> None:
    """Whatever arrives, the parser ends in one of two ways."""
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201  shown when this fails
    dice = random.Random(seed)
    whole = b'{"items": [{"name": "\\u00e9", "n": -1.5e3, "t": [true, false, null]}], "x": {}}'
    for _ in range(3000):
        raw = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            raw[dice.randrange(len(raw))] = dice.randrange(256)
        with contextlib.suppress(InvalidJson):
            assert isinstance(parse(bytes(raw)), dict)


async def test_a_body_in_pieces_is_put_together() -> None:
    """However it was cut on its way. One that stops half way is refused, even when what came would be whole by itself."""
    raw = await read_bytes(JSON, feed(b'{"a"', b": ", b"1}"))
    assert (raw, json_of(JSON, raw)) == (b'{"a": 1}', {"a": 1})
    with pytest.raises(InvalidJson):
        await read_bytes(JSON, feed(b'{"a": 1}', cut=True))


async def test_a_body_over_the_limit_is_refused_by_its_word_and_by_count() -> None:
    """By its Content-Length before a byte is read, and by counting when it is chunked."""
    with pytest.raises(TooLarge):
        await read_bytes([(b"content-length", b"%d" % (MAX_BODY + 1))], feed(b""))
    assert await read_bytes([(b"content-length", b"%d" % MAX_BODY)], feed(b"")) == b""
    with pytest.raises(TooLarge):
        await read_bytes([], feed(*[b" " * 65536] * 17))
    assert len(await read_bytes([], feed(*[b" " * 65536] * 16))) == MAX_BODY


@pytest.mark.parametrize(
    ("raw", "english", "french"),
    [
        (
            b'{"a":"b\tc"}',
            "Invalid control character at line 1 column 8",
            "caractère de contrôle interdit, ligne 1, colonne 8",
        ),
        (b'{"a":"b', "Unterminated string starting at line 1 column 6", "chaîne sans fin, ligne 1, colonne 6"),
        (b'{"a"}', "Expecting ':' delimiter at line 1 column 5", ""),
    ],
)
def test_the_place_of_a_mistake_in_json_is_told(raw: bytes, english: str, french: str) -> None:
    """The words of the scanner, and line and column, in either language."""
    with pytest.raises(InvalidJson) as refused:
        parse(raw)
    assert str(refused.value) == english
    assert french in translate(refused.value, "fr")


KINDS = {
    **dict.fromkeys((b"application/json", b"Application/JSON"), True),
    **dict.fromkeys((b"application/json; charset=utf-8", b'application/json;charset="UTF-8"'), True),
    b"application/json; charset=UTF8": True,
    **dict.fromkeys((b"text/plain", b"application/x-www-form-urlencoded", b"application/jsonp"), False),
    b"application/json; charset=latin-1": False,
}


@pytest.mark.parametrize(
    ("headers", "is_json"),
    [
        *(([(b"content-type", kind)], is_json) for kind, is_json in KINDS.items()),
        ([], False),
        ([*JSON, (b"content-encoding", b"gzip")], False),
    ],
)
async def test_what_does_not_say_that_it_is_json_is_refused(headers: list[tuple[bytes, bytes]], is_json: bool) -> None:
    """415 before the body is looked at; an empty body may stand where none is needed, whatever its type."""
    assert await read_empty(headers, feed(b"")) == (b"", {})
    if is_json:
        assert json_of(headers, b"{}") == {}
        assert await read_empty(headers, feed(b"{}")) == (b"{}", {})
        with pytest.raises(InvalidJson):
            await read_empty(headers, feed(b"[]"))
    else:
        with pytest.raises(UnsupportedMediaType):
            json_of(headers, b"{")
        with pytest.raises(UnsupportedMediaType):
            await read_empty(headers, feed(b"{}"))


def filled(start: bytes, unit: bytes, end: bytes) -> bytes:
    return start + unit * ((MAX_BODY - len(start) - len(end)) // len(unit)) + end


@pytest.mark.parametrize(
    "bomb",
    [
        filled(b'{"a":[', b"{},", b"{}]}"),
        filled(b'{"a":[', b"[],", b"[]]}"),
        filled(b'{"a":[', b"1.5,", b"1]}"),
        filled(b'{"a":[', b'"",', b'""]}'),
        filled(b'{"a":', b"[", b""),
        filled(b'{"a":', b"9", b"}"),
        filled(b'{"a":0.', b"9", b"}"),
        filled(b'{"a":1e', b"9", b"}"),
        b"{" + b",".join(b'"%x":1' % number for number in range(90_000)) + b"}",
        filled(b'{"a":"', b"\\u00e9", b'"}'),
    ],
    ids=["objects", "arrays", "decimals", "strings", "nesting", "digits", "places", "exponent", "keys", "escapes"],
)
def test_no_body_costs_more_than_a_large_invoice(bomb: bytes) -> None:
    """A megabyte of whatever is dearest: read or refused in a few hundredths of a second, where objects alone took a third of one."""
    began = time.process_time()
    with contextlib.suppress(InvalidRequest, InvalidJson):
        parse(bomb)
    assert time.process_time() - began < 0.15


def test_the_largest_invoice_fits() -> None:
    """A thousand items with fifteen fields each."""
    item = b"{" + b",".join(b'"field%d":1.5' % number for number in range(15)) + b"}"
    assert len(parse(b'{"items":[' + b",".join([item] * 1000) + b"]}")["items"]) == 1000
