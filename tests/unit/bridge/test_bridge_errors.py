"""The error tree is what its docstring draws, and nothing else leaves this package."""

from __future__ import annotations

import inspect

import pytest
from support.line.scripted_line import QUICK, Journal, ScriptedPort, answer, replies_of

from bridge import errors
from bridge.commands import ReadState, SetCustomer
from bridge.errors import BridgeError, LineDown, LinkEnded, Nonsense, PortVanished, Refused, Unsendable
from bridge.link import Link
from bridge.machine import LinkedMachine


def drawn_tree() -> dict[str, str]:
    """Class to parent, as drawn: the column of a name gives its depth."""
    parents, open_at = {}, {}
    for line in (errors.__doc__ or "").splitlines():
        name = line.replace("├", " ").replace("└", " ").replace("─", " ").replace("│", " ").split("  ")
        words = [word.strip() for word in name if word.strip()]
        if words and words[0] in vars(errors):
            column = line.index(words[0])
            above = [at for at in open_at if at < column]
            parents[words[0]] = open_at[max(above)] if above else "Exception"
            open_at = {at: name for at, name in open_at.items() if at < column} | {column: words[0]}
    return parents


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    """Every class is drawn, under its parent."""
    classes = {
        name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, BridgeError)
    }
    assert drawn_tree() == {name: kind.__base__.__name__ for name, kind in classes.items()}


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


def test_errors_tell_what_happened_in_a_sentence() -> None:
    """Texts are for logs and people; the machine's own words are kept as they came."""
    assert str(Refused("No amount!")) == "the machine refused: No amount!"
    assert Refused("No amount!").text == "No amount!"
    assert (LineDown("silent", sent=True).sent, LineDown("silent").sent) == (True, False)
    with pytest.raises(Nonsense, match="the machine's state has 1 fields"):
        ReadState().read("x")
