"""The codec: any bytes give events, never an exception, and no good frame is ever lost behind bad ones."""

import gc
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.line.naive_frames import naive_decode, naive_encode

from bridge.frame import (
    MAX_REPLY_DATA,
    MAX_REQUEST_DATA,
    Decoder,
    Garbage,
    MachineReply,
    Nak,
    Request,
    Syn,
    encode,
)

DATA_BYTES = st.sampled_from([0x09, 0x0A, *range(0x20, 0x100)])
SEQS = st.integers(0x20, 0xFF)
CMDS = st.integers(0x20, 0xFF)


def data(most: int) -> st.SearchStrategy[bytes]:
    return st.lists(DATA_BYTES, max_size=most).map(bytes)


REQUESTS = st.builds(Request, SEQS, CMDS, data(MAX_REQUEST_DATA))
STATUS = st.binary(min_size=6, max_size=6).map(lambda raw: bytes(byte | 0x80 for byte in raw))
REPLIES = st.builds(MachineReply, SEQS, CMDS, data(MAX_REPLY_DATA), STATUS)
FRAMES = REQUESTS | REPLIES
# Noise that likes to look like the beginning of a frame.
NOISE = st.lists(
    st.binary(max_size=12)
    | st.sampled_from([b"\x01", b"\x15", b"\x16", b"\x01\xff", b"\x01\x24\x20", b"\x01\x2d\x7f\x35R"])
    | st.builds(lambda frame, cut: encode(frame)[:cut], FRAMES, st.integers(1, 40)),
    max_size=6,
).map(b"".join)


def drain(decoder: Decoder) -> list:
    events = []
    while not isinstance(event := decoder.next_event(), type):
        events.append(event)
    return events


def decode(*chunks: bytes) -> list:
    decoder = Decoder()
    events = []
    for chunk in chunks:
        decoder.receive(chunk)
        events += drain(decoder)
    return events


def in_bytes(raw: bytes) -> list[bytes]:
    return [raw[i : i + 1] for i in range(len(raw))]


def merged(events: list) -> list:
    """Neighbouring noise as one, since noise is reported as it comes."""
    out: list = []
    for event in events:
        if out and isinstance(event, Garbage) and event.reason == "noise" == getattr(out[-1], "reason", ""):
            out[-1] = Garbage(out[-1].data + event.data, "noise")
        else:
            out.append(event)
    return out


LONGEST = (
    Request(0x20, 0x20, b"a" * MAX_REQUEST_DATA),
    Request(0xFF, 0xFF, b"\t\n \xff"),
    MachineReply(0x20, 0x20, b"a" * MAX_REPLY_DATA),
    MachineReply(0xFF, 0xFF, b"", b"\x80" * 3 + b"\xff" * 3),
)


@given(FRAMES)
@example(LONGEST[0])
@example(LONGEST[1])
@example(LONGEST[2])
@example(LONGEST[3])
def test_what_is_encoded_is_decoded_again(frame) -> None:
    """A frame survives the line whole and byte by byte, to the last byte of data, and a naive decoder reads the same out of it."""
    raw = encode(frame)
    assert decode(raw) == decode(*in_bytes(raw)) == [frame]
    status = frame.status if isinstance(frame, MachineReply) else None
    assert naive_decode(raw) == (frame.seq, frame.cmd, frame.data, status)
    assert naive_encode(frame.seq, frame.cmd, frame.data, status) == raw


@given(st.lists(st.binary(max_size=300) | NOISE, max_size=8))
def test_any_bytes_give_events_never_an_exception(chunks) -> None:
    """Whatever comes, in whatever pieces, is reported as events that together hold every byte that is not awaited."""
    decoder = Decoder()
    content = bytearray()
    for chunk in chunks:
        decoder.receive(chunk)
        for event in drain(decoder):
            content += raw_of(event)
    rest = bytes(decoder._buffer)
    assert bytes(content) + rest == b"".join(chunks)
    assert len(rest) < 262
    assert decoder.in_frame == bool(rest)


def raw_of(event) -> bytes:
    match event:
        case Nak():
            return b"\x15"
        case Syn():
            return b"\x16"
        case Garbage():
            return event.data
    return encode(event)


@given(NOISE, FRAMES, st.binary(max_size=30))
def test_a_good_frame_is_found_after_any_garbage(noise, frame, trailing) -> None:
    """No noise, false SOH or truncated frame before it, and nothing after it, hides a good frame: not even for a while."""
    raw = encode(frame)
    for chunks in ([noise + raw], [noise, raw], in_bytes(noise + raw)):
        assert decode(*chunks)[-1] == frame
    assert frame in decode(noise + raw + trailing)


