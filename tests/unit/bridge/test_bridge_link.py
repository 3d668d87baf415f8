"""One exchange at a time over a line that misbehaves in every way of the protocol page."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from support.line.naive_frames import naive_encode
from support.line.scripted_line import IDLE, NAK, PATIENT, QUICK, SYN, Journal, Say, ScriptedPort, answer, link_over
from support.processor import within

from bridge.errors import LineDown, LinkEnded, PortVanished
from bridge.link import Link, Timers

pytestmark = pytest.mark.quick_timers

NOISE = b"\xfe"


@pytest.fixture(autouse=True)
async def _nothing_breaks_in_the_loop() -> AsyncIterator[None]:
    """What a port or a timer calls may not raise: nobody would hear it."""
    broken: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))
    yield
    assert broken == []


def reply(seq: int, cmd: int, data: bytes = b"OK") -> bytes:
    return naive_encode(seq, cmd, data, IDLE)


async def test_a_command_is_answered_and_counted() -> None:
    """One frame out, its own reply back."""
    port = ScriptedPort(answer(b"7,12"))
    link = link_over(port)
    assert link.last_seq is None
    got = await link.exchange(0xC0, b"x")
    assert (got.seq, got.cmd, got.data) == (0x30, 0xC0, b"7,12")
    assert port.requests == [(0x30, 0xC0, b"x")]
    assert link.last_seq == 0x30
    assert (link.counters.exchanges, link.counters.bytes_sent) == (1, len(port.written[0]))
    assert link.counters.bytes_received == len(reply(0x30, 0xC0, b"7,12"))


async def test_a_link_without_a_log_of_its_own_writes_to_that_of_the_program(caplog: pytest.LogCaptureFixture) -> None:
    """Its end and why, with no data."""
    caplog.set_level("INFO", "bridge")
    with pytest.raises(LineDown):
        await Link(ScriptedPort(*[[]] * 3), QUICK).exchange(0xC1, b"Awa")
    assert "line.ended" in caplog.messages[-1]
    assert "Awa" not in caplog.text


async def test_the_seq_of_each_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restart the machine's last SEQ is not met on purpose: the first is drawn from all 96, by what cannot be foretold. It goes up by one for each new
    command, and 7Fh is followed by 20h."""
    drawn: list[int] = []
    monkeypatch.setattr("bridge.link.secrets.randbelow", lambda limit: drawn.append(limit) or limit - 2)
    port = ScriptedPort(*[answer()] * 3)
    link = Link(port, QUICK, Journal())
    for _ in range(3):
        await link.exchange(0xC1)
    assert (drawn, [seq for seq, _, _ in port.requests]) == ([0x60], [0x7E, 0x7F, 0x20])


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        pytest.param([NAK], "NAK", id="NAK"),
        pytest.param([], "silence", id="silence"),
        pytest.param([b"\xff\x00\x7f"], "garbage", id="noise"),
        pytest.param([reply(0x30, 0xC1)[:-3]], "garbage", id="broken off"),
        pytest.param([reply(0x30, 0xC1, b"OK").replace(b"OK", b"KO!"[:2])[:-2] + b"0\x03"], "garbage", id="checksum"),
        pytest.param([reply(0x30, 0xC1).replace(b"O", b"\x07")], "garbage", id="format"),
        pytest.param([b"\x01\xff AAAA"], "garbage", id="false SOH"),
        pytest.param([NAK, NAK], "NAK", id="NAK twice"),
    ],
)
async def test_the_same_frame_goes_out_again(trouble, why: str) -> None:
    """On NAK, silence and garbage the frame is repeated with the same SEQ, which the machine does not execute twice; the log says on which."""
    port = ScriptedPort(trouble, answer(), answer())
    journal = Journal()
    link = link_over(port, journal=journal)
    assert (await link.exchange(0xC1)).data == b"OK"
    assert set(port.written) == {port.written[0]}
    assert link.counters.retries >= 1
    assert {text["why"] for event, text in journal.lines if event == "line.retry"} == {why}


