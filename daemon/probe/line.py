"""The probe's own side of a line: it sends what no driver would send, and tells everything that comes back, with its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from bridge.errors import LinkEnded
from bridge.frame import Decoder, Event, Garbage, MachineReply, Nak, Request, Syn, encode
from bridge.link import LAST_SEQ, Port
from bridge.recording.recording import Recorder
from common.language import sentence

FIRST_SEQ = 0x20
TRIES = 3
USUAL = 1.2
"""Seconds for an answer; one in two halves, or of a machine that was asleep, is waited for longer."""
_ALIVE = 0.6


class Unanswered(Exception):
    """No usable answer to a command after all tries."""


@dataclass(frozen=True)
class Heard:
    at: float
    """seconds after the request"""
    event: Event


@dataclass(frozen=True)
class ProbeAnswer:
    """All that came after one request; `reply` is the one to it."""

    request: bytes
    heard: tuple[Heard, ...]
    reply: MachineReply | None
    first_byte: float | None
    longest_pause: float = 0.0
    """Seconds between two pieces of what came."""

    @property
    def text(self) -> str:
        return "" if self.reply is None else self.reply.data.decode("utf-8", "backslashreplace")

    @property
    def refusal(self) -> str | None:
        """The machine's words, None when it took the command."""
        return self.text[2:] if self.text.startswith("E:") else None

    @property
    def status(self) -> bytes:
        return b"" if self.reply is None else self.reply.status

    @property
    def naks(self) -> int:
        return sum(isinstance(heard.event, Nak) for heard in self.heard)

    @property
    def syns(self) -> int:
        return sum(isinstance(heard.event, Syn) for heard in self.heard)

    @property
    def is_echoed(self) -> bool:
        return any(isinstance(heard.event, Request) for heard in self.heard)

    @property
    def garbage(self) -> tuple[bytes, ...]:
        return tuple(heard.event.data for heard in self.heard if isinstance(heard.event, Garbage))


class ProbeLine:
    """Owns its port. `speed` is only told."""

    def __init__(self, port: Port, recorder: Recorder, speed: int) -> None:
        self.speed = speed
        self.answers: list[ProbeAnswer] = []
        self.bytes_received = 0
        self.seq = FIRST_SEQ
        self._port = port
        self._recorder = recorder
        self._loop = asyncio.get_running_loop()
        self._decoder = Decoder()
        self._news = asyncio.Event()
        self._heard: list[Heard] = []
        self._sent_at = 0.0
        self._first_byte: float | None = None
        self._longest_pause = self._last_byte = 0.0
        self._lost: Exception | None = None
        recorder.note(f"link begins: {speed} bit/s")
        port.attach(self._on_bytes, self._on_lost)

    def close(self) -> None:
        self._recorder.note("link ends")
        self._port.close()

    async def exchange(self, cmd: int, data: bytes = b"") -> ProbeAnswer:
        """As the driver does: the same frame again on NAK, silence and garbage. Unanswered after three tries."""
        frame = encode(Request(self.next_seq(), cmd, data))
        for _ in range(TRIES):
            answer = await self.send(frame)
            if answer.reply is not None:
                return answer
        raise Unanswered

    def next_seq(self) -> int:
        self.seq = self.seq + 1 if FIRST_SEQ <= self.seq < LAST_SEQ else FIRST_SEQ
        return self.seq

    async def send(self, frame: bytes, patience: float = USUAL) -> ProbeAnswer:
        """One frame, once, as it is; until its reply, a NAK, or silence. LinkEnded when the port is gone."""
        self._heard, self._first_byte, self._decoder = [], None, Decoder()
        self._longest_pause = self._last_byte = 0.0
        self._sent_at = self._loop.time()
        self._recorder.sent(frame)
        self._port.write(frame)
        await self._wait(lambda event: self._ends(frame, event), patience)
        reply = next((heard.event for heard in self._heard if _answers(frame, heard.event)), None)
        taken = reply if isinstance(reply, MachineReply) else None
        answer = ProbeAnswer(frame, tuple(self._heard), taken, self._first_byte, self._longest_pause)
        self.answers.append(answer)
        return answer

    async def _wait(self, ends: Callable[[Event], bool], patience: float) -> None:
        until = self._sent_at + patience
        last = self._sent_at + 2 * patience + _ALIVE  # whatever else comes: something may talk all the time
        seen = 0
        while not any(ends(heard.event) for heard in self._heard):
            if self._lost is not None:
                raise LinkEnded(sentence(self._lost))
            if len(self._heard) > seen or self._decoder.in_frame:
                seen = len(self._heard)
                until = max(until, self._loop.time() + _ALIVE)
            if self._loop.time() >= last:
                return
            self._news.clear()
            try:
                async with asyncio.timeout_at(min(until, last)):
                    await self._news.wait()
            except TimeoutError:
                return

    def _ends(self, frame: bytes, event: Event) -> bool:
        return isinstance(event, Nak) or _answers(frame, event)

    def _on_bytes(self, data: bytes) -> None:
        now = self._loop.time() - self._sent_at
        self.bytes_received += len(data)
        self._recorder.received(data)
        if self._decoder.in_frame:
            self._longest_pause = max(self._longest_pause, now - self._last_byte)
        if self._first_byte is None:
            self._first_byte = now
        self._last_byte = now
        self._decoder.receive(data)
        while not isinstance(event := self._decoder.next_event(), type):
            self._heard.append(Heard(now, event))
        self._news.set()

    def _on_lost(self, error: Exception) -> None:
        self._lost = error
        self._news.set()


def _answers(frame: bytes, event: Event) -> bool:
    """SEQ and CMD are at the third and fourth byte of every frame, also of one that is damaged on purpose."""
    return isinstance(event, MachineReply) and (event.seq, event.cmd) == (frame[2], frame[3])
