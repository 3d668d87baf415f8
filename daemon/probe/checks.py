"""The checks of a probe. They only read: none changes a counter or an invoice."""

import asyncio
import re
import statistics
import time
from collections.abc import AsyncGenerator, Callable

from bridge.command_table import SERVER, STATE, TAXPAYER
from bridge.commands import ReadServerLink, ReadTaxpayer
from bridge.frame import Nak, Request, encode
from bridge.link import LAST_SEQ
from common.language import Text, duration
from common.language.reasons import from_stored
from daemon.core.clock import machine_millis
from daemon.core.invoice.invoice import CREDITS, GROUPS, SALES
from daemon.probe.connect import SPEEDS, ProbeAnswer, ProbeLine
from daemon.probe.replies import (
    STATE_FIELDS,
    STATE_WITHOUT_LAST,
    ProbeFinding,
    ProbeState,
    code_page,
    confirmed,
    contradicted,
    judged,
    not_tried,
    number_form,
    read_state,
    state_of,
    trouble_with,
)

SAMPLES = 5
_REPLY_TIMEOUT = 0.5
_PAUSE = 0.1
"""Seconds; a USB adapter buffers bytes for a shorter time."""
_HIGH_SEQ = (0x20, 0x7F, 0x80, 0xFF)
_NIM = re.compile(r"[A-Z]{2}[0-9]{8}-[0-9]{1,9}")
_IFU = re.compile(r"[0-9]{8}[A-Z]")
_CODE = re.compile(r"[A-Z0-9]{24}")
_TIME = re.compile(r"[0-9]{14}")
_SECOND_TICK = 1.1
_HOUR, _DRIFT = 3600, 120
_OPEN = (2, 3)
"""Byte and bit of the status for: an invoice is open (B)."""
_REMEDY = Text("mcfd reads it as it is; send us the file")
_EMPTY = Text("empty")


async def check(line: ProbeLine, first: ProbeAnswer) -> AsyncGenerator[ProbeFinding, None]:
    """Yields each finding as soon as it is known. Raises LinkEnded or Unanswered if the machine disappears."""
    before = state_of(first)
    yield _speed(line)
    yield _echo(first)
    yield await _seq_range(line)
    yield await _nak(line)
    yield await _repeat(line)
    yield await _times(line)
    yield _pauses(line)
    for finding in (*_state(before), *_last_invoice(before)):
        yield finding
    yield _clock(await read_state(line))
    yield _invoice_open(first)
    yield _mode(before)
    yield await _server(line)
    yield await _taxpayer(line)
    yield _syn(line)
    yield await _unchanged(line, before)


def _speed(line: ProbeLine) -> ProbeFinding:
    return judged(
        line.speed == SPEEDS[0],
        "speed",
        Text("115 200 bit/s, 8 bits, no parity, 1 stop bit"),
        f"{line.speed} bit/s, 8N1",
        Text("baudrate = {speed} in its [[machine]]", speed=line.speed),
        baudrate=line.speed,
    )


def _echo(first: ProbeAnswer) -> ProbeFinding:
    return judged(
        not first.is_echoed,
        "echo",
        Text("the line does not send back what is sent"),
        Text("an echo") if first.is_echoed else Text("no echo"),
        Text("mcfd takes no echo for an answer; it can be switched off at the adapter"),
    )


async def _seq_range(line: ProbeLine) -> ProbeFinding:
    taken = [seq for seq in _HIGH_SEQ if (await line.send(encode(Request(seq, STATE, b"")))).reply is not None]
    return judged(
        all(seq in taken for seq in _HIGH_SEQ if seq <= LAST_SEQ),
        "seq",
        Text("SEQ from 20h to 7Fh is taken and sent back"),
        Text("taken: {which}", which=" ".join(f"{seq:02X}h" for seq in taken)),
        Text("this machine cannot be used with mcfd as it is: send us the file"),
    )


async def _nak(line: ProbeLine) -> ProbeFinding:
    """Sends a request with a wrong last digit of the checksum."""
    frame = bytearray(encode(Request(line.next_seq(), STATE, b"")))
    frame[-2] ^= 1
    answer = await line.send(bytes(frame))
    came = "NAK" if answer.naks else Text("an answer") if answer.reply else Text("silence")
    return judged(
        isinstance(answer.received[-1].event, Nak) if answer.received else False,
        "nak",
        Text("NAK to a request with a wrong checksum"),
        came,
        Text("mcfd sends again after silence as well; a damaged frame costs reply_timeout"),
    )


