"""Which bodies are the same request to the relay, as to the box."""

import pytest

from common.wire.json_values import canonical_of


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"a":1,"a":2}', b"\xff"])
def test_what_cannot_be_read_is_compared_by_its_bytes(body: bytes) -> None:
    """Also what is nested too deep."""
    assert canonical_of(body) == body
