"""The values of a JSON body, by which two requests with one Idempotency-Key are compared, at the box and at the relay
(decision 6)."""

import json
import re
from decimal import Context, Decimal
from typing import Any, Final

MAX_PLAIN_DIGITS: Final = 40
"""Digits of a number that becomes an `int`."""
MAX_DIGITS: Final = 1000
"""Digits of a number that is parsed; a longer one becomes `BEYOND`."""
MAX_EXPONENT_DIGITS: Final = 6
BEYOND: Final = Decimal("1E+999999")
"""Replaces a number with an impossible exponent. The core refuses it by the field's name, as `1e400`, or ignores it
where malformed numbers are ignored (decisions 1 and 4)."""
_EXACT: Final = Context(prec=MAX_DIGITS)
_EXPONENT = re.compile(r"[eE][+-]?0*([0-9]+)$")


def read_integer(text: str) -> int | Decimal:
    if len(text) <= MAX_PLAIN_DIGITS:
        return int(text)
    return Decimal(text) if len(text) <= MAX_DIGITS else BEYOND


def read_decimal(text: str) -> Decimal:
    if len(text) > MAX_DIGITS:
        return BEYOND
    exponent = _EXPONENT.search(text)
    if exponent and len(exponent[1]) > MAX_EXPONENT_DIGITS:
        return BEYOND
    return Decimal(text)


def canonical(body: object) -> bytes:
    """A parsed body as bytes that depend on its values alone: not on the order of names, spaces, the spelling of
    numbers and characters, or names whose value is null (decision 39)."""
    return with_nulls(_without_nulls(body))


def with_nulls(body: object) -> bytes:
    """The same, of version 0.19.0, in which a null counted."""
    return json.dumps(body, sort_keys=True, default=_canonical_number).encode()


def canonical_of(raw: bytes) -> bytes:
    """`canonical` of an encoded body; `raw` itself if the box would not read it."""
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
        return canonical(
            json.loads(text, parse_int=read_integer, parse_float=read_decimal, object_pairs_hook=_distinct)
        )
    except (ValueError, RecursionError):
        return raw


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a name occurs twice")
    return value


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _canonical_number(number: Decimal) -> int | str:
    exact = _EXACT.normalize(number)
    is_whole = number.adjusted() < MAX_PLAIN_DIGITS and exact == exact.to_integral_value()
    return int(exact) if is_whole else repr(exact)
