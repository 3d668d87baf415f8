"""Every recording that we have, through the driver, which must understand it, and through the simulator, which must answer alike."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.line.commands import EACH

from bridge.commands import CancelInvoice, understand
from bridge.errors import Refused
from bridge.frame import Decoder, MachineReply, Request, encode
from bridge.recording.masking import masked
from bridge.recording.recording import RECEIVED, LineEvent, read
from simulator.line.replay import Exchange, exchanges_of
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions

FOLDER = Path(__file__).parents[3] / "recordings"
RECORDINGS = sorted(FOLDER.glob("*.rec"))


def answered(recording: Path) -> Iterator[tuple[Exchange, MachineReply]]:
    messages: list[str] = []
    for exchange in exchanges_of(read(recording.read_text()), messages.append):
        if exchange.reply is not None:
            yield exchange, exchange.reply
    assert messages == []


def shape(reply: bytes) -> str:
    """Fields, and what each is made of: digits, letters, or both."""
    if reply.startswith(b"E:"):
        return "E:"
    text = re.sub(r"(?<![A-Z0-9-])[A-Z0-9]{24}(?![A-Z0-9-])", "CODE", reply.decode("latin-1"))
    text = re.sub(r"(?<![A-Z0-9-])[A-Z0-9]{4}(-[A-Z0-9]{4}){5}(?![A-Z0-9-])", "CO-DE", text)
    return re.sub(r"[^\W\d_]+", "A", re.sub(r"[0-9]+", "9", text))


def differences(recording: Path) -> list[str]:
    """Of a usual machine that is asked the same, one line for each command and form; what it refuses is one too."""
    machine = SimulatedMachine(SimulatorOptions())
    found = []
    last = None
    for exchange, reply in answered(recording):
        if exchange.request == last:
            continue  # the same SEQ: an answer repeated
        last = exchange.request
        answer = machine.execute(exchange.request.cmd, unmasked(exchange.request))
        ours = without_people(MachineReply(reply.seq, reply.cmd, *answer))
        if shape(ours) != shape(reply.data):
            found.append(f"{exchange.request.cmd:02X}h {shape(reply.data)} | {shape(ours)}")
    return list(dict.fromkeys(found))


def without_people(reply: MachineReply) -> bytes:
    decoder = Decoder()
    decoder.receive(masked([LineEvent(0, RECEIVED, encode(reply))])[0].data)
    event = decoder.next_event()
    assert isinstance(event, MachineReply)
    return event.data


def unmasked(request: Request) -> bytes:
    """Customers and operators are `x…` in a recording; the IFU has to be the machine's own."""
    return re.sub(rb"(?<=,)x{9}(?=,)", b"00084440Y", request.data)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_the_driver_understands_it(recording) -> None:
    """Every answer that is no refusal."""
    count = 0
    for exchange, reply in answered(recording):
        try:
            command = CancelInvoice() if exchange.is_cancel else EACH[exchange.request.cmd]
            understand(command, reply.data)
        except Refused:
            assert reply.data.startswith(b"E:")
        count += 1
    assert count > 50


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_the_simulator_answers_alike_or_the_difference_is_listed(recording) -> None:
    """In `<name>.differences`; one that is gone is to be taken out."""
    listed = recording.with_suffix(".differences")
    assert differences(recording) == (listed.read_text().splitlines() if listed.exists() else [])