async def _repeat(line: ProbeLine) -> ProbeFinding:
    """Repeats a request after the clock has ticked: a machine that executes it again answers with another second."""
    frame = encode(Request(line.next_seq(), STATE, b""))
    once = await line.send(frame)
    await asyncio.sleep(_SECOND_TICK)
    again = await line.send(frame)
    fresh = await line.exchange(STATE)
    expected = Text("the same SEQ again is not executed again: the last answer is repeated")
    if once.reply is None or again.reply is None or fresh.text == once.text:
        return not_tried("repeat", expected, Text("its clock does not tell: no answer, or no seconds"))
    return judged(
        again.reply == once.reply,
        "repeat",
        expected,
        Text("the same answer") if again.reply == once.reply else Text("another answer"),
        Text("DO NOT USE: a lost answer to 38h could certify twice. Send us the file; until then tries = 1"),
        tries=1,
    )


async def _times(line: ProbeLine) -> ProbeFinding:
    times = []
    for _ in range(SAMPLES):
        answer = await line.exchange(STATE)
        times.append(answer.first_byte or 0.0)
    longest = max(answer.first_byte or 0.0 for answer in line.answers if answer.reply)
    wanted = round(max(_REPLY_TIMEOUT, longest * 2), 1)
    return judged(
        longest < _REPLY_TIMEOUT,
        "reply_time",
        Text("the first byte of an answer within 500 ms"),
        Text(
            "C1h {usual} ms, the longest {longest} ms",
            usual=f"{statistics.median(times) * 1000:.1f}",
            longest=round(longest * 1000),
        ),
        Text("reply_timeout = {seconds} in its [[machine]]", seconds=wanted),
        reply_timeout=wanted,
    )


def _pauses(line: ProbeLine) -> ProbeFinding:
    longest = max(answer.longest_pause for answer in line.answers)
    wanted = round(max(_REPLY_TIMEOUT, longest * 2), 1)
    return judged(
        longest < _PAUSE,
        "reply_gap",
        Text("an answer comes in one piece"),
        Text("the longest pause in one: {longest} ms", longest=round(longest * 1000)),
        Text("reply_gap = {seconds} in its [machine.habits]", seconds=wanted),
        habits__reply_gap=wanted,
    )


# -- C1h ---------------------------------------------------------------------------------------------------------------


def _state(state: ProbeState) -> list[ProbeFinding]:
    fields = state.fields
    found = [
        judged(
            state.read is not None,
            "state",
            Text("mcfd understands the state of the machine (C1h)"),
            from_stored(state.trouble) if state.trouble else Text("understood"),
            Text("this machine cannot be used with mcfd as it is: send us the file"),
        ),
        judged(
            len(fields) in (STATE_FIELDS, STATE_WITHOUT_LAST),
            "state.fields",
            Text("C1h has 27 fields, or 22 without the last invoice"),
            Text("{count} fields", count=len(fields)),
            _REMEDY,
        ),
        _form("state.nim", Text("the NIM with its activation counter, as EL02000015-1"), fields, 0, _NIM.fullmatch),
        _form("state.ifu", Text("the IFU as 99999999A"), fields, 1, _IFU.fullmatch, is_public=False),
        _form("state.time", Text("the time as 14 digits"), fields, 2, _TIME.fullmatch),
    ]
    counters = fields[3:6]
    are_whole = {number_form(field) for field in counters} == {"whole"}
    expected = Text("counters as whole numbers")
    return [*found, judged(are_whole, "state.counters", expected, ", ".join(counters), _REMEDY), _rates(state)]


def _form(
    check: str,
    expected: Text,
    fields: tuple[str, ...],
    at: int,
    is_so: Callable[[str], object],
    *,
    is_public: bool = True,
) -> ProbeFinding:
    """Fields about the taxpayer are printed as a pattern only."""
    text = fields[at] if at < len(fields) else ""
    came = text if is_public else re.sub(r"[^\W\d_]", "A", re.sub(r"[0-9]", "9", text))
    return judged(bool(is_so(text)), check, expected, came or _EMPTY, _REMEDY)


def _last_invoice(state: ProbeState) -> list[ProbeFinding]:
    fields = state.fields
    expected = Text("the last invoice: time, type, code, number, total")
    if state.read is None or state.read.last is None:
        return [not_tried("state.last", expected, Text("no invoice has been certified yet, or it is left out"))]
    time_, kind, code, number, total = (*fields[6:11], *[""] * 5)[:5]
    return [
        judged(bool(_TIME.fullmatch(time_) and number), "state.last", expected, f"{time_} {kind} {number!r}", _REMEDY),
        judged(
            kind in (*SALES, *CREDITS),
            "state.type",
            Text("its type is one of FV FT EV ET FA EA"),
            kind or _EMPTY,
            _REMEDY,
        ),
        judged(
            bool(_CODE.fullmatch(code)),
            "state.code",
            Text("its code has 24 letters and digits, without dashes"),
            code or _EMPTY,
            Text("mcfd takes dashes away; without a code a certification cannot be taken over after a power cut"),
        ),
        judged(
            number_form(total) == "whole",
            "state.amount",
            Text("its total is a whole number"),
            f"{total} ({number_form(total)})",
            _REMEDY,
        ),
    ]


