"""Which bodies are the same request to the relay, as to the box."""

import pytest

from common.wire.json_values import canonical_of

FIRST = b'{"a":1180,"b":[{"c":1180.5,"d":"\\u00e9"}]}'


@pytest.mark.parametrize(
    ("body", "is_same"),
    [
        ('\ufeff{ "x": null, "b": [ { "d": "é", "c": 118050e-2 } ], "a": 1180.0 }'.encode(), True),
        (b'{"a":1180,"b":[{"c":1180.51,"d":"\\u00e9"}]}', False),
        (b'{"a":1180,"a":1180,"b":[{"c":1180.5,"d":"\\u00e9"}]}', False),
        (FIRST.decode().encode("utf-16"), False),
        (b'{"a":1180,"b":[{"c":1180.5,"d":"\xe9"}]}', False),
    ],
)
def test_bodies_with_the_same_values_are_the_same(body: bytes, is_same: bool) -> None:
    """Whatever their bytes; what the box does not read (a name twice, no UTF-8) is the same as itself alone."""
    assert (canonical_of(body) == canonical_of(FIRST)) == is_same


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"a":1,"a":2}', b"\xff"])
def test_what_cannot_be_read_is_compared_by_its_bytes(body: bytes) -> None:
    """Also what is nested too deep."""
    assert canonical_of(body) == body
