"""What a masked recording still says: everything about the line, nothing about people."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st
from support.line.naive_frames import naive_encode
from support.line.scripted_line import IDLE

from bridge.commands import OpenInvoice, SetCustomer
from bridge.frame import Decoder, Reply, Request, encode
from bridge.recording.masking import masked
from bridge.recording.recording import RECEIVED, SENT, Event

PAGES = ("utf-8", "cp1252", "cp850", "cp437", "mac-roman")
LETTERS = [letter for letter in bytes(range(256)).decode("cp850") if unicodedata.category(letter) in ("Lu", "Ll")]
"""Found here: hypothesis would try all of Unicode for it."""
NAMES = st.lists(st.text(LETTERS, min_size=5, max_size=12), min_size=1, max_size=3).map(" ".join)
IFUS = st.from_regex(r"[1-9]{8}[A-Z]", fullmatch=True)
NAME_RUN, IFU_RUN = 4, 7
"""So many bytes in a row of a name, or of an IFU, are too many."""


def told(data: bytes, secret: str) -> bool:
    """Whether a run of a secret's bytes, in any code page, is to be seen in what is left."""
    for page in PAGES:
        try:
            raw = secret.encode(page)
        except UnicodeEncodeError:
            continue
        size = IFU_RUN if secret[:8].isdigit() else NAME_RUN
        runs = (raw[at : at + size] for at in range(len(raw) - size + 1))
        if any(run in data for run in runs if run.strip(b"x")):
            return True
    return False


def text_of(events: list[Event]) -> bytes:
    return b"".join(event.data for event in events)


def reply(cmd: int, data: bytes) -> Event:
    return Event(2, RECEIVED, encode(Reply(0x21, cmd, data, IDLE)))


@given(name=NAMES, address=NAMES, ifu=IFUS, phone=st.from_regex(r"\+226 [0-9]{8}", fullmatch=True))
@settings(max_examples=40)
def test_what_the_till_sends_of_people_is_gone(name, address, ifu, phone) -> None:
    """C3h's customer and C0h's operator and IFU: not a run of them is left, the frame keeps its length and is still whole."""
    customer = SetCustomer("PM", ifu, name, address, phone).encode()
    opening = OpenInvoice("FV", "F-12", ifu, "TTC", "1", "7", name).encode()
    events = [Event(1, SENT, encode(Request(0x21, cmd, data))) for cmd, data in ((0xC3, customer), (0xC0, opening))]
    found = masked(events)
    for secret in (name, address, ifu, phone):
        assert not told(text_of(found), secret)
    assert [len(event.data) for event in found] == [len(event.data) for event in events]
    decoder = Decoder()
    decoder.receive(text_of(found))
    frames = [decoder.next_event(), decoder.next_event()]
    assert [type(frame) for frame in frames] == [Request, Request]
    assert frames[0].data.startswith(b"PM,xxxxxxxxx,")
    assert frames[1].data.endswith(b",FV,TTC,1,F-12")


@given(name=NAMES)
@settings(max_examples=20)
def test_an_operator_named_in_a_later_reply_is_gone(name) -> None:
    """What a till sent of people is known wherever the machine says it again."""
    opening = OpenInvoice("FV", "F-12", "00000000A", "TTC", "1", "7", name).encode()
    refusal = f"E:operator {name} is unknown".encode()
    found = masked([Event(1, SENT, encode(Request(0x21, 0xC0, opening))), reply(0xC0, refusal)])
    assert not told(found[-1].data, name)


