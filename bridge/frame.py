"""Frames of the MCF line (protocol section 1): bytes in, events out; no time, no I/O, no exception on received bytes.

    request  SOH LEN SEQ CMD DATA…           AMB BCC×4 ETX
    reply    SOH LEN SEQ CMD DATA… BRK STA×6 AMB BCC×4 ETX

SOH, NAK and SYN are illegal everywhere inside a frame. So a frame is abandoned at the first illegal byte, and decoding
continues with that byte: nothing behind a false SOH or a cut frame is lost, and the work is linear in the bytes."""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

SOH, ETX, AMB, BRK, NAK, SYN = 0x01, 0x03, 0x05, 0x04, 0x15, 0x16

MIN_SEQ, MAX_SEQ = 0x20, 0xFF
"""Accepted range: a driver that works on real machines counts to FFh; ours stays below (`link.LAST_SEQ`)."""
MIN_CMD, MAX_CMD = 0x20, 0xFF
MAX_REQUEST_DATA = 219
MAX_REPLY_DATA = 212

STATUS_BYTES = 6
_LEN_BASE = 0x20
_BEGIN = 2  # SOH LEN
_HEAD = 4  # SOH LEN SEQ CMD
_TAIL = 6  # AMB BCC×4 ETX
_MIN_LEN = _LEN_BASE + 4  # LEN SEQ CMD AMB
_REPLY_EXTRA = 1 + STATUS_BYTES  # BRK STA×6

_IDLE = re.compile(rb"[^\x01\x15\x16]+")
_SEQ_CMD_RUN = re.compile(rb"[\x20-\xff]*")
_DATA_RUN = re.compile(rb"[\t\n\x20-\xff]*")
_BRK_RUN = re.compile(rb"\x04*")
_STA_RUN = re.compile(rb"[\x80-\xff]*")
_AMB_RUN = re.compile(rb"\x05*")
_BCC_RUN = re.compile(rb"[\x30-\x3f]*")
# A frame that has arrived complete, as nearly all do: one match instead of one for each part.
_WHOLE_REQUEST = re.compile(rb"\x01[\x24-\xff][\x20-\xff][\x20-\xff][\t\n\x20-\xff]*\x05[\x30-\x3f]{4}\x03")
_WHOLE_REPLY = re.compile(
    rb"\x01[\x24-\xff][\x20-\xff][\x20-\xff][\t\n\x20-\xff]*\x04[\x80-\xff]{6}\x05[\x30-\x3f]{4}\x03"
)

_READY = b"\x80" * STATUS_BYTES
_NIBBLES = bytes.maketrans(b"abcdef", b":;<=>?")
"""Hexadecimal digits to a checksum's digits, which continue after 9 as in ASCII."""
_Layout = tuple[tuple[int, re.Pattern[bytes]], ...]


class Request(NamedTuple):
    seq: int
    cmd: int
    data: bytes = b""


class MachineReply(NamedTuple):
    seq: int
    cmd: int
    data: bytes = b""
    status: bytes = _READY


class Nak(msgspec.Struct, frozen=True):
    pass


class Syn(msgspec.Struct, frozen=True):
    pass


class Garbage(msgspec.Struct, frozen=True):
    """Bytes that are not a frame. `checksum` and `format`: it began as a frame (SOH and a possible LEN) and has an
    error later; a machine answers NAK. `noise`: anything else, also a frame cut short by the SOH of the next one."""

    data: bytes
    reason: Literal["noise", "checksum", "format"]


class NEED_DATA:  # noqa: N801  # a sentinel that is its own type, spelt as one
    """Nothing complete is buffered."""


Event = Request | MachineReply | Nak | Syn | Garbage


@lru_cache(maxsize=512)
def _layout(length: int, is_reply: bool) -> _Layout:
    """Legal bytes by place, up to BCC: end offset (SOH is 0) and kind of each part. `length` counts LEN to AMB."""
    body: _Layout = ((length, _DATA_RUN),)
    if is_reply:
        brk = length - _REPLY_EXTRA
        body = ((brk, _DATA_RUN), (brk + 1, _BRK_RUN), (length, _STA_RUN))
    tail: _Layout = ((length + 1, _AMB_RUN), (length + 5, _BCC_RUN))
    return ((_HEAD, _SEQ_CMD_RUN), *body, *tail)


