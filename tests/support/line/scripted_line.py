"""A port in memory whose other end follows a script: what to say, and when, after each frame it gets."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from support.line.naive_frames import naive_decode, naive_encode

from bridge.commands import Command
from bridge.link import Link, Timers
from bridge.machine import LinkedMachine

NAK, SYN = b"\x15", b"\x16"
IDLE = b"\x80" * 6

# Quick, and far enough apart to be told from one another on a busy box.
QUICK = Timers(
    first_byte=0.05,
    first_byte_close=0.08,
    first_byte_credit=0.2,
    byte_gap=0.05,
    syn_gap=0.05,
    quiet=0.01,
    overall=2.0,
    overall_credit=3.0,
    pending_every=0.01,
    pending_close=0.3,
    pending_credit=0.6,
)
PATIENT = Timers(first_byte=20.0, byte_gap=20.0, syn_gap=20.0, quiet=0.01, overall=30.0)

# What the other end says after one frame: bytes, or (seconds later, bytes), in order.
Say = bytes | tuple[float, bytes]
Step = Iterable[Say] | Callable[[int, int, bytes], Iterable[Say]]


def answer(data: bytes = b"OK") -> Step:
    return lambda seq, cmd, _: [naive_encode(seq, cmd, data, IDLE)]


async def replies_of(machine: LinkedMachine, *commands: Command[Any]) -> Any:
    """One command after the other; what the last one is answered."""
    answer = None
    for command in commands:
        answer = await machine.ask(command)
    return answer


class ScriptedPort:
    """Each write must be one whole frame and takes the next step of the script; without one there is silence."""

    def __init__(self, *script: Step) -> None:
        self.written: list[bytes] = []
        self.requests: list[tuple[int, int, bytes]] = []
        self.is_closed = False
        self._script = list(script)
        self._loop = asyncio.get_running_loop()

    def attach(self, on_bytes: Callable[[bytes], None], on_lost: Callable[[Exception], None]) -> None:
        self._on_bytes = on_bytes
        self._on_lost = on_lost

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.written.append(data)
        seq, cmd, text, _ = naive_decode(data)
        self.requests.append((seq, cmd, text))
        if self._script:
            step = self._script.pop(0)
            self.say(*(step(seq, cmd, text) if callable(step) else step))

    def close(self) -> None:
        self.is_closed = True

    def say(self, *parts: Say) -> None:
        after = 0.0
        for part in parts:
            delay, data = part if isinstance(part, tuple) else (0.0, part)
            after += delay
            self._loop.call_later(after, self.deliver, data)

    def vanish(self, text: str = "unplugged") -> None:
        if not self.is_closed:
            self._on_lost(OSError(text))

    def deliver(self, data: bytes) -> None:
        """Now, not in a later turn of the loop."""
        if not self.is_closed:
            self._on_bytes(data)


class Journal:
    """A log that keeps its events."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict]] = []

    def __call__(self, event: str, /, **fields: object) -> None:
        self.lines.append((event, fields))

    def events(self) -> list[str]:
        return [event for event, _ in self.lines]


def link_over(port: ScriptedPort, timers: Timers = QUICK, journal: Journal | None = None) -> Link:
    """With SEQ 30h for its first frame."""
    return Link(port, timers, journal or Journal(), first_seq=0x30)
