"""A recording played again in memory: faults and all; edited by hand; and asked otherwise than it was."""

import asyncio

import pytest
from support.line.commands import add_item
from support.line.scripted_line import replies_of
from support.memory_shop import quick

from bridge.commands import OpenInvoice, Pay, ReadState, ReadSubtotal, SetCustomer
from bridge.errors import Refused
from bridge.link import Link
from bridge.machine import LinkedMachine, handshake
from bridge.recording.recording import Recorder, header, read, written
from simulator.line.faults import FaultPlan
from simulator.line.memory_port import MemoryPort
from simulator.line.replay import Replay
from simulator.line.session import LineSession
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions

pytestmark = pytest.mark.quick_timers
FAULTS = "drop-reply@31h#1,nak@33h#1,drop-reply@38h#1,flip-request@C0h#2"


async def sell(link: Link, number: str, amount: int = 15000) -> object:
    """One sale as the daemon makes it; what 38h said."""
    machine = LinkedMachine(link)
    opening = OpenInvoice("FV", number, "00084440Y", "TTC", "1", "1", "Awa")
    await replies_of(machine, SetCustomer(), opening)
    await replies_of(machine, add_item("Riz", "B", 1800, amount, amount * 100, 1000), ReadSubtotal())
    await replies_of(machine, Pay("E", amount))
    return await machine.close_invoice(amount, credit=False)


async def replay_answers(port: MemoryPort, numbers: tuple[str, ...], recorder: Recorder | None = None) -> list[object]:
    """Two sales with a look before, between and after them."""
    link = Link(port, quick(), recorder=recorder)
    state = await handshake(link)
    found: list[object] = [state.tc]
    for number in numbers:
        found.append(await sell(link, number))
        state = await LinkedMachine(link).ask(ReadState())
        found.append((state.tc, state.fvc, state.last))
    link.close()
    return found


def steady_recorder() -> Recorder:
    """By the loop's clock: a pause of this process is no pause on the line, which the driver would not wait for when it is played."""
    loop = asyncio.get_running_loop()
    return Recorder(lambda _: None, lambda: int(loop.time() * 1e9))


async def recorded() -> tuple[str, list[object]]:
    recorder = steady_recorder()
    session = LineSession(SimulatedMachine(SimulatorOptions()), plan=FaultPlan(FAULTS, 1))
    found = await replay_answers(MemoryPort(session), ("F-1", "F-2"), recorder)
    return header({"nim": "EL02000015-1"}) + written(recorder.drain()), found


async def played(text: str, numbers: tuple[str, ...] = ("F-1", "F-2")) -> tuple[list[object], list[str]]:
    differences: list[str] = []
    port = MemoryPort(Replay(read(text), differences.append))
    return await replay_answers(port, numbers), differences


async def test_what_was_said_is_said_again() -> None:
    """Lost and damaged frames too, under other SEQs; a state that was not asked then is brought up to date."""
    text, then = await recorded()
    lines = text.splitlines(keepends=True)
    closed = max(at for at, line in enumerate(lines) if " > " in line and "815000.00" in line)  # 38h
    until = next(at for at in range(closed, len(lines)) if " < " in lines[at] and ",FV," in lines[at])
    for recording in (text, "".join(lines[: until + 1])):
        assert await played(recording) == (then, [])


async def test_what_is_otherwise_than_it_was_is_told() -> None:
    """An answer edited by hand is taken and told; times moved, lines broken and other data are told too."""
    text, then = await recorded()
    now, differences = await played(text.replace(",EL02000015-1,00084440Y,", ",EL02000015-1,0,"))
    assert [closed.ifu for closed in now if hasattr(closed, "ifu")] == ["0", "0"]
    assert differences
    assert all("length and checksum set right" in difference for difference in differences)
    lines = text.splitlines(keepends=True)
    lines[3] = "1" + lines[3][lines[3].index(" ") :]
    lines.insert(6, "this is nothing\n")
    now, differences = await played("".join(lines))
    assert now == then
    assert any(difference.startswith("line 4: the time goes back") for difference in differences)
    assert any(difference.startswith("line 7: ") for difference in differences)
    now, differences = await played(text, ("F-9", "F-2"))
    assert len(now) == 5
    (other,) = differences
    assert "C0h came with other data" in other


async def test_what_was_not_recorded_is_refused_and_told() -> None:
    """Nothing is made up but what C1h would say."""
    text, _ = await recorded()
    differences: list[str] = []
    link = Link(MemoryPort(Replay(read(text), differences.append)), quick())
    await handshake(link)
    await sell(link, "F-1")
    await sell(link, "F-2")
    with pytest.raises(Refused, match="Not in the recording"):
        await sell(link, "F-3")
    assert any("C3h" in difference for difference in differences)
    link.close()


@pytest.mark.parametrize("first_seq", range(0x20, 0x80, 3))
async def test_what_is_made_up_bears_the_seq_of_its_request(first_seq: int) -> None:
    """Whatever number this run counts from: what was recorded under the same SEQ has nothing to do with it."""
    recorder = steady_recorder()
    link = Link(
        MemoryPort(LineSession(SimulatedMachine(SimulatorOptions()))), quick(), first_seq=0x25, recorder=recorder
    )
    await handshake(link)
    await sell(link, "F-1")
    recording = read(header({"nim": "EL02000015-1"}) + written(recorder.drain()))
    link = Link(MemoryPort(Replay(recording, lambda _: None)), quick(), first_seq=first_seq)
    await handshake(link)
    await sell(link, "F-1")
    with pytest.raises(Refused, match="Not in the recording"):
        await sell(link, "F-2")
