"""Reads stored recordings for people: frames by the names of command and fields, gaps between them, and faults."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bridge.command_table import CLOSE, COMMANDS, STATE
from bridge.frame import Decoder, Event, Garbage, MachineReply, Nak, Request, Syn
from bridge.recording.masking import masked
from bridge.recording.recording import LINK_BEGINS, NOTE, SENT, LineEvent, Recording, header, read, written
from common.language import Text, tr
from daemon.recording.writer import listed, path_of, segments

_CANCEL = Text("cancel the open invoice")
_STATUS = (
    (0, 0, Text("syntax error")),
    (0, 1, Text("unknown command")),
    (0, 5, Text("error")),
    (1, 1, Text("not allowed now")),
    (2, 3, Text("an invoice is open")),
)
_WRONG = {
    "noise": Text("no frame"),
    "checksum": Text("the checksum is wrong"),
    "format": Text("a byte that cannot stand there, or the end is missing"),
}


def transcript(events: Iterable[LineEvent]) -> Iterator[str]:
    """A line for each frame, single byte, note, and garbage."""
    decoders = {True: Decoder(), False: Decoder()}
    before: int | None = None
    for event in events:
        head = f"{_clock(event.at)} {_gap(before, event.at):>12}"
        before = event.at
        if event.kind == NOTE:
            if event.text.startswith(LINK_BEGINS):
                decoders = {True: Decoder(), False: Decoder()}
            yield f"{head}   # {event.text}"
            continue
        is_sent = event.kind == SENT
        decoder = decoders[is_sent]
        decoder.receive(event.data)
        yield from _lines_of(decoder, f"{head} {event.kind} ", event.data)


def _lines_of(decoder: Decoder, head: str, data: bytes) -> Iterator[str]:
    """Further lines of the same moment have no time."""
    found = False
    while not isinstance(heard := decoder.next_event(), type):
        yield head + "  " + describe(heard)
        head = " " * (len(head) - 2) + head[-2:]
        found = True
    if not found:
        yield head + "  " + tr("{count} bytes of a frame that goes on", count=len(data))


def describe(heard: Event) -> str:
    match heard:
        case Nak():
            return "NAK  " + tr("the request came damaged: send it again")
        case Syn():
            return "SYN  " + tr("still working")
        case Garbage():
            return f"?    {tr(_WRONG[heard.reason])}: {_escaped(heard.data)}"
        case Request():
            return f"{heard.cmd:02X}h  SEQ {heard.seq:02X}  {_name(heard)}{_request(heard)}"
        case MachineReply():
            return f"{heard.cmd:02X}h  SEQ {heard.seq:02X}  {_reply(heard)}{_status(heard.status)}"


def _name(request: Request) -> str:
    if request.cmd == CLOSE and request.data == b"C":
        return tr(_CANCEL)
    entry = COMMANDS.get(request.cmd)
    return tr(entry.title) if entry else tr("unknown command")


def _request(request: Request) -> str:
    text = _text(request.data)
    if not text:
        return ""
    entry = COMMANDS.get(request.cmd)
    if entry is None or not entry.request:
        return f"  {text}"
    fields = text.split(entry.separator)
    is_longer = entry.longer_request and len(fields) > len(entry.request)
    return f"  {_named(entry.longer_request if is_longer else entry.request, fields)}"


def _reply(reply: MachineReply) -> str:
    text = _text(reply.data)
    entry = COMMANDS.get(reply.cmd)
    if text.startswith("E:"):
        return tr("refused: {text}", text=text[2:])
    if text.startswith("P:"):
        return tr("not yet: {text}", text=text[2:])
    if entry is None or not entry.reply or not text:
        return text
    names, fields = entry.reply, text.split(",")
    if len(fields) == len(names) - 5 and reply.cmd == STATE:  # without the block of the last invoice
        names = (*names[:6], *names[11:])
    return _named(names, fields)


def _named(names: tuple[str, ...], fields: list[str]) -> str:
    more = tuple(f"+{at + 1}" for at in range(len(fields) - len(names)))
    return "  ".join(f"{name}={field}" for name, field in zip((*names, *more), fields, strict=False))


def _status(status: bytes) -> str:
    flags = [tr(text) for byte, bit, text in _STATUS if byte < len(status) and status[byte] >> bit & 1]
    return f"  [{', '.join(flags)}]" if flags else ""


def _text(data: bytes) -> str:
    """UTF-8; other bytes are escaped, which shows the code page."""
    return data.decode("utf-8", "backslashreplace").replace("\n", "\\n")


def _escaped(raw: bytes) -> str:
    return raw.decode("latin-1").encode("unicode_escape").decode("ascii")


def _clock(at: int) -> str:
    seconds, micros = divmod(at, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{micros:06d}"


def _gap(before: int | None, at: int) -> str:
    return "" if before is None else f"{(at - before) / 1000:+.3f} ms"


def read_ring(folder: Path) -> Recording:
    """The whole ring. Raises OSError."""
    return read("".join(file.read_text("utf-8", "replace") for file in segments(folder)))


def read_incident(folder: Path, name: str) -> Recording:
    """Raises OSError, FileNotFoundError included."""
    if name not in listed(folder):  # also excludes paths outside the folder
        raise FileNotFoundError(name)
    return read(path_of(folder, name).read_text("utf-8", "replace"))


def since(recording: Recording, at: int) -> Recording:
    """Events from that microsecond on."""
    rest = [(event, line) for event, line in zip(recording.events, recording.lines, strict=True) if event.at >= at]
    return msgspec.structs.replace(
        recording, events=tuple(event for event, _ in rest), lines=tuple(line for _, line in rest)
    )


def without_people(recording: Recording) -> Recording:
    return msgspec.structs.replace(
        recording, about={**recording.about, "masked": "yes"}, events=tuple(masked(recording.events))
    )


def as_file(recording: Recording) -> str:
    """In the form for `mcf-simulator --replay`."""
    about = {key: value for key, value in recording.about.items() if key != "format"}
    return header(about) + written(recording.events)
