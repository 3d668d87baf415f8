"""One exchange at a time over one port: a command is sent and its answer returned, or the link ends.

The same frame (same SEQ) is sent again on NAK, on silence, and on garbage followed by quiet. That is safe: the machine
repeats its last reply instead of executing twice (protocol section 1). A link that has given up has ended for good: the
answer to the abandoned command may still come, and only a new connection, which begins with the handshake, finds out
the machine's state. So a caller cancelled in the middle of a command ends the link: the command may have been executed,
and nothing may follow it as if nothing had happened."""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from bridge.errors import LineDown, LinkEnded, PortVanished
from bridge.frame import MIN_SEQ, Decoder, Event, Garbage, MachineReply, Nak, Request, Syn, encode
from bridge.recording.recording import LinkRecord, Recorder
from common.language import Text, sentence
from common.language.reasons import CALLER_GAVE_UP, LINE_BUSY, LINK_CLOSED, NO_ANSWER

LAST_SEQ = 0x7F
"""The highest SEQ that every machine accepts (protocol 1); 20h follows."""


class Port(Protocol):
    """Bytes to and from one machine. `on_lost` is called at most once; nothing is delivered after `close`, which may be
    called in any state."""

    def attach(self, on_bytes: Callable[[bytes], None], on_lost: Callable[[Exception], None]) -> None: ...
    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class Timers(msgspec.Struct, frozen=True):
    """Seconds, and tries of the same frame (protocol section 1, all C facts)."""

    tries: int = 3
    """transmissions of the same frame"""
    first_byte: float = 0.5
    """of the answer, as the next two"""
    first_byte_close: float = 3.0
    first_byte_credit: float = 90.0
    byte_gap: float = 0.5
    syn_gap: float = 0.5
    quiet: float = 0.1
    """silence after garbage: the answer is over; longer than a USB adapter buffers bytes"""
    overall: float = 30.0
    overall_credit: float = 120.0
    """limits of one exchange, however many SYNs or stale replies arrive"""
    pending_every: float = 0.5
    pending_close: float = 10.0
    pending_credit: float = 90.0
    """limits of a 38h that is answered by `P:` repeatedly"""


class LineStatistics(msgspec.Struct):
    """Of one link, or of all links of a line if they share it; for metrics."""

    exchanges: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    retries: int = 0
    """frames sent again"""
    garbage: int = 0
    stale: int = 0
    """replies to an earlier command"""


@dataclass(slots=True, eq=False)
class _Exchange:
    """The command in progress and the time limits of its reply."""

    request: Request
    raw: bytes
    answer: asyncio.Future[MachineReply]
    first_byte: float
    give_up_at: float
    tries_left: int
    is_probe: bool
    answer_by: float = field(init=False)
    is_spoiled: bool = field(init=False)

    def is_answered_by(self, reply: MachineReply) -> bool:
        return (reply.seq, reply.cmd) == (self.request.seq, self.request.cmd)

    def extend(self, until: float) -> None:
        """After a sign of life; never shortens, since a 38h may be followed by SYNs and then by legitimate silence."""
        self.answer_by = max(self.answer_by, until)
        self.is_spoiled = False


def log_to_stdlib(event: str, /, **fields: object) -> None:
    logging.getLogger("bridge").info("%s %s", event, fields)


