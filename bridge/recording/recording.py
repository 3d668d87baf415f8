r"""The written form of what moved on a line: one event a line, to be read, edited by hand, sent by mail, and played again.

    mcfd-recording 1 nim=EL02000015-1 port=/dev/mcf-EL02000015 baudrate=115200
    1763769157123456 > \x01$!\xc1\x050145\x03
    1763769157125001 < \x01\xb6!\xc1EL02000015-1,…
    1763769157625990 # retry: silence

Microseconds since 1970; `>` to the machine, `<` from it, `#` why the driver did what it did. Bytes are ASCII where they are
printable and escaped as in C where they are not, so that each byte of the line is in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


class LineEvent(NamedTuple):
    """`at` in microseconds since 1970; `data` of a note is its text in UTF-8."""

    at: int
    kind: Kind
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class RecordingProblem(NamedTuple):
    """What is wrong with one line of the file, the first being 1."""

    line: int
    what: str


class Recording(msgspec.Struct, frozen=True):
    """`lines`: where in the file each event stands."""

    about: Mapping[str, str]
    events: tuple[LineEvent, ...]
    lines: tuple[int, ...]
    problems: tuple[RecordingProblem, ...]


def header(about: Mapping[str, str]) -> str:
    """A blank in a value would end it."""
    return " ".join((MAGIC, VERSION, *(f"{key}={value.replace(' ', '_')}" for key, value in about.items()))) + "\n"


def written(events: Iterable[LineEvent]) -> str:
    return "".join([f"{at} {kind} {_escaped(kind, data)}\n" for at, kind, data in events])


def read(text: str) -> Recording:
    """Of one file, or of several one after the other. What cannot be understood is told, and the rest is read."""
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
    """The box's clock may have been set meanwhile; a line may have been moved by hand."""
    pairs = zip(events, events[1:], lines[1:], strict=False)
    return [
        RecordingProblem(line, f"the time goes back by {(before.at - after.at) / 1e6:.6f} s")
        for before, after, line in pairs
        if after.at < before.at
    ]
