"""Connects to the machine on a port, at one of the usual speeds; otherwise names what is there and what to do. The
probe has its own line: it sends frames that no driver would send, and reports everything received, with its time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bridge.command_table import STATE
from bridge.errors import LinkEnded, PortUnavailable
from bridge.frame import Decoder, Event, Garbage, MachineReply, Nak, Request, Syn, encode
from bridge.link import LAST_SEQ, Port
from bridge.port_network import is_network, open_line
from bridge.ports import find_holders, find_ports
from bridge.recording.recording import Recorder
from common.language import Text, sentence

FIRST_SEQ = 0x20
TRIES = 3
USUAL = 1.2
"""Seconds for an answer; an incomplete answer, or a machine that was asleep, gets more."""
_ALIVE = 0.6

SPEEDS = (115_200, 9_600, 19_200, 38_400, 57_600, 4_800, 2_400, 1_200)
WAKING = 3.0
"""Seconds for the very first answer: a machine may be asleep."""
_STRANGER = 0.7
_WORDS = 8
_MODEM, _PRINTER = b"\rAT\r", b"\x10\x04\x01"
_PRINTER_FIXED, _PRINTER_STATUS = 0b1001_0011, 0b0001_0010
"""Bits of the answer to DLE EOT 1 (ESC/POS) that never change."""


class Unanswered(Exception):
    """No usable answer to a command after all tries."""


@dataclass(frozen=True)
class TimedEvent:
    at: float
    """seconds after the request"""
    event: Event


@dataclass(frozen=True)
class ProbeAnswer:
    """Everything received after one request; `reply` is its own answer."""

    request: bytes
    received: tuple[TimedEvent, ...]
    reply: MachineReply | None
    first_byte: float | None
    longest_pause: float = 0.0
    """Longest time between two received pieces, in seconds."""

    @property
    def text(self) -> str:
        return "" if self.reply is None else self.reply.data.decode("utf-8", "backslashreplace")

    @property
    def refusal(self) -> str | None:
        """The machine's words; None if it accepted the command."""
        return self.text[2:] if self.text.startswith("E:") else None

    @property
    def status(self) -> bytes:
        return b"" if self.reply is None else self.reply.status

    @property
    def naks(self) -> int:
        return sum(isinstance(heard.event, Nak) for heard in self.received)

    @property
    def syns(self) -> int:
        return sum(isinstance(heard.event, Syn) for heard in self.received)

    @property
    def is_echoed(self) -> bool:
        return any(isinstance(heard.event, Request) for heard in self.received)

    @property
    def garbage(self) -> tuple[bytes, ...]:
        return tuple(heard.event.data for heard in self.received if isinstance(heard.event, Garbage))


class ProbeLine:
    """Owns its port. `speed` is only for messages."""

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
        self._heard: list[TimedEvent] = []
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
        """As the driver does: repeats the frame on NAK, silence and garbage. Raises Unanswered after three tries."""
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
        """Sends one frame once; waits for its reply, a NAK, or silence. Raises LinkEnded if the port is lost."""
        self._heard, self._first_byte, self._decoder = [], None, Decoder()
        self._longest_pause = self._last_byte = 0.0
        self._sent_at = self._loop.time()
        self._recorder.sent(frame)
        self._port.write(frame)
        await self._wait(lambda event: isinstance(event, Nak) or _answers(frame, event), patience)
        reply = next((heard.event for heard in self._heard if _answers(frame, heard.event)), None)
        taken = reply if isinstance(reply, MachineReply) else None
        answer = ProbeAnswer(frame, tuple(self._heard), taken, self._first_byte, self._longest_pause)
        self.answers.append(answer)
        return answer

    async def _wait(self, ends: Callable[[Event], bool], patience: float) -> None:
        until = self._sent_at + patience
        last = self._sent_at + 2 * patience + _ALIVE  # final limit: a device may send all the time
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
            self._heard.append(TimedEvent(now, event))
        self._news.set()

    def _on_lost(self, error: Exception) -> None:
        self._lost = error
        self._news.set()


