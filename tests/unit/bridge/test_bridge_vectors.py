"""Frames written out by hand, against the codec and against a second, naive one, in both directions."""

import pytest
from support.line.naive_frames import load_vectors, naive_decode, naive_encode, parse_hex

from bridge.frame import Decoder, Garbage, MachineReply, Request, encode

VECTORS = load_vectors()
FRAMES = {vector["name"]: vector for vector in VECTORS["frame"]}


def parts(vector: dict) -> tuple[int, int, bytes, bytes | None]:
    data = vector["data"].encode() * vector.get("times", 1)
    status = bytes.fromhex(vector.get("status", "80 " * 6)) if vector["kind"] == "reply" else None
    return vector["seq"], vector["cmd"], data, status


def events_of(raw: bytes, step: int) -> list:
    decoder = Decoder()
    events = []
    for start in range(0, len(raw), step):
        decoder.receive(raw[start : start + step])
        while not isinstance(event := decoder.next_event(), type):
            events.append(event)
    return events


@pytest.mark.parametrize("name", FRAMES)
def test_frames_by_hand_by_codec_and_by_a_naive_coder_are_one(name: str) -> None:
    """Each hand-written frame is what both coders make of its parts, and both find those parts in it."""
    vector = FRAMES[name]
    seq, cmd, data, status = parts(vector)
    raw = parse_hex(vector["hex"])
    frame = Request(seq, cmd, data) if status is None else MachineReply(seq, cmd, data, status)
    assert naive_encode(seq, cmd, data, status) == raw
    assert encode(frame) == raw
    assert naive_decode(raw) == (seq, cmd, data, status)
    assert events_of(raw, len(raw)) == events_of(raw, 1) == [frame]


@pytest.mark.parametrize("vector", VECTORS["line"], ids=lambda vector: vector["name"])
def test_what_else_is_on_the_line_is_told_apart(vector: dict) -> None:
    """NAK, SYN and the kinds of garbage are as written down by hand."""
    events = events_of(parse_hex(vector["hex"]), 1000)
    assert [e.reason if isinstance(e, Garbage) else type(e).__name__ for e in events] == vector["events"]
