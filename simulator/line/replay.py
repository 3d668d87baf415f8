"""Replays the machine's side of a recording: a session like `line.session`, but every answer is a recorded one, adapted
to the new run: its SEQ, frames edited by hand, and a state with the certifications since."""

import heapq
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bridge.frame import NAK, Decoder, MachineReply, Request, encode
from bridge.recording.recording import NOTE, SENT, Recording
from simulator.line.session import Output, Sent
from simulator.machine.command_data import status

STATE, OPEN, CLOSE = 0xC1, 0xC0, 0x38
_SALES = ("FV", "FT", "EV", "ET")
_WITHOUT_LAST = 22
_CLOSED_FIELDS = 7
_WHOLE = re.compile(r"\s*([0-9]+)")
_FRAME = re.compile(
    rb"\x01[\x20-\xff](?P<seq>[\x20-\xff])(?P<cmd>[\x20-\xff])(?P<data>[\t\n\x20-\xff]*?)"
    rb"(?:\x04(?P<status>[\x80-\xff]{6}))?\x05[\x30-\x3f]{4}\x03"
)
"""A frame, whatever its length and checksum."""

READS = (STATE, 0xC2, 0x2B)
CANCEL = (CLOSE, b"C")
_NEVER = float("-inf")
_IDLE = status(0, 0, False)
_NOT_OPEN = b"E:No invoice open"
_SPOILED = ("garbage", "retry")
"""The driver's notes after a frame damaged on the line, not by hand."""


class Piece(NamedTuple):
    """Some bytes; `delay` in seconds after their request."""

    delay: float
    data: bytes


def corrected(data: bytes, line: int, tell: Callable[[str], None]) -> bytes:
    """Corrects length and checksum of each frame edited by hand."""

    def whole(found: re.Match[bytes]) -> bytes:
        frame = _encoded(found, found["seq"][0])
        if frame != found[0]:
            tell(f"line {line}: length and checksum set right; edited by hand?")
        return frame

    return _FRAME.sub(whole, data)


def resequenced(pieces: Sequence[Piece], seqs: Mapping[int, int]) -> list[Piece]:
    """Puts this run's SEQ into each intact frame; a frame may be spread over several pieces."""

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
    """A C1h with the later certifications: TC, FVC or FRC, and the last invoice."""
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


@dataclass(frozen=True)
class Exchange:
    """One request and all bytes up to the next one; `seq` as recorded."""

    request: Request
    pieces: tuple[Piece, ...]

    @property
    def is_read(self) -> bool:
        return self.request.cmd in READS

    @property
    def is_cancel(self) -> bool:
        return (self.request.cmd, self.request.data) == CANCEL

    @property
    def reply(self) -> MachineReply | None:
        """The reply to this request."""
        decoder = Decoder()
        decoder.receive(b"".join(piece.data for piece in self.pieces))
        while not isinstance(event := decoder.next_event(), type):
            if isinstance(event, MachineReply) and (event.seq, event.cmd) == (self.request.seq, self.request.cmd):
                return event
        return None

    def is_for(self, request: Request) -> bool:
        return (self.request.cmd, self.request.data) == (request.cmd, request.data)