class Link:
    """Owns its port: the end of the link closes the port. Data is never logged: it contains customers' names."""

    def __init__(
        self,
        port: Port,
        timers: Timers | None = None,
        log: Callable[..., None] = log_to_stdlib,
        *,
        first_seq: int | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.timers = timers or Timers()
        self.counters = LineStatistics()
        self.last_seq: int | None = None
        """SEQ of the last command written, None before the first"""
        self._next_seq = first_seq or MIN_SEQ + secrets.randbelow(LAST_SEQ - MIN_SEQ + 1)
        self._port = port
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._decoder = Decoder()
        self._turn = asyncio.Lock()
        self._current: _Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at = 0.0
        self._end: asyncio.Future[LinkEnded] = self._loop.create_future()
        self.record = LinkRecord(recorder)
        port.attach(self._on_bytes, self._on_lost)

    @property
    def is_over(self) -> bool:
        return self._end.done()

    async def ended(self) -> LinkEnded:
        """Waits for the end of this link, also without a command in progress; returns the reason."""
        return await asyncio.shield(self._end)

    async def exchange(
        self,
        cmd: int,
        data: bytes = b"",
        *,
        first_byte: float | None = None,
        overall: float | None = None,
        tries: int | None = None,
        is_probe: bool = False,
    ) -> MachineReply:
        """The machine's reply; concurrent callers take turns. Raises LineDown or PortVanished if the link has ended; a
        silent probe raises LineDown and the link stays."""
        timers = self.timers
        async with self._turn:
            if self._end.done():
                error = self._end.result()
                raise type(error)(error.detail)
            now, request = self._loop.time(), Request(self._next_seq, cmd, data)
            self._current = current = _Exchange(
                request=request,
                raw=encode(request),
                answer=self._loop.create_future(),
                first_byte=timers.first_byte if first_byte is None else first_byte,
                give_up_at=now + (timers.overall if overall is None else overall),
                tries_left=timers.tries if tries is None else tries,
                is_probe=is_probe,
            )
            self.last_seq = request.seq
            self._next_seq = request.seq + 1 if request.seq < LAST_SEQ else MIN_SEQ
            self.counters.exchanges += 1
            try:
                self._send(current)
                self._arm(current)
                return await current.answer
            except asyncio.CancelledError:
                self._finish(LineDown(CALLER_GAVE_UP, sent=True))
                raise
            finally:
                self._current = None

    async def probe(self, cmd: int, data: bytes = b"", tries: int = 1) -> MachineReply | None:
        """None on silence, and the link stays. Only for commands that change nothing in the machine."""
        try:
            return await self.exchange(cmd, data, tries=tries, is_probe=True)
        except LineDown:
            if self.is_over:
                raise
            return None

    def give_up(self, detail: Text) -> LineDown:
        """Ends the link in the middle of something with unknown effect; returns the error to raise."""
        error = LineDown(detail, sent=True)
        self._finish(error)
        return error

    def close(self) -> None:
        self._on_lost(LineDown(LINK_CLOSED))

    def _send(self, current: _Exchange) -> None:
        """Writes before anything else: the machine works meanwhile."""
        self._port.write(current.raw)
        current.tries_left -= 1
        current.is_spoiled = False
        current.answer_by = self._loop.time() + current.first_byte
        self.counters.bytes_sent += len(current.raw)
        self.record.sent(current.raw)

    def _send_again(self, current: _Exchange, why: str) -> None:
        self.counters.retries += 1
        self._log_incident(
            f"retry: {why}",
            "line.retry",
            why=why,
            seq=current.request.seq,
            cmd=current.request.cmd,
            left=current.tries_left,
        )
        self._send(current)

    def _on_bytes(self, data: bytes) -> None:
        self.counters.bytes_received += len(data)
        self.record.received(data)
        self._decoder.receive(data)
        while not isinstance(event := self._decoder.next_event(), type):
            current = self._current
            if current is None or current.answer.done():
                self._drop(event)
            elif isinstance(event, MachineReply) and current.is_answered_by(event):
                self.record.has_answered = True
                current.answer.set_result(event)
            else:
                self._on_event(current, event)
        if self._current is not None and not self._current.answer.done():
            self._arm(self._current)

    def _on_event(self, current: _Exchange, event: Event) -> None:
        """Handles any event except the answer."""
        match event:
            case MachineReply():
                self._drop(event)
                current.extend(self._loop.time() + self.timers.syn_gap)  # late, but alive
            case Syn():
                current.extend(self._loop.time() + self.timers.syn_gap)
            case Nak() if current.tries_left:
                self._send_again(current, "NAK")
            case Garbage():
                self._drop(event)
                current.is_spoiled = True
            case _:
                self._drop(event)  # a NAK after the last try: an answer may still come; or our own echo

    def _drop(self, event: Event) -> None:
        match event:
            case MachineReply():
                self.counters.stale += 1
                self._log_incident(
                    "stale reply", "line.stale_reply", seq=event.seq, cmd=event.cmd, size=len(event.data)
                )
            case Garbage():
                self.counters.garbage += 1
                self._log_incident(
                    f"garbage: {event.reason}", "line.garbage", reason=event.reason, size=len(event.data)
                )
            case _:
                what = type(event).__name__
                self._log_incident(f"out of turn: {what}", "line.out_of_turn", what=what)

    def _arm(self, current: _Exchange) -> None:
        """Sets the timer. The last try waits its full time, whatever garbage arrives: it is final."""
        wake_at = current.answer_by
        if self._decoder.in_frame:
            gap_ends = self._loop.time() + self.timers.byte_gap
            wake_at = gap_ends if current.tries_left else max(wake_at, gap_ends)
        elif current.is_spoiled and current.tries_left:
            wake_at = min(wake_at, self._loop.time() + self.timers.quiet)
        self._wake_at = min(wake_at, current.give_up_at)
        if self._timer is None or self._timer.when() > self._wake_at:
            self._disarm()
            self._timer = self._loop.call_at(self._wake_at, self._on_timer)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        """One timer serves all exchanges: most are answered long before it, and a new one for each would cost more."""
        self._timer = None
        current = self._current
        if current is None or current.answer.done():
            return
        if self._loop.time() < self._wake_at:
            self._timer = self._loop.call_at(self._wake_at, self._on_timer)
        elif self._wake_at >= current.give_up_at:
            self._fail(current, LINE_BUSY)
        elif not current.tries_left:
            self._fail(current, NO_ANSWER(after=f"{current.request.cmd:02X}h"))
        else:
            why = "garbage" if current.is_spoiled or self._decoder.in_frame else "silence"
            self._decoder = Decoder()  # an incomplete frame must not be joined with the next one
            self._send_again(current, why)
            self._arm(current)

    def _fail(self, current: _Exchange, detail: Text) -> None:
        error = LineDown(detail, sent=True)
        if not current.is_probe:
            self._finish(error)
        current.answer.set_exception(error)

    def _on_lost(self, reason: Exception) -> None:
        current = self._current
        waits = current is not None and not current.answer.done()
        kind = LineDown if isinstance(reason, LineDown) else PortVanished
        error = kind(sentence(reason), sent=waits)
        self._finish(error)
        if current is not None and waits:
            current.answer.set_exception(error)

    def _finish(self, error: LinkEnded) -> None:
        if self._end.done():
            return
        self._end.set_result(error)
        self._disarm()
        self._port.close()
        self.record.ended(type(error).__name__)
        if error.sent:
            self._log_incident(
                "the last command has no answer", "line.ended", why=type(error).__name__, detail=error.detail
            )
        else:
            self._log("line.ended", why=type(error).__name__, detail=error.detail)

    def _log_incident(self, what: str, event: str, /, **fields: object) -> None:
        incident = self.record.note_incident(what)
        self._log(event, **fields, **({"incident": incident} if incident else {}))
