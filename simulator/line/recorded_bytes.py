"""Bytes of a recording, made fit for another run: another SEQ, and what was edited by hand in a whole frame again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bridge.frame import Decoder, Reply, Request, encode

_SEQ_AT = 2
_TAIL = 6
_REPLY_EXTRA = 7
_NIBBLES = (12, 8, 4, 0)
_EDITED = re.compile(
    rb"\x01[\x20-\xff](?P<seq>[\x20-\xff])(?P<cmd>[\x20-\xff])(?P<data>[\t\n\x20-\xff]*?)"
    rb"(?:\x04(?P<status>[\x80-\xff]{6}))?\x05[\x30-\x3f]{4}\x03"
)


class Piece(NamedTuple):
    """Some bytes; `delay` in seconds after their request."""

    delay: float
    data: bytes


def mended(data: bytes, line: int, tell: Callable[[str], None]) -> bytes:
    """With length and checksum of a frame set right whose text somebody has changed."""

    def whole(found: re.Match[bytes]) -> bytes:
        frame = _frame(found)
        if frame != found[0]:
            tell(f"line {line}: length and checksum set right; edited by hand?")
        return frame

    return _EDITED.sub(whole, data)


def _frame(found: re.Match[bytes]) -> bytes:
    seq, cmd, text, status = found["seq"][0], found["cmd"][0], found["data"], found["status"]
    try:
        return encode(Request(seq, cmd, text) if status is None else Reply(seq, cmd, text, status))
    except ValueError:  # too long to be a frame
        return found[0]


def resequenced(pieces: Sequence[Piece], seqs: Mapping[int, int]) -> list[Piece]:
    """The same pieces, with the SEQ of each whole reply as it is in this run, and its checksum as right as it was."""
    stream = bytearray(b"".join(piece.data for piece in pieces))
    decoder = Decoder()
    decoder.receive(bytes(stream))
    at = 0
    while not isinstance(event := decoder.next_event(), type):
        size = _size(event)
        if isinstance(event, Reply) and event.seq in seqs:
            stream[at : at + size] = _with_seq(stream[at : at + size], seqs[event.seq])
        at += size
    found, begin = [], 0
    for delay, data in pieces:
        found.append(Piece(delay, bytes(stream[begin : begin + len(data)])))
        begin += len(data)
    return found


def _size(event: object) -> int:
    match event:
        case Reply():
            return 4 + len(event.data) + _REPLY_EXTRA + _TAIL
        case Request():
            return 4 + len(event.data) + _TAIL
    return len(getattr(event, "data", b"\0"))  # NAK and SYN are one byte


def _with_seq(frame: bytes | bytearray, seq: int) -> bytes:
    told = sum((byte & 15) << shift for byte, shift in zip(frame[-5:-1], _NIBBLES, strict=True))
    total = (told + seq - frame[_SEQ_AT]) & 0xFFFF
    checksum = bytes(0x30 + (total >> shift & 15) for shift in _NIBBLES)
    return bytes(frame[:_SEQ_AT]) + bytes((seq,)) + bytes(frame[_SEQ_AT + 1 : -5]) + checksum + bytes(frame[-1:])
