"""What a body may cost before anything is made of it (attack 4)."""

import contextlib
import time

import pytest

from daemon.api.refusals import InvalidJson
from daemon.api.request.body import MAX_BODY, parse
from daemon.core.errors import InvalidRequest


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
