"""Connects to the machine on a port, at one of the usual speeds; names what is there instead of one, and what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bridge.command_table import STATE
from bridge.errors import LinkEnded, PortUnavailable
from bridge.frame import Request, encode
from bridge.port_network import is_network, open_line
from bridge.ports import find_holders, find_ports
from bridge.recording.recording import Recorder
from common.language import Text, sentence
from daemon.probe.line import ProbeAnswer, ProbeLine

SPEEDS = (115_200, 9_600, 19_200, 38_400, 57_600, 4_800, 2_400, 1_200)
WAKING = 3.0
"""Seconds for the very first answer: a machine may have been asleep."""
_STRANGER = 0.7
_WORDS = 8
_MODEM, _PRINTER = b"\rAT\r", b"\x10\x04\x01"
_PRINTER_FIXED, _PRINTER_STATUS = 0b1001_0011, 0b0001_0010
"""Bits of the answer to DLE EOT 1 (ESC/POS) that never change."""


class NoMachine(Exception):
    """Nothing to probe; `text` says why and what to do. `held`: another program has the port."""

    def __init__(self, text: Text, *, held: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.held = held


@asynccontextmanager
async def connect(place: str, recorder: Recorder, first: int) -> AsyncIterator[tuple[ProbeLine, ProbeAnswer]]:
    """The line to the machine on that port and its first answer. NoMachine."""
    _check_free(place)
    strange = b""
    for speed in _speeds(place, first):
        line = await _open(place, recorder, speed)
        try:
            answer = await _greet(line)
            if answer.reply is not None:
                yield line, answer
                return
            strange = strange or b"".join(answer.garbage) or (answer.request if answer.is_echoed else b"")
            if speed == first and line.bytes_received == 0 and (what := await _stranger(line)):
                raise NoMachine(what)
            if _is_writing(strange):
                break
        except LinkEnded as error:
            raise NoMachine(Text("{port} hung up: {why}", port=place, why=sentence(error))) from error
        finally:
            line.close()
    raise NoMachine(await _who(place, recorder, first, strange))


def _speeds(place: str, first: int) -> Sequence[int]:
    """A raw TCP connection has none."""
    return (first,) if place.startswith("tcp://") else tuple(dict.fromkeys((first, *SPEEDS)))


def _check_free(place: str) -> None:
    if is_network(place):
        return
    holders = find_holders(Path(place))
    if holders:
        raise NoMachine(
            Text(
                "{port} is held by {names}: stop it first (mcfd itself: sudo systemctl stop mcfd)",
                port=place,
                names=", ".join(map(str, holders)),
            ),
            held=True,
        )


async def _open(place: str, recorder: Recorder, speed: int) -> ProbeLine:
    try:
        return ProbeLine(await open_line(place, speed), recorder, speed)
    except PortUnavailable as error:
        raise NoMachine(sentence(error), held=error.why == "busy") from error


async def _greet(line: ProbeLine) -> ProbeAnswer:
    """C1h twice: what wakes a machine up may be lost on it, and the first answer may be to somebody else's last command."""
    await line.send(_state_request(line), WAKING if line.speed == SPEEDS[0] else _STRANGER)
    return await line.send(_state_request(line), _STRANGER)


def _state_request(line: ProbeLine) -> bytes:
    return encode(Request(line.next_seq(), STATE))


async def _stranger(line: ProbeLine) -> Text | None:
    """A modem and a printer have a question of their own, which a machine takes for noise."""
    modem = b"".join((await line.send(_MODEM, _STRANGER)).garbage)
    if b"OK" in modem or b"ERROR" in modem:
        return Text("a modem answers here (AT, OK), no fiscal machine: another port, or another cable")
    printer = b"".join((await line.send(_PRINTER, _STRANGER)).garbage)
    if len(printer) == 1 and printer[0] & _PRINTER_FIXED == _PRINTER_STATUS:
        return Text("a printer answers here, no fiscal machine: another port, or another cable")
    return None


def _is_writing(strange: bytes) -> bool:
    """At a wrong speed nothing would look like words: there is no need to try the others."""
    return len(strange) >= _WORDS and all(byte in b"\t\r\n" or 0x20 <= byte < 0x7F for byte in strange)  # noqa: PLR2004  ASCII


async def _who(place: str, recorder: Recorder, first: int, strange: bytes) -> Text:
    product = next((port.product for port in find_ports() if place in (str(port.path), str(port.stable))), "")
    if strange:
        line = await _open(place, recorder, first)
        try:
            what = await _stranger(line)
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
        "{port}: nobody answers, at no usual speed: is the machine on, the cable its own, the port the right one? {product}",
        port=place,
        product=product,
    )