class Replay:
    """`tell` is called with every difference and with oddities of the recording, once each."""

    def __init__(self, recording: Recording, tell: Callable[[str], None]) -> None:
        self._reports: set[str] = set()
        self._tell_on = tell
        for problem in recording.problems:
            self._tell(f"line {problem.line}: {problem.what}")
        self._exchanges = list(exchanges_of(recording, self._tell))
        if not self._exchanges:
            self._tell("there is no request in this recording")
        self._at = 0
        """Index of the next exchange; all earlier actions have been played."""
        self._played: list[int] = []
        self._used: set[int] = set()
        self._last: tuple[Request, tuple[Piece, ...]] | None = None
        self._seqs: dict[int, int] = {}
        self._decoder = Decoder()
        self._due: list[tuple[float, int, bytes]] = []
        self._order = 0

    # --- the interface for host and port ----------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> None:
        self._decoder.receive(data)
        while not isinstance(event := self._decoder.next_event(), type):
            if isinstance(event, Request):
                self._answer(event, now)

    def poll(self, now: float) -> list[Output]:
        found: list[Output] = []
        while self._due and self._due[0][0] <= now:
            at, _, data = heapq.heappop(self._due)
            found.append(Sent(at, data))
        return found

    def wake_at(self) -> float | None:
        return self._due[0][0] if self._due else None

    def is_plugged(self, now: float) -> bool:  # noqa: ARG002  a session's interface
        return True

    @property
    def plugged_at(self) -> float:
        return _NEVER

    # --- answers -------------------------------------------------------------------------------------------------

    def _answer(self, request: Request, now: float) -> None:
        pieces = self._repeated(request) or self._found(request)
        self._last = request, pieces
        for delay, data in pieces:
            self._order += 1
            heapq.heappush(self._due, (now + delay, self._order, data))

    def _repeated(self, request: Request) -> tuple[Piece, ...] | None:
        """The same frame again: the answer to the recorded repetition, or else the last answer again."""
        if self._last is None or self._last[0] != request:
            return None
        upcoming = self._exchanges[self._at] if self._at < len(self._exchanges) else None
        was = self._exchanges[self._played[-1]] if self._played else None
        if upcoming and was and upcoming.request == was.request:
            return self._play(self._at, request)
        return self._last[1]

    def _found(self, request: Request) -> tuple[Piece, ...]:
        if request.cmd in READS:
            return self._read(request)
        for at in self._actions():
            exchange = self._exchanges[at]
            if exchange.is_for(request):
                return self._play(at, request)
            if not exchange.is_cancel:
                return self._otherwise(at, request)
        return self._substitute(request, "after the end of the recording")

    def _actions(self) -> Iterator[int]:
        return (at for at in range(self._at, len(self._exchanges)) if not self._exchanges[at].is_read)

    def _otherwise(self, expected: int, request: Request) -> tuple[Piece, ...]:
        """A command that differs from the recording. A cancellation gets its own answer; the same command with other
        data gets the recorded answer; a command recorded later continues from there."""
        was = self._exchanges[expected].request
        if (request.cmd, request.data) == CANCEL:
            return _answer(request, _NOT_OPEN)
        if was.cmd == request.cmd:
            self._tell(
                f"{request.cmd:02X}h came with other data: {_printable(request.data)} instead of {_printable(was.data)}"
            )
            return self._play(expected, request)
        later = next((at for at in self._actions() if self._exchanges[at].is_for(request)), None)
        if later is None:
            return self._substitute(request, f"where {was.cmd:02X}h was recorded")
        self._tell(f"{request.cmd:02X}h came before {was.cmd:02X}h {_printable(was.data)}, which is left out")
        return self._play(later, request)

    def _play(self, at: int, request: Request) -> tuple[Piece, ...]:
        exchange = self._exchanges[at]
        self._at = at + 1
        self._played.append(at)
        return self._renumbered(exchange, request)

    def _read(self, request: Request) -> tuple[Piece, ...]:
        """A read at this point of the recording: the next one before the next action, or the previous one, updated."""
        until = next(self._actions(), len(self._exchanges))
        here = [at for at in range(self._at, until) if self._exchanges[at].is_for(request)]
        answered = [at for at in here if self._exchanges[at].reply] or here
        fresh = next((at for at in answered if at not in self._used), answered[-1] if answered else None)
        if fresh is not None:
            self._used.add(fresh)
            return self._renumbered(self._exchanges[fresh], request)
        positions = [at for at, exchange in enumerate(self._exchanges) if exchange.is_for(request) and exchange.reply]
        before = max((at for at in positions if at < self._at), default=min(positions, default=None))
        if before is None:
            return self._substitute(request, "anywhere")
        reply = self._exchanges[before].reply
        assert reply is not None  # noqa: S101  by the choice above
        played = [self._exchanges[at] for at in self._played if at > before]
        since = [(each.request, each.reply) for each in played]
        data = updated_state(reply.data, since) if request.cmd == STATE else reply.data
        return _answer(request, data, reply.status)

    def _renumbered(self, exchange: Exchange, request: Request) -> tuple[Piece, ...]:
        """The exchange with this run's SEQ. Only for recorded pieces: substitutes have it already."""
        self._seqs[exchange.request.seq] = request.seq
        return tuple(resequenced(exchange.pieces, self._seqs))

    def _substitute(self, request: Request, where: str) -> tuple[Piece, ...]:
        if (request.cmd, request.data) == CANCEL:
            return _answer(request, _NOT_OPEN)
        self._tell(f"{request.cmd:02X}h {_printable(request.data)} was not recorded {where}: refused")
        return _answer(request, b"E:Not in the recording")

    def _tell(self, text: str) -> None:
        if text not in self._reports:
            self._reports.add(text)
            self._tell_on(text)


def _answer(request: Request, data: bytes, status_bytes: bytes = _IDLE) -> tuple[Piece, ...]:
    """An answer that was not recorded."""
    return (Piece(0.0, encode(MachineReply(request.seq, request.cmd, data, status_bytes))),)


def exchanges_of(recording: Recording, tell: Callable[[str], None]) -> Iterator[Exchange]:
    """Splits a recording into exchanges; bytes before the first request are ignored."""
    request: Request | None = None
    began = 0
    pieces: list[Piece] = []
    events = recording.events
    for at, (event, line) in enumerate(zip(events, recording.lines, strict=True)):
        if event.kind == SENT:
            if request is not None:
                yield Exchange(request, tuple(pieces))
            request = _request(event.data, line, tell, is_spoiled=_is_refused(recording, at))
            began, pieces = event.at, []
        elif event.kind != NOTE and request is not None:
            data = event.data if _is_spoiled(recording, at) else corrected(event.data, line, tell)
            pieces.append(Piece(max(0, event.at - began) / 1e6, data))
    if request is not None:
        yield Exchange(request, tuple(pieces))


def _is_spoiled(recording: Recording, at: int) -> bool:
    """Whether the driver reported it as damaged, or it continues in the next piece."""
    for event in recording.events[at + 1 :]:
        if event.kind == NOTE:
            return event.text.startswith(_SPOILED)
        return event.kind != SENT
    return False


def _is_refused(recording: Recording, at: int) -> bool:
    """Whether the machine answered NAK: a probe damages one request on purpose."""
    return recording.events[at + 1 : at + 2] != () and recording.events[at + 1].data[:1] == bytes((NAK,))


def _request(raw: bytes, line: int, tell: Callable[[str], None], *, is_spoiled: bool) -> Request | None:
    decoder = Decoder()
    decoder.receive(raw if is_spoiled else corrected(raw, line, tell))
    event = decoder.next_event()
    if isinstance(event, Request):
        return event
    if not is_spoiled:
        tell(f"line {line}: no request; what follows it is left out")
    return None


def _printable(data: bytes) -> str:
    return repr(data.decode("utf-8", "backslashreplace"))
