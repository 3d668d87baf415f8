"""What is noted of a line while it works: every byte, when, and why the driver did what it did."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.line.naive_frames import naive_encode
from support.line.scripted_line import IDLE, NAK, QUICK, Journal, ScriptedPort, answer, replies_of

from bridge.commands import ReadState
from bridge.errors import LineDown, Nonsense, Refused
from bridge.link import Link
from bridge.machine import LinkedMachine
from bridge.recording.recording import (
    CLOCK_STEP,
    LONGEST_INCIDENT,
    MAX_EVENTS,
    MINUTE,
    NOTE,
    RECEIVED,
    SENT,
    LineEvent,
    Recorder,
    header,
    read,
    written,
)

pytestmark = pytest.mark.quick_timers

EVENTS = st.builds(LineEvent, st.integers(0, 2**53), st.sampled_from((SENT, RECEIVED)), st.binary(max_size=40))
NOTES = st.builds(
    LineEvent, st.integers(0, 2**53), st.just(NOTE), st.text(st.characters(codec="utf-8")).map(str.encode)
)


def recorder() -> Recorder:
    return Recorder(lambda _urgent: None)


def link_over(port: ScriptedPort, recorder: Recorder, journal: Journal | None = None) -> Link:
    return Link(port, QUICK, journal or Journal(), first_seq=0x30, recorder=recorder)


@given(st.lists(EVENTS | NOTES))
def test_what_is_written_is_read_again(events) -> None:
    """Every byte there is, and every text, in both directions."""
    found = read(header({"nim": "EL02000015-1"}) + written(events))
    assert list(found.events) == events
    assert found.about["nim"] == "EL02000015-1"
    assert [problem for problem in found.problems if "goes back" not in problem.what] == []


def test_a_line_whose_words_are_empty_is_read_with_and_without_the_blank_before_them() -> None:
    """An editor may take a blank at the end of a line away."""
    assert [event.data for event in read(header({}) + "5 # \n6 #").events] == [b"", b""]


def test_a_line_that_makes_no_sense_is_told_with_its_number() -> None:
    """And the others are read: a recording is cut short by a kill, or edited by hand."""
    text = header({}) + f"5 > A\n{'x' * 21} > B\n7 {'?' * 21} C\n6 < D\n7\n8 < é\n9 > \\u1234\n10 < \\x01A"
    found = read(text)
    assert [event.data for event in found.events] == [b"A", b"D", b"\x01A"]
    assert [problem.line for problem in found.problems] == [3, 4, 6, 7, 8]
    assert [problem.what for problem in found.problems] == [
        f"{'x' * 20!r} is no time in microseconds",
        f"{'?' * 20!r} is none of > < #",
        "a line has a time, one of > < #, and what moved",
        *["it has something that is neither ASCII nor escaped as \\x41"] * 2,
    ]


def test_text_of_another_kind_is_no_recording() -> None:
    """Said of its first line, and beside what else cannot be read."""
    assert [problem.line for problem in read("rubbish\n").problems] == [1, 1]
    assert [problem.line for problem in read("5 > A\n5 > B\n").problems] == [1]  # two events of one moment


def test_who_takes_the_events_is_called_for_the_first_and_at_once_for_an_incident() -> None:
    """Not for each byte; and for the first again once all were taken."""
    calls: list[bool] = []
    notes = Recorder(calls.append)
    for data in (b"a", b"b"):
        notes.sent(data)
    notes.note_incident("why")
    notes.drain()
    notes.received(b"c")
    assert calls == [False, True, False]


def test_what_goes_on_and_on_is_more_than_one_incident() -> None:
    """What follows within a minute belongs to it, for ten minutes; after a quiet minute, or beyond those ten, another one begins."""
    now = 5 * LONGEST_INCIDENT
    notes = Recorder(lambda _: None, lambda: now)

    def odd(after: int) -> bool:
        nonlocal now
        now += after
        notes.incident = ""
        return bool(notes.note_incident("why"))

    assert [odd(after) for after in (0, MINUTE - 1, MINUTE, MINUTE // 2)] == [True, False, True, False]
    begun = [odd(MINUTE // 2) for _ in range(20)]
    assert begun == [False] * 19 + [True]
    now += MINUTE - 1
    assert notes.under_way == notes.incident
    now += 1
    assert notes.under_way == ""


@pytest.mark.parametrize(
    ("step", "is_followed"),
    [(CLOCK_STEP, False), (-CLOCK_STEP, False), (CLOCK_STEP + 1, True), (-CLOCK_STEP - 1, True)],
)
def test_times_follow_a_clock_that_was_set_and_not_one_that_drifts(
    monkeypatch: pytest.MonkeyPatch, step: int, is_followed: bool
) -> None:
    """So that what lies between two events is what has passed."""
    began = now = 10**15
    monkeypatch.setattr("bridge.recording.recording._epoch", lambda _: now)
    notes = Recorder(lambda _: None, lambda: 7000)
    now += step
    notes.sent(b"x")
    assert [event.at for event in notes.drain()] == [(now if is_followed else began) + 7]


async def test_what_moved_is_noted_in_order_with_the_reason_of_each_retry() -> None:
    """Both directions as they came, in pieces, and between them why the frame went out again."""
    notes, journal = recorder(), Journal()
    reply = naive_encode(0x31, 0xC1, b"OK", IDLE)
    port = ScriptedPort(answer(b"first"), [NAK], [reply[:5], reply[5:]])
    link = link_over(port, notes, journal)
    await link.exchange(0xC1)
    await link.exchange(0xC1)
    link.close()
    events = notes.drain()
    assert [(event.kind, event.data) for event in events if event.kind != NOTE] == [
        (SENT, port.written[0]),
        (RECEIVED, naive_encode(0x30, 0xC1, b"first", IDLE)),
        (SENT, port.written[1]),
        (RECEIVED, NAK),
        (SENT, port.written[1]),
        (RECEIVED, reply[:5]),
        (RECEIVED, reply[5:]),
    ]
    assert [event.text for event in events if event.kind == NOTE] == [
        "link begins",
        "retry: NAK",
        "link ends: LineDown",
    ]
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert notes.drain() == []


async def test_a_retry_is_an_incident_whose_name_is_in_the_log() -> None:
    """One name for what happens within the minute."""
    notes, journal = recorder(), Journal()
    link = link_over(ScriptedPort(answer(), [NAK], [NAK], answer()), notes, journal)
    await link.exchange(0xC1)
    assert notes.under_way == ""
    await link.exchange(0xC1)
    assert notes.under_way
    content = {fields.get("incident") for event, fields in journal.lines if event == "line.retry"}
    assert content == {notes.under_way}
    link.close()


async def test_a_command_whose_answer_nobody_waits_for_is_an_incident() -> None:
    """The link ends with it, at its first try, and the log has the incident's name."""
    notes, journal = recorder(), Journal()
    link = link_over(ScriptedPort(answer(), []), notes, journal)
    await link.exchange(0xC1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(link.exchange(0xC1), QUICK.first_byte / 4)
    assert notes.under_way
    [ended] = [fields for event, fields in journal.lines if event == "line.ended"]
    assert ended["incident"] == notes.under_way


async def test_a_line_that_never_answered_makes_no_incident() -> None:
    """A machine that is switched off for a week would push out everything else."""
    notes = recorder()
    with pytest.raises(LineDown):
        await link_over(ScriptedPort([], [], []), notes).exchange(0xC1)
    assert notes.incident == ""
    assert [event.text for event in notes.drain() if event.kind == NOTE].count("retry: silence") == 2


@pytest.mark.parametrize(
    ("ask", "expected", "why"),
    [
        (lambda machine: replies_of(machine, ReadState()), b"E:No OUEDRAOGO", "refused"),
        (lambda machine: machine.ask(ReadState()), b"E:No OUEDRAOGO", "refused"),
        (lambda machine: machine.ask(ReadState()), b"OUEDRAOGO", "nonsense"),
    ],
)
async def test_a_refusal_is_an_incident_and_a_cancellation_of_nothing_is_none(
    ask: Callable[[LinkedMachine], Awaitable[object]], expected: bytes, why: str
) -> None:
    """In a talk and alone, and so is nonsense. 38h C is refused wherever no invoice is open, which is what it usually meets. The machine's words
    are in no note."""
    notes = recorder()
    link = link_over(ScriptedPort(answer(b"E:No invoice OUEDRAOGO"), answer(expected)), notes)
    assert not await LinkedMachine(link).cancel()
    assert notes.incident == ""
    with pytest.raises((Refused, Nonsense)):
        await ask(LinkedMachine(link))
    assert notes.incident
    result_to_people = [event.text for event in notes.drain() if event.kind == NOTE]
    assert why in result_to_people
    assert not any("OUEDRAOGO" in text for text in result_to_people)
    link.close()


def test_nobody_takes_them_and_the_oldest_go() -> None:
    """A disk that stalls costs memory for a while, and not for ever; what was lost is noted once, before what is left."""
    ticks = itertools.count(10**9, 10**6)
    notes = Recorder(lambda _: None, lambda: next(ticks))
    for number in range(MAX_EVENTS + 5):
        notes.sent(b"%d" % number)
    events = notes.drain()
    assert events[0].text == "5 events before this were not kept"
    assert events[1].data == b"5"
    assert len(events) == MAX_EVENTS + 1
    assert events[0].at == events[1].at < events[2].at
    notes.sent(b"more")
    assert [event.data for event in notes.drain()] == [b"more"]
