"""Which bodies are the same request to the relay, as to the box."""

import pytest

from common.wire.json_values import canonical_of


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"a":1,"a":2}', b"\xff"])
def test_what_cannot_be_read_is_compared_by_its_bytes(body: bytes) -> None:
    """Also what is nested too deep."""
    assert canonical_of(body) == body


def test_a_body_with_the_same_values_is_the_same() -> None:
    """To the relay as to the box (test_api_call.py), with a byte order mark too."""
    same, other = '\ufeff{ "x": null, "b": ["é"], "a": 118050e-2 }'.encode(), b'{"a":1180.51,"b":["\\u00e9"]}'
    assert canonical_of(same) == canonical_of(b'{"a":1180.5,"b":["\\u00e9"]}') != canonical_of(other)
