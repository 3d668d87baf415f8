"""The same conversation over a family of hostile lines: each command executed once, each answer its own."""

import asyncio
import random
from collections.abc import Callable

import pytest
from support.line.naive_frames import naive_encode
from support.line.scripted_line import IDLE, NAK, SYN, Journal

from bridge.frame import Decoder, Garbage, Request
from bridge.link import Link, Timers

pytestmark = pytest.mark.quick_timers

COMMANDS = 60
TIMERS = Timers(first_byte=0.015, byte_gap=0.015, syn_gap=0.015, quiet=0.005, overall=5.0)
SEEDS = [11, 12, 13]


class CountingMachine:
    """Executes by counting; repeats its last reply on an equal SEQ, and says NAK to what is damaged."""

    def __init__(self) -> None:
        self.executed: list[bytes] = []
        self._decoder = Decoder()
        self._last = (0, b"")

    def receive(self, raw: bytes) -> list[bytes]:
        self._decoder.receive(raw)
        answers = []
        while not isinstance(event := self._decoder.next_event(), type):
            match event:
                case Request():
                    answers.append(self._answer(event))
                case Garbage(reason="checksum" | "format"):
                    answers.append(NAK)
        return answers

    def _answer(self, request: Request) -> bytes:
        if request.seq != self._last[0]:
            self.executed.append(request.data)
            text = f"{len(self.executed)}:".encode() + request.data
            self._last = (request.seq, naive_encode(request.seq, request.cmd, text, IDLE))
        return self._last[1]


Fault = Callable[[random.Random, bytes], list[bytes]]


def flip(rng: random.Random, raw: bytes) -> list[bytes]:
    at = rng.randrange(len(raw))
    return [raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :]]


def shred(rng: random.Random, raw: bytes) -> list[bytes]:
    return [raw[i : i + 1] for i in range(len(raw))]


def noise(rng: random.Random, raw: bytes) -> list[bytes]:
    return [rng.randbytes(rng.randrange(1, 9)), raw, rng.randbytes(rng.randrange(1, 9))]


FAULTS: dict[str, Fault] = {
    "drop": lambda _rng, _raw: [],
    "flip": flip,
    "shred": shred,
    "cut short": lambda rng, raw: [raw[: rng.randrange(1, len(raw))]],
    "double": lambda _rng, raw: [raw, raw],
    "noise": noise,
    "NAK before": lambda _rng, raw: [NAK, raw],
    "SYN before": lambda rng, raw: [SYN] * rng.randrange(1, 4) + [raw],
    "stale before": lambda rng, raw: [naive_encode(rng.randrange(0x20, 0x80), 0xC2, b"0:stale", IDLE), raw],
}


class HostilePort:
    """Spoils frames in both directions, at most two for each command, so that three tries are enough."""

    def __init__(self, machine: CountingMachine, fault: Fault | None, seed: int) -> None:
        self._machine = machine
        self._fault = fault
        self._rng = random.Random(seed)
        self._loop = asyncio.get_running_loop()
        self._seq = 0
        self._spoiled = 0
        self._closed = False

    def attach(self, on_bytes: Callable[[bytes], None], on_lost: Callable[[Exception], None]) -> None:
        self._on_bytes = on_bytes
        self._on_lost = on_lost

    def write(self, data: bytes) -> None:
        if data[2] != self._seq:
            self._seq, self._spoiled = data[2], 0
        for piece in self._spoil(data):
            for answer in self._machine.receive(piece):
                for part in self._spoil(answer) if len(answer) > 1 else [answer]:
                    self._loop.call_soon(self._deliver, part)

    def close(self) -> None:
        self._closed = True

    def _spoil(self, raw: bytes) -> list[bytes]:
        if self._spoiled < 2 and self._rng.random() < 0.25:
            self._spoiled += 1
            fault = self._fault or self._rng.choice(list(FAULTS.values()))
            return fault(self._rng, raw)
        return [raw]

    def _deliver(self, data: bytes) -> None:
        if not self._closed:
            self._on_bytes(data)


@pytest.mark.parametrize("name", [*FAULTS, "all of them"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_each_command_is_executed_once_and_answered_by_its_own_reply(name: str, seed: int) -> None:
    """Whatever spoils a quarter of the frames, the machine executes each command once, in order, and no answer is mixed up."""
    machine = CountingMachine()
    link = Link(HostilePort(machine, FAULTS.get(name), seed), TIMERS, Journal(), first_seq=0x20 + seed)
    sent = [f"command {i}".encode() for i in range(COMMANDS)]
    for i, data in enumerate(sent):
        answer = await link.exchange(0x31, data)
        assert answer.data == f"{i + 1}:".encode() + data, f"{name}, seed {seed}"
    assert machine.executed == sent, f"{name}, seed {seed}"
    link.close()
