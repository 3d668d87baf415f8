"""The envelope of the relay: what goes in comes out, and whatever else comes is refused by name, in bounded memory."""

import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.wire.call import (
    MAX_BODY,
    MAX_HEADERS,
    MAX_REPLY,
    LaterCall,
    RelayedCall,
    RelayedReply,
    encode,
    read_call,
    read_later,
    read_reply,
)
from common.wire.errors import BadEvent
from common.wire.keys import PUBLIC, LaneHeader, NotSealed, PrivateKey, decode, seal, unseal

NAMES = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=20)
LATIN = st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")
VALUES = st.text(LATIN, max_size=100).map(str.strip)
PATHS = st.text("".join(map(chr, range(33, 127))), min_size=1, max_size=100).map(lambda rest: f"/v1/mcf/{rest}")
MILLIS = st.integers(0, 2**53 - 1)
CALLS = st.builds(
    RelayedCall,
    boot=st.text(string.hexdigits, min_size=1, max_size=8),
    not_after=MILLIS,
    sent_at=MILLIS,
    method=st.sampled_from(["GET", "POST", "DELETE"]),
    path=PATHS,
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=8).map(tuple),
    body=st.binary(max_size=2000),
)
CALL = RelayedCall(boot="b", not_after=1, sent_at=0, method="POST", path="/v1/mcf/EL02000015-1/certify")


@given(call=CALLS, status=st.integers(0, 599))
def test_a_call_comes_as_it_was_sent(call: RelayedCall, status: int) -> None:
    """To the byte, whatever the body is, and so does its reply. What is added one day is ignored."""
    assert read_call(encode(call)) == call
    reply = RelayedReply(boot=call.boot, status=status, headers=call.headers, body=call.body)
    assert read_reply(encode(reply)) == reply
    later = msgspec.msgpack.decode(encode(call)) | {"new": [1, 2]}
    assert read_call(msgspec.msgpack.encode(later)) == call


@given(call=CALLS, at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_damaged_call(call: RelayedCall, at: int, byte: int) -> None:
    """One other byte anywhere gives a call, or BadEvent."""
    content = bytearray(encode(call))
    content[at % len(content)] = byte
    try:
        found = read_call(bytes(content))
    except BadEvent:
        return
    assert found.path.startswith("/v1/") or found.sealed


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"body": bytes(MAX_BODY + 1)}, "body"),
        *(
            ({"headers": (header,)}, "headers")
            for header in (
                *(("x", "y" * MAX_HEADERS), ("x", "a\r\nidempotency-key: b"), ("X-Upper", "a")),
                *(("idempotency-key", " k"), ("idempotency-key", "k\t"), ("x", "\u20ac")),
            )
        ),
        *(
            ({"path": path}, "path")
            for path in ("/ui/", "/health/live", "/v1/mcf/EL02000015-1/a b", "/v1/mcf/" + "x" * 5000, "")
        ),
    ],
)
def test_limits(change: dict[str, object], field: str) -> None:
    """To the byte of 256 KB; headers and paths are bounded, and HTTP's; a reply too large for NATS is refused unread."""
    assert read_call(encode(msgspec.structs.replace(CALL, body=bytes(MAX_BODY)))).method == "POST"
    with pytest.raises(BadEvent) as refused:
        read_call(encode(msgspec.structs.replace(CALL, **change)))
    assert refused.value.field == field
    with pytest.raises(BadEvent):
        read_reply(encode(RelayedReply(boot="b", status=200, body=bytes(MAX_REPLY))))


@given(content=st.binary(max_size=500))
def test_sealed_for_one(content: bytes) -> None:
    """What is sealed for a box opens with its key alone, and with no other."""
    seed, other = b"\x01" * 32, b"\x02" * 32
    public = decode(PrivateKey(seed).public.removeprefix(PUBLIC))
    sealed = seal(content, public)
    assert unseal(sealed, seed) == content
    assert read_later(encode(LaterCall(not_after=1, sealed=sealed))).sealed == sealed
    with pytest.raises(NotSealed):
        unseal(sealed, other)
    with pytest.raises(NotSealed):
        unseal(sealed[:-1], seed)


@given(text=st.text(max_size=200))
def test_the_word_of_a_box(text: str) -> None:
    """What a box says of the lane is read back; any other text says nothing."""
    word = LaneHeader(bytes(range(32)), ("0123456789abcdef", "fedcba9876543210"))
    found = LaneHeader.read(word.header())
    assert (found.public, found.key_ids) == (word.public, word.key_ids)
    other = LaneHeader.read(text)
    assert other is None or len(other.public) == 32
