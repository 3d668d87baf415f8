"""The error tree is what its docstring draws, and nothing else leaves this package."""

import pytest
from support.line.scripted_line import QUICK, Journal, ScriptedPort, answer, replies_of

from bridge.commands import SetCustomer
from bridge.errors import LineDown, LinkEnded, Nonsense, PortVanished, Refused, Unsendable
from bridge.link import Link
from bridge.machine import LinkedMachine


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ([[]] * 3, LineDown),
        ([answer(b"E:no")], Refused),
        ([answer(b"what?")], Nonsense),
        ([answer(bytes(range(0x80, 0xD0)))], Nonsense),
        ([answer(b"")], Nonsense),
    ],
)
async def test_whatever_the_machine_does_is_one_of_our_errors(script, expected) -> None:
    """Silence, refusals and bytes that mean nothing each have their own class; after the last two the line still works."""
    port = ScriptedPort(*script, answer(b"E:still here"))
    machine = LinkedMachine(Link(port, QUICK, Journal()))
    with pytest.raises(expected):
        await machine.state()
    if not issubclass(expected, LinkEnded):
        with pytest.raises(Refused, match="still here"):
            await machine.state()


async def test_a_port_that_is_lost_with_an_error_of_its_own_is_our_error() -> None:
    """Whatever a port gives as the reason of its loss, callers see PortVanished."""
    port = ScriptedPort()
    machine = LinkedMachine(Link(port, QUICK, Journal()))
    port.vanish("[Errno 5] Input/output error")
    with pytest.raises(PortVanished, match="Errno 5"):
        await machine.state()


async def test_what_cannot_be_sent_is_told_when_it_is_due() -> None:
    """Unsendable, once the commands before it were taken; the line is as it was."""
    port = ScriptedPort(answer(b""), answer(b""))
    link = Link(port, QUICK, Journal())
    endless = SetCustomer("PM", "9" * 250, "x")
    with pytest.raises(Unsendable):
        await replies_of(LinkedMachine(link), endless)
    assert (port.written, link.last_seq) == ([], None)
    with pytest.raises(Unsendable):
        await replies_of(LinkedMachine(link), SetCustomer(), endless)
    assert len(port.requests) == 1
    await replies_of(LinkedMachine(link), SetCustomer())
