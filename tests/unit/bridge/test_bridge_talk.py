"""A talk: commands that follow from each other's replies, over a line that may misbehave in the middle of it."""

from __future__ import annotations

import pytest
from support.line.scripted_line import NAK, ScriptedPort, answer, link_over

from bridge.errors import LineDown
from bridge.frame import MachineReply
from bridge.talk import TalkCommand

pytestmark = pytest.mark.quick_timers


def talk(count: int):
    """Asks `count` times, each time for what the reply before it said."""
    said = []
    for turn in range(count):
        got = yield TalkCommand(0x31, b"%d" % turn)
        if got.data.startswith(b"E:"):
            raise ValueError(got.data.decode())
        said.append(got.data)
    return said


async def test_a_talk_is_exchange_after_exchange() -> None:
    """Each reply is answered with the next command, in a frame of its own with a SEQ of its own; the result comes back."""
    port = ScriptedPort(answer(b"a"), answer(b"b"), answer(b"c"))
    link = link_over(port)
    assert await link.converse(talk(3)) == [b"a", b"b", b"c"]
    assert port.requests == [(0x30, 0x31, b"0"), (0x31, 0x31, b"1"), (0x32, 0x31, b"2")]
    assert link.counters.exchanges == 3
    assert await link.converse(talk(0)) == []


async def test_a_talk_ends_where_it_raises_and_the_line_goes_on() -> None:
    """A refusal in the middle: its error is the caller's, nothing more of the talk is sent, the next command is answered."""
    port = ScriptedPort(answer(b"a"), answer(b"E:no"), answer(b"z"))
    link = link_over(port)
    with pytest.raises(ValueError, match="E:no"):
        await link.converse(talk(5))
    assert len(port.requests) == 2
    assert (await link.exchange(0x38, b"C")).data == b"z"


async def test_a_reply_that_is_not_read_is_checked_and_the_next_command_stands_ready() -> None:
    """What comes next is put into words while the machine is busy; a refusal ends the talk all the same."""
    spoken: list[bytes] = []

    def words():
        for data in (b"a", b"b", b"c"):
            spoken.append(data)
            assert (yield TalkCommand(0x31, data, is_read=False)) is None
        return len(spoken)

    def check(reply: MachineReply) -> None:
        heard.append((reply.data, tuple(spoken)))
        if reply.data == b"no":
            raise ValueError("no")

    heard: list[tuple[bytes, tuple[bytes, ...]]] = []
    port = ScriptedPort(answer(b"x"), answer(b"y"), answer(b"z"), answer(b"x"), answer(b"no"), answer(b"z"))
    link = link_over(port)
    assert await link.converse(words(), check) == 3
    assert heard == [(b"x", (b"a", b"b")), (b"y", (b"a", b"b", b"c")), (b"z", (b"a", b"b", b"c"))]
    with pytest.raises(ValueError, match="no"):
        await link.converse(words(), check)
    assert [data for _, _, data in port.requests] == [b"a", b"b", b"c", b"a", b"b"]
    assert [seq for seq, _, _ in port.requests] == list(range(0x30, 0x35))
    assert (await link.exchange(0x38, b"C")).data == b"z"


async def test_what_cannot_be_said_is_told_when_it_is_due() -> None:
    """The command before it has its answer first."""

    def words():
        yield TalkCommand(0x31, b"a", is_read=False)
        raise KeyError("b")

    link = link_over(port := ScriptedPort(answer(b"x"), answer(b"z")))
    with pytest.raises(KeyError):
        await link.converse(words())
    assert len(port.requests) == 1
    assert (await link.exchange(0x38, b"C")).data == b"z"


@pytest.mark.parametrize("trouble", [NAK, b"", b"\x01\x24\x20"], ids=["NAK", "silence", "cut"])
async def test_every_command_of_a_talk_has_its_own_tries(trouble: bytes) -> None:
    """What goes wrong with one frame in the middle is made good for that frame alone."""
    port = ScriptedPort(answer(b"a"), [trouble], [trouble], answer(b"b"), [trouble], [trouble], answer(b"c"))
    link = link_over(port)
    assert await link.converse(talk(3)) == [b"a", b"b", b"c"]
    assert link.counters.retries == 4


async def test_a_line_that_dies_in_a_talk_ends_it() -> None:
    """LineDown after all tries of the frame that was not answered."""
    port = ScriptedPort(answer(b"a"), [b""], [b""], [b""])
    link = link_over(port)
    with pytest.raises(LineDown):
        await link.converse(talk(3))
    assert link.is_over