@given(data=st.data(), name=NAMES, ifu=IFUS, page=st.sampled_from(PAGES))
@settings(max_examples=60)
def test_what_the_machine_says_of_people_is_gone(data, name, ifu, page) -> None:
    """In its state, its certification, its taxpayer lines, and where a refusal repeats what the till had sent: in every code
    page, with a field too many or too few, however the bytes came in pieces."""
    spoken = name.encode(page, "replace")
    raw_ifu = ifu.encode()
    more = data.draw(st.sampled_from([b"", b",7", b"," + spoken]))
    replies = [
        (0xC1, b"EL02000015-1," + raw_ifu + b",20261121235237,7,5,2,,,,,," + b",".join([b"18.00"] * 16) + more),
        (0x38, b"7,9,FV,20261121235237,EL02000015-1," + raw_ifu + b",ABCDEFGHIJKLMNOPQRSTUVWX,F-12" + more),
        (0x2B, b"I0," + spoken),
        (0x2B, spoken),
        (0xC3, b"E:Client " + spoken + b" inconnu"),
        (0x70, spoken + b"," + raw_ifu),
    ]
    cmd, text = data.draw(st.sampled_from(replies))
    stream = reply(cmd, text[:212]).data
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=3)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    sent = Event(1, SENT, encode(Request(0x21, 0xC3, SetCustomer("PM", ifu, name).encode())))
    found = masked([sent, *(Event(2, RECEIVED, piece) for piece in pieces)])
    for secret in (name, ifu):
        assert not told(text_of(found[1:]), secret)
    assert [len(event.data) for event in found[1:]] == [len(piece) for piece in pieces]


@given(data=st.data(), name=NAMES, ifu=IFUS)
@settings(max_examples=60)
def test_a_spoiled_frame_tells_nothing_either(data, name, ifu) -> None:
    """Bits flipped, bytes lost, an end that never came: what cannot be read as a frame keeps its control bytes only."""
    text = b"7,9,FV,20261121235237," + name.encode() + b"," + ifu.encode() + b",ABC," + name.encode()
    stream = bytearray(naive_encode(0x21, 0x38, text[:212], IDLE))
    at = data.draw(st.integers(0, len(stream) - 1))
    if data.draw(st.booleans()):
        del stream[at:]
    else:
        stream[at] ^= 1 << data.draw(st.integers(0, 7))
    found = text_of(masked([Event(1, RECEIVED, bytes(stream))]))
    assert len(found) == len(stream)
    for secret in (name, ifu):
        assert not told(found, secret)


def test_of_what_is_no_frame_a_head_stays_with_a_command_that_there_is() -> None:
    """Three letters after a stray SOH may be a name's: of those nothing stays but the SOH."""
    for came, left in ((b"\x01\x30\x21\xc1SAWADOGO", b"\x01\x30\x21\xc1xxxxxxxx"), (b"\x01SAWADOGO", b"\x01xxxxxxxx")):
        assert text_of(masked([Event(1, RECEIVED, came)])) == left


def test_what_is_not_about_people_stays() -> None:
    """Counters, times, codes, NIM, the machine's words and the items are what a recording is for."""
    state = b"EL02000015-1,00084440Y,20261121235237,12,10,2,20261121235200,FV,ABCD2345EFGH6789JKLM2345,F-2026/17,15000"
    state += b"," + b",".join([b"18.00"] * 16)
    events = [
        Event(1, SENT, encode(Request(0x21, 0x31, "Riz parfumé 25kg\tLOCBIE,B18.00%15000\t15000.00*1.000".encode()))),
        reply(0xC1, state),
        reply(0x31, b"E:No amount!"),
        reply(0x35, b"R0"),
        reply(0xC2, b"10,12,20261121235237,DIS,No route to host"),
        Event(3, RECEIVED, b"\x16\x15"),
    ]
    found = masked(events)
    assert found[1].data == reply(0xC1, state.replace(b"00084440Y", b"xxxxxxxxx")).data
    assert [found[at] for at in (0, 2, 3, 4, 5)] == [events[at] for at in (0, 2, 3, 4, 5)]


def test_a_masked_frame_is_still_a_frame() -> None:
    """Its checksum is that of what it holds now, so that a masked recording can be played."""
    frame = naive_encode(0x21, 0x2B, b"I0,MAISON FASO", IDLE)
    decoder = Decoder()
    decoder.receive(text_of(masked([Event(1, RECEIVED, frame)])))
    assert decoder.next_event() == Reply(0x21, 0x2B, b"I0,xxxxxxxxxxx", IDLE)