def _checksum(covered: bytes | bytearray) -> bytes:
    """The sum of the bytes from LEN to AMB as four nibbles, high first, each + 30h."""
    return (b"%04x" % sum(covered)).translate(_NIBBLES)


def encode(frame: Request | MachineReply) -> bytes:
    """Raises ValueError if the frame cannot be sent: a mistake of the caller, never of the machine."""
    if not MIN_SEQ <= frame.seq <= MAX_SEQ:
        raise ValueError(f"SEQ {frame.seq:#x} is outside 20h…FFh")
    if not MIN_CMD <= frame.cmd <= MAX_CMD:
        raise ValueError(f"CMD {frame.cmd:#x} is outside 20h…FFh")
    if not _DATA_RUN.fullmatch(frame.data):
        raise ValueError("DATA holds a control byte other than TAB and LF")
    body = bytes((frame.seq, frame.cmd)) + frame.data
    limit = MAX_REQUEST_DATA
    if isinstance(frame, MachineReply):
        if len(frame.status) != STATUS_BYTES or not _STA_RUN.fullmatch(frame.status):
            raise ValueError("the status is six bytes with bit 7 set")
        body += bytes((BRK,)) + frame.status
        limit = MAX_REPLY_DATA
    if len(frame.data) > limit:
        raise ValueError(f"DATA of {len(frame.data)} bytes is longer than {limit}")
    covered = bytes((_LEN_BASE + len(body) + 2,)) + body + bytes((AMB,))
    return bytes((SOH,)) + covered + _checksum(covered) + bytes((ETX,))


def _read(raw: bytes, brk: int | None) -> Request | MachineReply | Garbage:
    """For a complete frame with only legal bytes; `brk` is the offset of BRK in a reply."""
    if raw[-5:-1] != _checksum(raw[1:-5]):
        return Garbage(raw, "checksum")
    if brk is None:
        return Request(raw[2], raw[3], raw[_HEAD:-_TAIL])
    return MachineReply(raw[2], raw[3], raw[_HEAD:brk], raw[brk + 1 : -_TAIL])


class Decoder:
    """Call `receive`, then take events until NEED_DATA; from then on less than one frame is buffered."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._legal = _BEGIN  # number of legal bytes of the arriving frame

    @property
    def in_frame(self) -> bool:
        """After NEED_DATA: a frame has begun and not ended."""
        return bool(self._buffer)

    def receive(self, data: bytes) -> None:
        self._buffer += data

    def next_event(self) -> Event | type[NEED_DATA]:
        if not self._buffer:
            return NEED_DATA
        first = self._buffer[0]
        if first == SOH:
            return self._frame()
        if first == NAK:
            self._take(1)
            return Nak()
        if first == SYN:
            self._take(1)
            return Syn()
        return Garbage(self._take(self._run_of(_IDLE, 1, len(self._buffer))), "noise")  # the first byte is noise

    def _frame(self) -> Event | type[NEED_DATA]:
        buffer = self._buffer
        if len(buffer) == 1:
            return NEED_DATA
        if buffer[1] < _MIN_LEN:
            return Garbage(self._take(1), "noise")
        length = buffer[1] - _LEN_BASE
        size = length + _TAIL
        brk = length - _REPLY_EXTRA
        is_reply = _HEAD <= brk < len(buffer) and buffer[brk] == BRK
        whole = _WHOLE_REPLY if is_reply else _WHOLE_REQUEST
        if len(buffer) >= size and whole.fullmatch(buffer, 0, size):
            return _read(self._take(size), brk if is_reply else None)
        if not self._is_legal_so_far(_layout(length, is_reply), min(size, len(buffer))):
            cut_short = buffer[self._legal] == SOH
            return Garbage(self._take(self._legal), "noise" if cut_short else "format")
        return NEED_DATA

    def _is_legal_so_far(self, layout: _Layout, available: int) -> bool:
        legal = self._legal
        for stop, kind in layout:
            if legal < stop:
                end = min(stop, available)
                legal = self._run_of(kind, legal, end)
                if legal < end:
                    break
        self._legal = legal
        return legal == available

    def _run_of(self, kind: re.Pattern[bytes], start: int, end: int) -> int:
        match = kind.match(self._buffer, start, end)
        return match.end() if match else start

    def _take(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        self._legal = _BEGIN
        return taken
