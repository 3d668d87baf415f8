r"""The text format of a recording: one event a line, to be read, edited by hand, mailed, and replayed; and the
recorder, which notes events in memory: no till waits for it, and another task stores them.

    mcfd-recording 1 nim=EL02000015-1 port=/dev/mcf-EL02000015 baudrate=115200
    1763769157123456 > \x01$!\xc1\x050145\x03
    1763769157125001 < \x01\xb6!\xc1EL02000015-1,…
    1763769157625990 # retry: silence

Microseconds since 1970; `>` to the machine, `<` from it, `#` the driver's reason for an action. Printable ASCII is
written as it is, other bytes are escaped as in C, so that each byte of the line is in the file."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

import msgspec

Kind = Literal[">", "<", "#"]
SENT: Final = ">"
RECEIVED: Final = "<"
NOTE: Final = "#"
KINDS: Mapping[str, Kind] = {">": SENT, "<": RECEIVED, "#": NOTE}

MAGIC = "mcfd-recording"
VERSION = "1"
LINK_BEGINS = "link begins"
LINK_ENDS = "link ends"
_PARTS = 3

MINUTE = 60_000_000_000
LONGEST_INCIDENT = 10 * MINUTE
"""Nanoseconds: a line that is bad for hours makes a series of incidents, not one without end."""
MAX_EVENTS = 20_000
"""Limit of events in memory while they are not taken (a slow disk); the oldest are dropped first."""
CLOCK_STEP = 50_000
"""Drift of the box's clock, in microseconds, from which on the events' times are corrected."""


class LineEvent(NamedTuple):
    """`at` in microseconds since 1970; `data` of a note is its text in UTF-8."""

    at: int
    kind: Kind
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class RecordingProblem(NamedTuple):
    """The fault of one line of the file, counted from 1."""

    line: int
    what: str


class Recording(msgspec.Struct, frozen=True):
    """`lines`: the line number of each event."""

    about: Mapping[str, str]
    events: tuple[LineEvent, ...]
    lines: tuple[int, ...]
    problems: tuple[RecordingProblem, ...]


def header(about: Mapping[str, str]) -> str:
    """Blanks in values become `_`: a blank ends a value."""
    return " ".join((MAGIC, VERSION, *(f"{key}={value.replace(' ', '_')}" for key, value in about.items()))) + "\n"


def written(events: Iterable[LineEvent]) -> str:
    return "".join([f"{at} {kind} {_escaped(kind, data)}\n" for at, kind, data in events])


def read(text: str) -> Recording:
    """Reads one file, or several concatenated ones. Unreadable lines are reported; the rest is read."""
    about: dict[str, str] = {}
    events: list[LineEvent] = []
    lines: list[int] = []
    problems: list[RecordingProblem] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(MAGIC):
            about |= _about(line)
        elif line.strip():
            try:
                events.append(_event(line))
                lines.append(number)
            except ValueError as error:
                problems.append(RecordingProblem(number, str(error)))
    if not about:
        problems.append(RecordingProblem(1, f"the first line of a recording begins with {MAGIC} {VERSION}"))
    problems += _backwards(events, lines)
    return Recording(about, tuple(events), tuple(lines), tuple(sorted(problems)))


def _about(line: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in line.split()[2:])
    return {"format": line.split()[1] if line.count(" ") else "", **{key: value for key, _, value in pairs}}


def _event(line: str) -> LineEvent:
    parts = line.split(" ", _PARTS - 1)
    if len(parts) < _PARTS - 1:
        raise ValueError("a line has a time, one of > < #, and what moved")
    at, sign, *rest = parts
    if not (at.isascii() and at.isdigit()):
        raise ValueError(f"{at[:20]!r} is no time in microseconds")
    kind = KINDS.get(sign)
    if kind is None:
        raise ValueError(f"{sign[:20]!r} is none of > < #")
    return LineEvent(int(at), kind, _unescaped(kind, "".join(rest)))


def _escaped(kind: Kind, data: bytes) -> str:
    text = data.decode() if kind == NOTE else data.decode("latin-1")
    return text.encode("unicode_escape").decode("ascii")


def _unescaped(kind: Kind, text: str) -> bytes:
    try:
        plain = text.encode("ascii").decode("unicode_escape")
        return plain.encode() if kind == NOTE else plain.encode("latin-1")
    except UnicodeError:
        raise ValueError("it has something that is neither ASCII nor escaped as \\x41") from None


def _backwards(events: list[LineEvent], lines: list[int]) -> list[RecordingProblem]:
    """The box's clock may have been set, or a line moved by hand."""
    pairs = zip(events, events[1:], lines[1:], strict=False)
    return [
        RecordingProblem(line, f"the time goes back by {(before.at - after.at) / 1e6:.6f} s")
        for before, after, line in pairs
        if after.at < before.at
    ]