@given(st.lists(NOISE | FRAMES.map(encode), max_size=6).map(b"".join), st.lists(st.integers(1, 50), min_size=1))
def test_how_the_bytes_are_cut_changes_nothing(raw, sizes) -> None:
    """Whole, byte by byte or in odd pieces: the same events (noise counted together)."""
    pieces, at = [], 0
    while at < len(raw):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(raw[at : at + size])
        at += size
    assert merged(decode(raw)) == merged(decode(*in_bytes(raw))) == merged(decode(*pieces))


@given(FRAMES, st.data())
def test_one_wrong_byte_is_noticed_at_once(frame, draw) -> None:
    """A single wrong byte never gives a frame, and the frame that follows is found."""
    raw = bytearray(encode(frame))
    at = draw.draw(st.integers(0, len(raw) - 1))
    raw[at] = draw.draw(st.integers(0, 255).filter(lambda byte: byte != raw[at]))
    good = Request(0x20, 0xC1)
    events = decode(bytes(raw), encode(good))
    assert events[-1] == good
    assert not [event for event in events[:-1] if isinstance(event, Request | MachineReply)]


@given(REQUESTS, st.data())
def test_a_damaged_request_is_answered_by_nak(frame, draw) -> None:
    """Damage behind SOH and LEN is reported as `checksum` or `format`, exactly once: what a machine answers NAK to."""
    raw = bytearray(encode(frame))
    at = draw.draw(st.integers(2, len(raw) - 1))
    raw[at] = draw.draw(st.integers(0x02, 0xFF).filter(lambda byte: byte != raw[at]))
    rows = [event.reason for event in decode(bytes(raw)) if isinstance(event, Garbage)]
    assert [reason for reason in rows if reason != "noise"] in (["checksum"], ["format"])


@pytest.mark.parametrize(
    "frame", [Request(0x21, 0xC1, b"data"), MachineReply(0x21, 0xC1, b"data")], ids=["request", "reply"]
)
def test_each_place_of_a_frame_takes_its_own_bytes_only(frame: Request | MachineReply) -> None:
    """A byte that may stand next door is noticed where it stands, before anything else comes, and what came before it is one piece of garbage."""
    raw = encode(frame)
    data_ends = 4 + len(frame.data)
    brk = [b"\x04"] + [b"\x80"] * 6 if isinstance(frame, MachineReply) else []
    kinds = [b" "] * 2 + [b"\t"] * 4 + brk + [b"\x05"] + [b"0"] * 4 + [b"\x03"]
    places = range(2, len(raw))
    assert len(kinds) == len(places)
    for at, own in zip(places, kinds, strict=True):
        for wrong in (b" ", b"\t", b"\x04", b"\x80", b"\x05", b"0", b"\x03"):
            is_taken = wrong == own or (own in (b" ", b"\t") and wrong in (b" ", b"0", b"\x80"))
            # where BRK is missing it may be a request, whose data goes on, and where it comes early, none
            is_other = (
                isinstance(frame, MachineReply) and data_ends <= at < data_ends + 7 and wrong not in (b"\x05", b"\x03")
            )
            if is_taken or is_other:
                continue
            decoder = Decoder()
            decoder.receive(raw[:at] + wrong)
            assert decoder.next_event() == Garbage(raw[:at], "format"), (at, wrong)


@pytest.mark.parametrize(
    "unit", [b"\x01", b"\x01\x15", b"\x01\x24", b"\x01\xff\x20", b"\xff", b"\x01\xffA" + b"A" * 200]
)
def test_the_work_is_linear(unit) -> None:
    """A megabyte of hostile bytes takes about ten times what a tenth of it takes, whole or in pieces."""

    def seconds(size: int) -> float:
        raw = (unit * (size // len(unit) + 1))[:size]
        gc.disable()  # its passes grow with what else this process holds
        try:
            began = time.process_time()
            decode(*(raw[i : i + 997] for i in range(0, size, 997)))
            decode(raw)
            return time.process_time() - began
        finally:
            gc.enable()

    small = min(seconds(30_000) for _ in range(3))
    assert seconds(300_000) < 40 * small + 0.05


@pytest.mark.parametrize(
    "frame",
    [
        Request(0x1F, 0xC1),
        Request(0x20, 0x1F),
        Request(0x20, 0x100),
        Request(0x20, 0x31, b"a\x00"),
        Request(0x20, 0x31, b"a\r"),
        Request(0x20, 0x31, b"a" * (MAX_REQUEST_DATA + 1)),
        MachineReply(0x20, 0x31, b"a" * (MAX_REPLY_DATA + 1)),
        MachineReply(0x20, 0x31, b"", b"\x80" * 5),
        MachineReply(0x20, 0x31, b"", b"\x80" * 5 + b"\x7f"),
    ],
)
def test_what_cannot_go_on_the_line_is_the_callers_mistake(frame) -> None:
    """A frame outside the protocol is refused before it is sent."""
    with pytest.raises(ValueError, match=r"SEQ|CMD|DATA|status"):
        encode(frame)
