"""Recorded bytes, made fit for another run: another SEQ, frames edited by hand, a state with the certifications since."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bridge.frame import MachineReply, Request, encode

STATE, OPEN, CLOSE = 0xC1, 0xC0, 0x38
_SALES = ("FV", "FT", "EV", "ET")
_WITHOUT_LAST = 22
_CLOSED_FIELDS = 7
_WHOLE = re.compile(r"\s*([0-9]+)")
_FRAME = re.compile(
    rb"\x01[\x20-\xff](?P<seq>[\x20-\xff])(?P<cmd>[\x20-\xff])(?P<data>[\t\n\x20-\xff]*?)"
    rb"(?:\x04(?P<status>[\x80-\xff]{6}))?\x05[\x30-\x3f]{4}\x03"
)
"""Whatever its length and checksum."""


class Piece(NamedTuple):
    """Some bytes; `delay` in seconds after their request."""

    delay: float
    data: bytes


def mended(data: bytes, line: int, tell: Callable[[str], None]) -> bytes:
    """With the right length and checksum in each frame that was edited by hand."""

    def whole(found: re.Match[bytes]) -> bytes:
        frame = _encoded(found, found["seq"][0])
        if frame != found[0]:
            tell(f"line {line}: length and checksum set right; edited by hand?")
        return frame

    return _FRAME.sub(whole, data)


def resequenced(pieces: Sequence[Piece], seqs: Mapping[int, int]) -> list[Piece]:
    """With the SEQ of this run in each undamaged frame; a frame may lie in several pieces."""

    def renumbered(found: re.Match[bytes]) -> bytes:
        seq = found["seq"][0]
        return _encoded(found, seqs.get(seq, seq)) if _encoded(found, seq) == found[0] else found[0]

    stream = _FRAME.sub(renumbered, b"".join(piece.data for piece in pieces))
    ends = [sum(len(piece.data) for piece in pieces[: at + 1]) for at in range(len(pieces))]
    return [Piece(delay, stream[end - len(data) : end]) for (delay, data), end in zip(pieces, ends, strict=True)]


def _encoded(found: re.Match[bytes], seq: int) -> bytes:
    cmd, data, status = found["cmd"][0], found["data"], found["status"]
    try:
        return encode(Request(seq, cmd, data) if status is None else MachineReply(seq, cmd, data, status))
    except ValueError:  # too long to be a frame
        return found[0]


def updated_state(data: bytes, since: Sequence[tuple[Request, MachineReply | None]]) -> bytes:
    """The data of a C1h, with the certifications since then in it: TC, FVC or FRC, and the last invoice."""
    fields = data.decode("latin-1").split(",")
    if len(fields) <= _WITHOUT_LAST:
        fields[6:6] = [""] * 5
    number = ""
    for request, reply in since:
        if request.cmd == OPEN:
            number = request.data.decode("latin-1").split(",")[-1]
        elif request.cmd == CLOSE and reply is not None and _is_certified(reply):
            fc, tc, kind, time, _, _, code, *_ = reply.data.decode("latin-1").removeprefix("R:").split(",")
            fields[3] = tc
            fields[4 if kind in _SALES else 5] = fc
            total = _WHOLE.match(request.data.decode("latin-1"))
            fields[6:11] = [time, kind, code, number, total[1] if total else ""]
    return ",".join(fields).encode("latin-1")


def _is_certified(reply: MachineReply) -> bool:
    return not reply.data.startswith((b"E:", b"P:")) and reply.data.count(b",") >= _CLOSED_FIELDS - 1