def _rates(state: ProbeState) -> ProbeFinding:
    rates = state.fields[11:] if len(state.fields) > STATE_WITHOUT_LAST else state.fields[6:]
    rate_list = ", ".join(f"{group} {rate}" for group, rate in zip(GROUPS, rates, strict=False) if rate.strip("0., "))
    forms = {number_form(rate) for rate in rates}
    return judged(
        forms <= {"whole", "point"},
        "state.rates",
        Text("VAT rates of the groups A to P as 18.00"),
        rate_list or Text("none"),
        _REMEDY,
    )


def _clock(state: ProbeState) -> ProbeFinding:
    """Compared with this box's clock, which may be the wrong one."""
    expected = Text("the clock of the machine is in UTC, and right")
    millis = machine_millis(state.read.time) if state.read else None
    if millis is None:
        return not_tried("clock", expected, Text("the time cannot be read"))
    off = round(millis / 1000 - time.time())
    hours = round(off / _HOUR)
    came = Text("{time} behind this box", time=duration(off))
    if off > 0:
        came = Text("{time} ahead of this box", time=duration(off))
    if hours and abs(off - hours * _HOUR) < _DRIFT and abs(hours) <= 14:  # noqa: PLR2004  as far as time zones go
        came = Text("{found} ({zone}?)", found=came, zone=f"UTC{hours:+d}")
    return judged(
        abs(off) < _DRIFT,
        "clock",
        expected,
        came,
        Text("which of the two is wrong? timedatectl shows this box's; the machine's is set by its technician"),
    )


def _invoice_open(first: ProbeAnswer) -> ProbeFinding:
    byte, bit = _OPEN
    is_open = len(first.status) > byte and bool(first.status[byte] >> bit & 1)
    return judged(
        not is_open,
        "invoice_open",
        Text("no invoice is open"),
        Text("status {bytes}", bytes=first.status.hex(" ")),
        Text("the probe leaves it alone; mcfd cancels it when it starts"),
    )


def _mode(state: ProbeState) -> ProbeFinding:
    expected = Text("whether the machine is in test mode is seen by its last code")
    if state.is_test is None:
        return not_tried("mode", expected, Text("no code of a last invoice"))
    return confirmed("mode", expected, Text("test mode") if state.is_test else Text("a real machine"))


# -- C2h, 2Bh ----------------------------------------------------------------------------------------------------------


async def _server(line: ProbeLine) -> ProbeFinding:
    answer = await line.exchange(SERVER)
    expected = Text("C2h: acknowledged, held, last contact, CON TRA or DIS, maybe an error")
    if answer.refusal is not None:
        todo = Text("mcfd does without; the watch over the 7 days is off")
        return contradicted("server", expected, answer.refusal, todo)
    trouble = trouble_with(ReadServerLink(), answer)
    return judged(
        not trouble and len(answer.text.split(",")) in (4, 5),
        "server",
        expected,
        from_stored(trouble) if trouble else answer.text,
        _REMEDY,
    )


async def _taxpayer(line: ProbeLine) -> ProbeFinding:
    """Its texts are private: only their form is printed."""
    answers = [await line.exchange(TAXPAYER, f"I{at}".encode()) for at in range(6)]
    prefixed = sum(answer.text.startswith(f"I{at},") for at, answer in enumerate(answers))
    refused = sum(answer.refusal is not None for answer in answers)
    pages = sorted({code_page(answer.reply.data) for answer in answers if answer.reply})
    trouble = next(filter(None, (trouble_with(ReadTaxpayer(at), answer) for at, answer in enumerate(answers))), "")
    came = Text(
        "{prefixed} of 6 with I0… before it, {refused} refused, {pages}",
        prefixed=prefixed,
        refused=refused,
        pages="/".join(pages),
    )
    expected = Text("2Bh: six lines, in UTF-8")
    if "8 bit" in pages:
        todo = Text('code_page = "cp1252" in its [machine.habits], if the texts are right then')
        return contradicted("taxpayer", expected, came, todo, habits__code_page="cp1252")
    return judged(not trouble, "taxpayer", expected, came, _REMEDY)


def _syn(line: ProbeLine) -> ProbeFinding:
    count = sum(answer.syns for answer in line.answers)
    expected = Text("SYN while the machine is working")
    if not count:
        return not_tried("syn", expected, Text("no answer took long enough for one"))
    return confirmed("syn", expected, f"{count} SYN")


async def _unchanged(line: ProbeLine, before: ProbeState) -> ProbeFinding:
    after = await read_state(line)
    return judged(
        after.facts == before.facts,
        "unchanged",
        Text("the probe has changed nothing: counters and last invoice are the same"),
        f"TC FVC FRC {after.counters} {after.number}",
        Text("another program uses this machine meanwhile, or it wrote its daily report: probe again"),
    )