@pytest.mark.parametrize("arrived", range(1, len(reply(0x30, 0xC1))))
async def test_a_frame_that_broke_off_is_forgotten_at_the_next_try(arrived: int) -> None:
    """Wherever it broke off: what comes then stands alone, and nothing is called garbage that was none."""
    port = ScriptedPort([reply(0x30, 0xC1)[:arrived]], answer())
    journal = Journal()
    link = link_over(port, journal=journal)
    assert (await link.exchange(0xC1)).data == b"OK"
    assert (link.counters.retries, link.counters.garbage) == (1, 0)
    assert journal.events() == ["line.retry"]


async def test_the_next_try_waits_until_the_line_is_quiet() -> None:
    """While noise still comes the frame would meet it; it goes out once nothing has come for a while."""
    loop, sent, heard = asyncio.get_running_loop(), [], []
    timers = msgspec.structs.replace(PATIENT, quiet=0.05)

    def noise(*_: object) -> list[Say]:
        sent.append(loop.time())
        return [b"\xff", *[(0.02, b"\xff")] * 5]

    def again(seq: int, cmd: int, _: bytes) -> list[Say]:
        sent.append(loop.time())
        return [reply(seq, cmd)]

    port = ScriptedPort(noise, again)
    link = link_over(port, timers)
    deliver = link._on_bytes

    def note(data: bytes) -> None:
        heard.append(loop.time())
        deliver(data)

    port.attach(note, lambda _: None)
    assert (await link.exchange(0xC1)).data == b"OK"
    assert len(heard) == 7
    assert sent[1] - heard[5] >= timers.quiet


@pytest.mark.parametrize("trouble", [NAK, reply(0x30, 0xC1)[:-1] + b"\x00", b"\xff" * 20])
async def test_what_shows_that_the_answer_is_lost_is_not_waited_over(trouble) -> None:
    """After a NAK or a spoiled answer the next try does not wait for the whole response timer (20 s here)."""
    port = ScriptedPort([trouble], answer())
    with within(5):
        assert (await link_over(port, PATIENT).exchange(0xC1)).data == b"OK"


@pytest.mark.parametrize("trouble", [[], [NAK], [b"\xff"], [reply(0x30, 0xC1)[:9]], [reply(0x31, 0xC1)]])
async def test_after_three_tries_the_line_is_down_for_good(trouble) -> None:
    """Three times the same frame, then LineDown with `sent`; the port is closed and nothing is ever sent again."""
    journal = Journal()
    port = ScriptedPort(*[trouble] * 3)
    link = link_over(port, journal=journal)
    with pytest.raises(LineDown) as down:
        await link.exchange(0xC1)
    assert down.value.sent
    assert len(port.written) == 3
    assert len(set(port.written)) == 1
    assert port.is_closed
    assert link.is_over
    with pytest.raises(LineDown) as again:
        await link.exchange(0xC1)
    assert not again.value.sent
    assert len(port.written) == 3
    assert (await link.ended()) is down.value
    assert journal.events()[-1] == "line.ended"


async def test_the_last_try_is_waited_out() -> None:
    """There is no way back after the third try: garbage and NAKs during it do not end it before its time."""
    slow = Timers(first_byte=2.0, byte_gap=0.05, quiet=0.01)
    late = [b"\xff\xff", NAK, (0.2, reply(0x30, 0xC1))]
    port = ScriptedPort([NAK], [NAK], late)
    assert (await link_over(port, slow).exchange(0xC1)).data == b"OK"
    assert len(port.written) == 3


@pytest.mark.parametrize("sign", [SYN, reply(0x55, 0x38)], ids=["SYN", "a late reply"])
async def test_a_sign_of_life_extends_the_response_timer(sign: bytes) -> None:
    """A machine that says something every now and then is waited for, well beyond the first-byte timer, without a retry."""
    timers = Timers(first_byte=0.2, first_byte_close=0.2, syn_gap=0.2, quiet=0.01)
    working = [(0.05, sign)] * 8
    port = ScriptedPort(lambda seq, cmd, _: [*working, (0.05, reply(seq, cmd))])
    link = link_over(port, timers)
    assert (await link.exchange(0x38, b"1.00")).data == b"OK"
    assert len(port.written) == 1


