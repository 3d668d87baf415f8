"""Masks people in a recording, byte for byte: customers, operators, the taxpayer's IFU, name and address.

Every byte of such a field becomes `x`, so that lengths, gaps and frames keep their form. The checksum is adapted to the
new content, and stays wrong if it was wrong. In a reply only numbers, times, NIMs and codes stay; in bytes that are no
complete frame, only the framing bytes."""

import re
from collections.abc import Iterable, Iterator, Sequence

from bridge.command_table import COMMANDS, TAXPAYER, CommandEntry
from bridge.frame import SOH, Decoder, Event, Garbage, MachineReply, Nak, Request, Syn
from bridge.recording.recording import NOTE, RECEIVED, SENT, LineEvent
from common.language import Text

MASK = 0x78
_HEAD, _TAIL = 4, 6
_NIBBLES = (12, 8, 4, 0)
_SHORTEST = 4
"""Bytes of a name that is searched elsewhere: shorter ones would mask amounts and codes everywhere."""
_SHORTEST_NUMBER = 7
_CODE_PAGES = ("utf-8", "cp1252", "cp850", "cp437", "mac-roman")
_ESCAPES = {b"^xa;": b"\r", b"^xd;": b"\n", b"^x2c;": b",", b"^lt;": b"<", b"^gt;": b">", b"^amp;": b"&"}
_PLAIN = re.compile(
    rb"|[ ]*(?:R:)?[DR]?-?[0-9][0-9 .']{0,20}"  # amounts, counters, times
    rb"|[A-Za-z]{2}[0-9]{8}(?:-[0-9]{1,9})?"  # NIM
    rb"|[A-Z]{2}|CON|TRA|DIS|TTC"
    rb"|[A-Z0-9]{24}|[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,6}"  # certification codes
)
_NUMBER_OF_INVOICE = re.compile(rb"(?=[^,]*[0-9])[A-Za-z0-9/_. #-]{1,50}")
_FRAME_WORDS = re.compile(rb"\x01[\x24-\xff][\x20-\xff][\x20-\xff]|\x05[\x30-\x3f]{4}\x03|[\x00-\x1f]")
_WORD = re.compile(r"[^\W_]+")

_UNKNOWN = CommandEntry(Text("unknown command"))


def masked(events: Sequence[LineEvent]) -> list[LineEvent]:
    sent = _run(events, SENT)
    received = _run(events, RECEIVED)
    people = _People(_events(sent), _events(received))
    streams = {SENT: people.mask(sent), RECEIVED: people.mask(received)}
    at = {SENT: 0, RECEIVED: 0}
    found = []
    for event in events:
        if event.kind == NOTE:
            found.append(event)
            continue
        begin = at[event.kind]
        at[event.kind] = end = begin + len(event.data)
        found.append(event._replace(data=streams[event.kind][begin:end]))
    return found


def _run(events: Iterable[LineEvent], kind: str) -> bytes:
    return b"".join(event.data for event in events if event.kind == kind)


def _events(stream: bytes) -> Iterator[tuple[Event, bytes]]:
    """Each event with its bytes; an incomplete rest comes last, as garbage. A request may be the machine's echo."""
    decoder = Decoder()
    decoder.receive(stream)
    at = 0
    while not isinstance(event := decoder.next_event(), type):
        size = _size(event)
        yield event, stream[at : at + size]
        at += size
    if rest := stream[at:]:
        yield Garbage(rest, "format"), rest


def _size(event: Event) -> int:
    match event:
        case MachineReply():
            return len(event.data) + 7 + _HEAD + _TAIL
        case Request():
            return len(event.data) + _HEAD + _TAIL
        case Garbage():
            return len(event.data)
        case Nak() | Syn():
            return 1


class _People:
    """Texts about people in the frames themselves, to be masked wherever else they occur."""

    def __init__(self, *heard: Iterable[tuple[Event, bytes]]) -> None:
        texts = {text for frames in heard for event, _ in frames for text in _personal(event)}
        # The search ignores case: each word once.
        words = sorted({word.lower() for text in texts for word in _spellings(text)}, key=len, reverse=True)
        self._words = re.compile(b"|".join(map(re.escape, words)), re.IGNORECASE) if words else None

    def mask(self, stream: bytes) -> bytes:
        return b"".join(self._frame(event, raw) for event, raw in _events(stream))

    def _frame(self, event: Event, raw: bytes) -> bytes:
        match event:
            case Garbage():
                return _only_frame_words(raw)
            case MachineReply():
                return self._with_data(raw, _mask_reply(event))
            case Request():
                return self._with_data(raw, _mask_request(event))
            case _:
                return raw

    def _with_data(self, raw: bytes, data: bytes) -> bytes:
        if self._words is not None:
            data = self._words.sub(lambda found: _x(found[0]), data)
        new = raw[:_HEAD] + data + raw[_HEAD + len(data) :]
        return set_checksum(new, raw)