def _answers(frame: bytes, event: Event) -> bool:
    """SEQ and CMD are the third and fourth byte of every frame, also of one damaged on purpose."""
    return isinstance(event, MachineReply) and (event.seq, event.cmd) == (frame[2], frame[3])


class NoMachine(Exception):
    """No machine to probe; the text has reason and advice."""


@asynccontextmanager
async def connect(place: str, recorder: Recorder, first: int) -> AsyncIterator[tuple[ProbeLine, ProbeAnswer]]:
    """Yields the line to the machine on that port, and its first answer. Raises NoMachine."""
    _check_free(place)
    strange = b""
    for speed in _speeds(place, first):
        line = await _open(place, recorder, speed)
        try:
            answer = await _read_state(line)
            if answer.reply is not None:
                yield line, answer
                return
            strange = strange or b"".join(answer.garbage) or (answer.request if answer.is_echoed else b"")
            if speed == first and line.bytes_received == 0 and (what := await _other_device(line)):
                raise NoMachine(what)
            if _is_writing(strange):
                break
        except LinkEnded as error:
            raise NoMachine(Text("{port} hung up: {why}", port=place, why=sentence(error))) from error
        finally:
            line.close()
    raise NoMachine(await _who(place, recorder, first, strange))


def _speeds(place: str, first: int) -> Sequence[int]:
    """Speeds to try; a raw TCP connection has none."""
    return (first,) if place.startswith("tcp://") else tuple(dict.fromkeys((first, *SPEEDS)))


def _check_free(place: str) -> None:
    if is_network(place):
        return
    if names := ", ".join(map(str, find_holders(Path(place)))):
        why = Text(
            "{port} is held by {names}: stop it first (mcfd itself: sudo systemctl stop mcfd)", port=place, names=names
        )
        raise NoMachine(why)


async def _open(place: str, recorder: Recorder, speed: int) -> ProbeLine:
    try:
        return ProbeLine(await open_line(place, speed), recorder, speed)
    except PortUnavailable as error:
        raise NoMachine(sentence(error)) from error


async def _read_state(line: ProbeLine) -> ProbeAnswer:
    """C1h twice: the first may only wake the machine, and its answer may belong to another program's last command."""
    await line.send(_state_request(line), WAKING if line.speed == SPEEDS[0] else _STRANGER)
    return await line.send(_state_request(line), _STRANGER)


def _state_request(line: ProbeLine) -> bytes:
    return encode(Request(line.next_seq(), STATE))


async def _other_device(line: ProbeLine) -> Text | None:
    """Queries for a modem and for a printer; a machine regards both as noise."""
    modem = b"".join((await line.send(_MODEM, _STRANGER)).garbage)
    if b"OK" in modem or b"ERROR" in modem:
        return Text("a modem answers here (AT, OK), no fiscal machine: another port, or another cable")
    printer = b"".join((await line.send(_PRINTER, _STRANGER)).garbage)
    if len(printer) == 1 and printer[0] & _PRINTER_FIXED == _PRINTER_STATUS:
        return Text("a printer answers here, no fiscal machine: another port, or another cable")
    return None


def _is_writing(strange: bytes) -> bool:
    """Text means the right speed, since a wrong one gives no words: other speeds need no try."""
    return len(strange) >= _WORDS and all(byte in b"\t\r\n" or 0x20 <= byte < 0x7F for byte in strange)  # noqa: PLR2004


async def _who(place: str, recorder: Recorder, first: int, strange: bytes) -> Text:
    product = next((port.product for port in find_ports() if place in (str(port.path), str(port.stable))), "")
    if strange:
        line = await _open(place, recorder, first)
        try:
            what = await _other_device(line)
        finally:
            line.close()
        if what:
            return what
        return Text(
            "{port}: something talks here, but not as a fiscal machine does, at no usual speed: {bytes}",
            port=place,
            bytes=strange[:24].decode("latin-1").encode("unicode_escape").decode("ascii"),
        )
    return Text(
        "{port}: no answer at any usual speed: is the machine on, the cable its own, the port the right one? {product}",
        port=place,
        product=product,
    )