async def test_a_timer_is_never_shortened() -> None:
    """A 38h may be answered by a SYN and then by honest silence: its own timer still holds. The timer is for the first byte: a slow frame counts as long as
    its bytes keep coming."""
    slow_bytes = lambda seq, cmd, _: [(0.01, bytes([byte])) for byte in reply(seq, cmd)]  # noqa: E731  # a step
    port = ScriptedPort(lambda seq, cmd, _: [SYN, (0.2, reply(seq, cmd))], slow_bytes)
    link = link_over(port)
    assert (await link.exchange(0x38, b"1.00", first_byte=5.0)).data == b"OK"
    assert (await link.exchange(0xC1)).data == b"OK"
    assert len(port.written) == 2


@pytest.mark.parametrize("storm", [SYN, reply(0x55, 0x38), NOISE])
async def test_a_storm_ends_at_the_overall_deadline(storm) -> None:
    """SYNs, stale replies or noise without end do not hold a command for ever."""
    port = ScriptedPort(*[[(0.01, storm)] * 500] * 3)
    with within(2), pytest.raises(LineDown) as down:
        await link_over(port).exchange(0x38, b"1.00", overall=0.3)
    assert port.is_closed
    if storm != NOISE:  # signs of life: nothing is sent again, also at the very end
        assert (str(down.value), len(port.written)) == ("the machine keeps the line busy without answering", 1)


@pytest.mark.parametrize(("seq", "cmd"), [(0x2F, 0xC1), (0x31, 0xC1), (0x30, 0xC2)])
async def test_a_stale_reply_is_dropped_and_logged(seq: int, cmd: int) -> None:
    """A reply of another SEQ or another command is not the answer; the wait goes on without a retry."""
    journal = Journal()
    port = ScriptedPort([reply(seq, cmd, b"secret"), (0.01, reply(0x30, 0xC1, b"mine"))])
    link = link_over(port, journal=journal)
    assert (await link.exchange(0xC1)).data == b"mine"
    assert journal.lines == [("line.stale_reply", {"seq": seq, "cmd": cmd, "size": 6})]
    assert link.counters.stale == 1
    assert len(port.written) == 1


async def test_noise_echo_and_stray_bytes_between_commands_do_no_harm() -> None:
    """What comes while nothing is asked, or is our own frame come back, is recorded and dropped."""
    journal = Journal()
    port = ScriptedPort(lambda seq, cmd, text: [naive_encode(seq, cmd, text), reply(seq, cmd)], answer(b"two"))
    link = link_over(port, journal=journal)
    assert (await link.exchange(0xC1, b"name")).data == b"OK"
    port.say(NAK, SYN, b"\xff\x01", reply(0x30, 0xC1), b"\x01\x80\x41")
    await asyncio.sleep(0.02)
    assert (await link.exchange(0xC1)).data == b"two"
    assert set(journal.events()) == {"line.out_of_turn", "line.garbage", "line.stale_reply"}
    assert "name" not in repr(journal.lines)


@pytest.mark.parametrize(
    ("tries", "beside", "garbage", "expected"),
    [
        (1, b"\xff\x00\x7f", 1, [("line.garbage", {"reason": "noise", "size": 3})]),
        (1, naive_encode(0x30, 0xC1, b"")[:-2] + b"0\x03", 1, [("line.garbage", {"reason": "checksum", "size": 10})]),
        (1, naive_encode(0x30, 0xC1, b""), 0, [("line.out_of_turn", {"what": "Request"})]),
        (1, SYN, 0, []),
        (3, NAK, 0, [("line.out_of_turn", {"what": "Nak"})]),
    ],
    ids=["noise", "damaged", "echo", "SYN", "NAK after the last try"],
)
async def test_what_comes_beside_an_answer_is_told_and_counted_once(
    tries: int, beside: bytes, garbage: int, expected: list[tuple[str, dict[str, object]]]
) -> None:
    """The answer behind it in the same bytes is taken; how often it happened is counted, for a bad cable."""
    journal = Journal()
    port = ScriptedPort(*[[]] * (tries - 1), [beside + reply(0x30, 0xC1, b"mine")])
    link = link_over(port, journal=journal)
    assert (await link.exchange(0xC1)).data == b"mine"
    assert (link.counters.garbage, link.counters.stale, len(port.written)) == (garbage, 0, tries)
    assert [line for line in journal.lines if line[0] != "line.retry"] == expected