def set_checksum(new: bytes, old: bytes) -> bytes:
    """`new`, a complete frame, with a checksum that is right, or as wrong as the one of `old`."""
    checksum = sum((byte & 15) << shift for byte, shift in zip(old[-5:-1], _NIBBLES, strict=True))
    total = (checksum + sum(new[1:-5]) - sum(old[1:-5])) & 0xFFFF
    return new[:-5] + bytes(0x30 + (total >> shift & 15) for shift in _NIBBLES) + new[-1:]


def _x(text: bytes) -> bytes:
    return bytes((MASK,)) * len(text)


def _only_frame_words(raw: bytes) -> bytes:
    """Only the head and the tail of possible frames. A head counts only with an existing command."""
    content = bytearray(_x(raw))
    for found in _FRAME_WORDS.finditer(raw):
        text = found[0]
        if len(text) != _HEAD or text[3] in COMMANDS:
            content[found.start() : found.end()] = text
        else:
            content[found.start()] = SOH
    return bytes(content)


# -- what is about people ----------------------------------------------------------------------------------------------


def _personal(event: Event) -> Iterator[bytes]:
    match event:
        case Request() if (entry := COMMANDS.get(event.cmd)) and entry.people:
            yield from event.data.split(b",")[entry.people]
        case MachineReply() if event.cmd == TAXPAYER and not event.data.startswith(b"E:"):
            yield _taxpayer_text(event.data)
        case MachineReply() if entry := COMMANDS.get(event.cmd):
            fields = event.data.split(b",")
            yield from (fields[at] for at in entry.reply_people if at < len(fields))


def _spellings(text: bytes) -> Iterator[bytes]:
    """The whole text, and each word in it, in every code page and case in which it may be echoed."""
    yield from _long_enough(text)
    for escaped, plain in _ESCAPES.items():
        text = text.replace(escaped, plain)
    for page in ("utf-8", "cp1252", "cp850"):
        try:
            spoken = text.decode(page)
        except UnicodeDecodeError:
            continue
        for part in (spoken, *_WORD.findall(spoken)):
            for form in (part, part.upper(), part.lower()):
                yield from _encoded(form)


def _encoded(text: str) -> Iterator[bytes]:
    """A machine replaces characters outside its code page by `?`."""
    for page in _CODE_PAGES:
        yield from _long_enough(text.encode(page, "replace"))


def _long_enough(text: bytes) -> Iterator[bytes]:
    if len(text) >= (_SHORTEST_NUMBER if text.strip().isdigit() else _SHORTEST):
        yield text


def _taxpayer_text(data: bytes) -> bytes:
    return data[3:] if re.match(rb"I[0-9],", data) else data


# -- what is masked wherever it stands ---------------------------------------------------------------------------------


def _mask_request(request: Request) -> bytes:
    entry = COMMANDS.get(request.cmd)
    if entry is None:
        return _x(request.data)
    if entry.people is None:
        return request.data
    fields = request.data.split(b",")
    if len(fields) == 1:
        return _x(request.data)
    fields[entry.people] = map(_x, fields[entry.people])
    return b",".join(fields)


def _mask_reply(reply: MachineReply) -> bytes:
    data = reply.data
    if data.startswith((b"E:", b"P:")):
        return data  # the machine's own words; `_People` finds people in them
    if reply.cmd == TAXPAYER:
        text = _taxpayer_text(data)
        return data[: len(data) - len(text)] + _x(text)
    return _mask_fields(data, reply.cmd)


def _mask_fields(data: bytes, command: int) -> bytes:
    entry = COMMANDS.get(command, _UNKNOWN)
    fields = data.split(b",")
    for at, field in enumerate(fields):
        stays = (
            at in entry.reply_words
            or _PLAIN.fullmatch(field)
            or (at in entry.reply_number and _NUMBER_OF_INVOICE.fullmatch(field))
        )
        if at in entry.reply_people or not stays:
            fields[at] = _x(field)
    return b",".join(fields)