class Recorder:
    """`on_event(urgent)` is called for the first event that is not taken yet, and urgently for the begin of an
    incident. `clock` counts nanoseconds and never goes back."""

    def __init__(self, on_event: Callable[[bool], None], clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.incident = ""
        """The last incident, finished or not."""
        self._on_event = on_event
        self._events: deque[tuple[int, Kind, bytes]] = deque(maxlen=MAX_EVENTS)
        self._lost = 0
        self._incident_began = self._incident_until = 0
        self._clock = clock
        self._epoch = _epoch(clock)

    def sent(self, data: bytes) -> None:
        self._add(SENT, data)

    def received(self, data: bytes) -> None:
        self._add(RECEIVED, data)

    def note(self, text: str) -> None:
        """Notes the driver's reason for an action; never words of the machine or a till."""
        self._add(NOTE, text.encode())

    def note_incident(self, why: str) -> str:
        """Notes an incident; returns its name. Events within a minute belong to it and get a file of their own."""
        now = self._clock()
        if now >= self._incident_until or now - self._incident_began > LONGEST_INCIDENT:
            self.incident = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
            self._incident_began = now
        self._incident_until = now + MINUTE
        self.note(why)
        self._on_event(True)
        return self.incident

    @property
    def under_way(self) -> str:
        """The incident that has not ended yet."""
        return self.incident if self._clock() < self._incident_until else ""

    def drain(self) -> list[LineEvent]:
        """Removes and returns all events not taken yet."""
        taken = list(self._events)
        self._events.clear()
        lost, self._lost = self._lost, 0
        epoch = _epoch(self._clock)
        if abs(epoch - self._epoch) > CLOCK_STEP:
            self._epoch = epoch
        events = [LineEvent(self._epoch + at // 1000, kind, data) for at, kind, data in taken]
        if lost and events:
            events.insert(0, LineEvent(events[0].at, NOTE, f"{lost} events before this were not kept".encode()))
        return events

    def _add(self, kind: Kind, data: bytes) -> None:
        events = self._events
        if not events:
            self._on_event(False)
        elif len(events) == MAX_EVENTS:
            self._lost += 1
        events.append((self._clock(), kind, data))


class LinkRecord:
    """One connection's part of a recording, or of none. Before the first answer nothing is an incident: while a machine
    is switched off, incidents of that would soon displace all others."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.has_answered = False
        self._recorder = recorder
        if recorder is not None:
            recorder.note(LINK_BEGINS)

    def sent(self, data: bytes) -> None:
        if self._recorder is not None:
            self._recorder.sent(data)

    def received(self, data: bytes) -> None:
        if self._recorder is not None:
            self._recorder.received(data)

    def note_incident(self, why: str) -> str:
        """Returns the incident that the event belongs to, empty without one."""
        if self._recorder is None:
            return ""
        if self.has_answered:
            return self._recorder.note_incident(why)
        self._recorder.note(why)
        return ""

    def ended(self, why: str) -> None:
        if self._recorder is not None:
            self._recorder.note(f"{LINK_ENDS}: {why}")


def _epoch(clock: Callable[[], int]) -> int:
    """Time at which that clock was 0, in microseconds since 1970."""
    return (time.time_ns() - clock()) // 1000