async def test_the_timer_of_a_command_that_was_answered_does_nothing() -> None:
    """It outlives its exchange: when it is due, nobody waits for anything."""
    port = ScriptedPort(answer(), answer())
    link = link_over(port)
    for _ in range(2):
        await link.exchange(0xC1)
        await asyncio.sleep(QUICK.first_byte * 2)
    assert len(port.written) == 2
    assert not link.is_over


@pytest.mark.parametrize(("is_closed", "error"), [(False, PortVanished), (True, LineDown)])
async def test_what_ends_the_link_ends_the_command_on_it(is_closed: bool, error: type[LinkEnded]) -> None:
    """A port that vanishes, or `close`, which is final and repeatable: at once, with `sent` for the command on the line and without for those after it. A dead
    link is not the same as a silent machine."""
    port = ScriptedPort()
    link = link_over(port, PATIENT)
    asyncio.get_running_loop().call_later(0.01, link.close if is_closed else port.vanish)
    with pytest.raises(error, match="closed" if is_closed else "unplugged") as lost:
        await link.exchange(0xC1)
    assert lost.value.sent
    link.close()
    assert port.is_closed
    for again in (link.exchange, link.probe):
        with pytest.raises(error) as after:
            await again(0xC1)
        assert not after.value.sent


async def test_a_port_that_vanishes_right_behind_an_answer_takes_nothing_of_it_back() -> None:
    """Both in the same turn of the loop, before the caller goes on: the answer is theirs, and the next one hears of the end."""
    port = ScriptedPort()
    link = link_over(port, PATIENT)
    task = asyncio.create_task(link.exchange(0xC1))
    await asyncio.sleep(0)  # it is on the line
    port.deliver(reply(port.requests[0][0], 0xC1))
    port.vanish()
    assert (await task).cmd == 0xC1
    why = await link.ended()
    assert isinstance(why, PortVanished)
    assert not why.sent


async def test_a_port_that_vanishes_while_nothing_is_asked_is_noticed() -> None:
    """`ended` tells it, and may be given up and asked again."""
    port = ScriptedPort()
    link = link_over(port)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(link.ended(), 0.01)
    port.vanish()
    why = await link.ended()
    assert isinstance(why, PortVanished)
    assert not why.sent


async def test_a_command_given_up_half_way_ends_the_link() -> None:
    """It may have been executed: nothing may follow it on this connection as if nothing had happened."""
    port = ScriptedPort([(0.05, reply(0x30, 0x38))])
    link = link_over(port, PATIENT)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(link.exchange(0x38, b"1.00"), 0.01)
    assert port.is_closed
    assert (await link.ended()).sent
    with pytest.raises(LineDown, match="given up"):
        await link.exchange(0xC1)


async def test_a_command_given_up_while_it_waits_its_turn_does_no_harm() -> None:
    """Nothing of it was sent, so the link goes on."""
    port = ScriptedPort(lambda seq, cmd, _: [(0.05, reply(seq, cmd))], answer())
    link = link_over(port, PATIENT)
    first = asyncio.create_task(link.exchange(0xC1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(link.exchange(0xC2), 0.01)
    assert (await first).cmd == 0xC1
    assert (await link.exchange(0x2B)).cmd == 0x2B
    assert [cmd for _, cmd, _ in port.requests] == [0xC1, 0x2B]


async def test_a_probe_tries_once_and_its_silence_is_no_harm() -> None:
    """None, and the late answer to it is not taken for the answer to the next command."""
    port = ScriptedPort([(0.08, reply(0x30, 0xC1, b"old"))], [(0.045, reply(0x31, 0xC1, b"new"))])
    link = link_over(port)
    assert await link.probe(0xC1) is None
    assert (await link.exchange(0xC1)).data == b"new"
    assert [seq for seq, _, _ in port.requests] == [0x30, 0x31]
    port = ScriptedPort(answer(b"yes"))
    got = await link_over(port).probe(0xC1)
    assert got.data == b"yes"
