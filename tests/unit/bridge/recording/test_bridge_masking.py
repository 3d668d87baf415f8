"""What a masked recording still says: everything about the line, nothing about people."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.line.naive_frames import naive_encode
from support.line.scripted_line import IDLE

from bridge.commands import OpenInvoice, SetCustomer
from bridge.frame import Decoder, MachineReply, Request, encode
from bridge.recording.masking import masked
from bridge.recording.recording import NOTE, RECEIVED, SENT, LineEvent

PAGES = ("utf-8", "cp1252", "cp850", "cp437", "mac-roman")
LETTERS = [letter for letter in bytes(range(256)).decode("cp850") if unicodedata.category(letter) in ("Lu", "Ll")]
"""Found here: hypothesis would try all of Unicode for it."""
OWN_WORDS = b"E:operator  is unknown,E:Client  inconnu,ABCDEFGHIJKLMNOPQRSTUVWX"
"""What the frames here say around a name: that it stays tells nothing of one."""
OWN_TIME = b"20261121235237"
NAMES = (
    st.lists(st.text(LETTERS, min_size=5, max_size=12), min_size=1, max_size=3)
    .map(" ".join)
    .filter(lambda name: not hides(OWN_WORDS, name))
)
IFUS = st.from_regex(r"[1-9]{8}[A-Z]", fullmatch=True).filter(lambda ifu: not hides(OWN_TIME, ifu))
NAME_RUN, NUMBER_RUN = 4, 7
"""So many bytes in a row of a name, or of a number, are too many. Four digits may be a frame's checksum or a command's."""


def hides(data: bytes, secret: str, number_run: int = NUMBER_RUN) -> bool:
    """Whether a run of a secret's bytes, in any code page, is to be seen in what is left."""
    for page in PAGES:
        try:
            raw = secret.encode(page)
        except UnicodeEncodeError:
            continue
        size = number_run if any(map(str.isdigit, secret)) else NAME_RUN
        runs = (raw[at : at + size] for at in range(len(raw) - size + 1))
        if any(run in data for run in runs if run.strip(b"x ")):
            return True
    return False


def text_of(events: list[LineEvent]) -> bytes:
    return b"".join(event.data for event in events)


def reply(cmd: int, data: bytes) -> LineEvent:
    return LineEvent(2, RECEIVED, encode(MachineReply(0x21, cmd, data, IDLE)))


@given(name=NAMES, address=NAMES, ifu=IFUS, phone=st.from_regex(r"\+226 [0-9]{8}", fullmatch=True))
@settings(max_examples=40)
def test_what_the_till_sends_of_people_is_gone(name, address, ifu, phone) -> None:
    """C3h's customer and C0h's operator and IFU: not a run of them is left, the frame keeps its length and is still whole."""
    customer = SetCustomer("PM", ifu, name, address, phone).encode()
    opening = OpenInvoice("FV", "F-12", ifu, "TTC", "1", "7", name).encode()
    events = [LineEvent(1, SENT, encode(Request(0x21, cmd, data))) for cmd, data in ((0xC3, customer), (0xC0, opening))]
    found = masked(events)
    for secret in (name, address, ifu, phone):
        assert not hides(text_of(found), secret)
    assert [len(event.data) for event in found] == [len(event.data) for event in events]
    decoder = Decoder()
    decoder.receive(text_of(found))
    frames = [decoder.next_event(), decoder.next_event()]
    assert [type(frame) for frame in frames] == [Request, Request]
    for secret in (ifu, phone):  # beside the checksums four digits are too many
        assert not any(hides(frame.data, secret, NAME_RUN) for frame in frames)
    assert frames[0].data.startswith(b"PM,xxxxxxxxx,")
    assert frames[1].data.endswith(b",FV,TTC,1,F-12")


@given(name=NAMES)
@settings(max_examples=20)
def test_an_operator_named_in_a_later_reply_is_gone(name) -> None:
    """What a till sent of people is known wherever the machine says it again."""
    opening = OpenInvoice("FV", "F-12", "00000000A", "TTC", "1", "7", name).encode()
    refusal = f"E:operator {name} is unknown".encode()
    found = masked([LineEvent(1, SENT, encode(Request(0x21, 0xC0, opening))), reply(0xC0, refusal)])
    assert not hides(found[-1].data, name)


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
    sent = LineEvent(1, SENT, encode(Request(0x21, 0xC3, SetCustomer("PM", ifu, name).encode())))
    found = masked([sent, *(LineEvent(2, RECEIVED, piece) for piece in pieces)])
    for secret in (name, ifu):
        assert not hides(text_of(found[1:]), secret)
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
    found = text_of(masked([LineEvent(1, RECEIVED, bytes(stream))]))
    assert len(found) == len(stream)
    for secret in (name, ifu):
        assert not hides(found, secret)


def test_of_what_is_no_frame_a_head_stays_with_a_command_that_there_is() -> None:
    """Three letters after a stray SOH may be a name's: of those nothing stays but the SOH."""
    for came, left in ((b"\x01\x30\x21\xc1SAWADOGO", b"\x01\x30\x21\xc1xxxxxxxx"), (b"\x01SAWADOGO", b"\x01xxxxxxxx")):
        assert text_of(masked([LineEvent(1, RECEIVED, came)])) == left


@pytest.mark.parametrize("before", [b"\x16\x16", b"\x15", b"noise"], ids=["SYN", "NAK", "no frame"])
def test_an_answer_is_masked_in_whatever_follows_on_the_line(before: bytes) -> None:
    """A SYN, a NAK, or bytes that are no frame come right before it."""
    answer = reply(0xC1, STATE % (b"00084440Y", b"F-12"))
    found = text_of(masked([LineEvent(1, RECEIVED, before), answer]))
    assert found[len(before) :] == reply(0xC1, STATE % (b"xxxxxxxxx", b"F-12")).data


def test_what_is_not_about_people_stays() -> None:
    """Counters, times, codes, NIM, the machine's words and the items are what a recording is for."""
    state = b"EL02000015-1,00084440Y,20261121235237,12,10,2,20261121235200,FV,ABCD2345EFGH6789JKLM2345,F-2026/17,15000"
    state += b"," + b",".join([b"18.00"] * 16)
    events = [
        LineEvent(
            1, SENT, encode(Request(0x21, 0x31, "Riz parfumé 25kg\tLOCBIE,B18.00%15000\t15000.00*1.000".encode()))
        ),
        reply(0xC1, state),
        reply(0x31, b"E:No amount!"),
        reply(0x35, b"R0"),
        reply(0xC2, b"10,12,20261121235237,DIS,No route to host"),
        LineEvent(3, NOTE, b"retry: silence"),
        LineEvent(3, RECEIVED, b"\x16\x15"),
    ]
    found = masked(events)
    assert found[1].data == reply(0xC1, state.replace(b"00084440Y", b"xxxxxxxxx")).data
    assert [found[at] for at in (0, *range(2, 7))] == [events[at] for at in (0, *range(2, 7))]


CLOSED = b"7,9,FV,20261121235237,EL02000015-1,00084440,ABCDEFGHIJKLMNOPQRSTUVWX"
STATE = b"EL02000015-1,%b,20261121235237,12,10,2,20261121235200,FV,ABCD2345EFGH6789JKLM2345,%b,15000,0,18.00"


def sent(cmd: int, data: bytes) -> LineEvent:
    return LineEvent(1, SENT, encode(Request(0x21, cmd, data)))


def heard(event: LineEvent) -> Request | MachineReply:
    decoder = Decoder()
    decoder.receive(event.data)
    frame = decoder.next_event()
    assert isinstance(frame, Request | MachineReply)
    return frame


@pytest.mark.parametrize(
    ("event", "left"),
    [
        (sent(0xC3, b"PM,1234567A,AWA SAWADOGO,RUE 12,+226 70"), b"PM,xxxxxxxx,xxxxxxxxxxxx,xxxxxx,xxxxxxx"),
        (sent(0xC3, b"AWA SAWADOGO"), b"xxxxxxxxxxxx"),
        (sent(0xC0, b"7,AWA OUEDRAOGO,00084440Y,FV,TTC,1,F-12"), b"7,xxxxxxxxxxxxx,xxxxxxxxx,FV,TTC,1,F-12"),
        (sent(0x36, b"A,Merci Awa"), b"A,xxxxxxxxx"), (sent(0x36, b"Merci Awa"), b"xxxxxxxxx"),
        (sent(0x31, b"Riz"), b"Riz"), (sent(0x35, b"E15000"), b"E15000"), (sent(0x70, b"Riz"), b"xxx"),
        (reply(0xC1, STATE % (b"00084440", b"F-2026/17")), STATE % (b"xxxxxxxx", b"F-2026/17")),
        (reply(0xC1, STATE % (b"F-2026/17", b"F 17")), STATE % (b"xxxxxxxxx", b"F 17")),
        (reply(0xC1, STATE % (b"", b"Awa")), STATE % (b"", b"xxx")),
        (reply(0x38, CLOSED + b",F-2026/17"), CLOSED.replace(b"00084440", b"xxxxxxxx") + b",F-2026/17"),
        (reply(0x38, CLOSED + b",7,F-12"), CLOSED.replace(b"00084440", b"xxxxxxxx") + b",7,xxxx"),
        (reply(0x38, b"P:encore"), b"P:encore"),
        (reply(0xC2, b"10,12,20261121235237,DIS,No route"), b"10,12,20261121235237,DIS,No route"),
        (reply(0xC2, b"10,12,20261121235237,No route,DIS"), b"10,12,20261121235237,xxxxxxxx,DIS"),
        (reply(0xC3, b"merci,bien"), b"merci,xxxx"), (reply(0x36, b"merci,bien"), b"merci,xxxx"),
        (reply(0x31, b"merci,15000"), b"xxxxx,15000"), (reply(0x2B, b"I0,CHEZ AWA"), b"I0,xxxxxxxx"),
        (reply(0x2B, b"CHEZ AWA"), b"xxxxxxxx"), (reply(0x2B, b"E:no line"), b"E:no line"),
    ],
)  # fmt: skip
def test_what_stays_of_a_frame(event: LineEvent, left: bytes) -> None:
    """Of a command all that says nothing of people, and nothing where there is no such command. Of a reply what has the form of a number, a time, a
    code; an invoice's number and the machine's own words where they stand by the page; an IFU never, whatever its form. Its checksum is that of what it
    holds now, so that a masked recording can be played."""
    assert heard(masked([event])[0]).data == left
    assert len(masked([event])[0].data) == len(event.data)


@pytest.mark.parametrize(
    ("expected", "of", "is_hidden"),
    [
        (sent(0xC3, b"PM,1234567A,,,"), b"1234567A", True),
        (sent(0xC3, b"PM,,SAWADOGO,,"), b"SAWADOGO", True),
        (sent(0xC3, b"PM,,,SAWADOGO,"), b"SAWADOGO", True),
        (sent(0xC3, b"PM,,,,SAWADOGO"), b"SAWADOGO", True),
        (sent(0xC3, b"INCONNU,,,,"), b"INCONNU", False),
        (sent(0xC0, b"7,SAWADOGO,00084440Y,FV"), b"SAWADOGO", True),
        (sent(0xC0, b"7,SAWADOGO,00084440Y,FV"), b"00084440Y", True),
        (sent(0xC0, b"7,AWA,00084440Y,FACTURE"), b"FACTURE", False),
        (sent(0x36, b"A,SAWADOGO"), b"SAWADOGO", True),
        (sent(0x36, b"LABEL,SAWADOGO"), b"LABEL", False),
        (sent(0x31, b"SAWADOGO"), b"SAWADOGO", False),
        (reply(0x2B, b"I0,SAWADOGO"), b"SAWADOGO", True),
        (reply(0x2B, b"E:SAWADOGO"), b"SAWADOGO", False),
        (reply(0xC1, b"EL02000015-1,SAWADOGO,2026"), b"SAWADOGO", True),
        (reply(0xC1, b"SAWADOGO"), b"SAWADOGO", False),
        (reply(0x38, CLOSED.replace(b"00084440", b"SAWADOGO")), b"SAWADOGO", True),
        (reply(0x38, b"SAWADOGO,9,FV"), b"SAWADOGO", False),
        (sent(0xC3, b"PM,,AWA,,"), b"AWA", False),
        (sent(0xC3, b"PM,,ADJA,,"), b"ADJA", True),
        (sent(0xC3, b"PM,,Adja Wendy,,"), b"wendy", True),
        (sent(0xC3, b"PM,123456,,,"), b"123456", False),
        (sent(0xC3, b"PM,1234567,,,"), b"1234567", True),
        (sent(0xC3, b"PM,,A^amp;B^lt;C,,"), b"A&B<C", True),
    ],
)
def test_what_a_frame_says_of_people_is_found_in_others(expected: LineEvent, of: bytes, is_hidden: bool) -> None:
    """In a refusal, which is the machine's own words otherwise: each field with people in it and no other; but for what is so short that it would
    hide amounts and codes, three letters or six digits."""
    found = masked([expected, reply(0x33, b"E:no " + of + b" here")])[1]
    assert found == reply(0x33, b"E:no " + (b"x" * len(of) if is_hidden else of) + b" here")


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        (b"\x01\x2b\x21\xc1Awa", b"\x01\x2b\x21\xc1xxx"),
        (b"\x01\x2b\x21\x7fAwa", b"\x01xxxxxx"),
        (b"Awa\x05012?\x03", b"xxx\x05012?\x03"),
        (b"Awa\x01\x06", b"xxx\x01\x06"),
    ],
    ids=["head", "no command", "tail", "alone"],
)
def test_of_bytes_that_are_no_frame_heads_and_tails_stay(raw: bytes, left: bytes) -> None:
    """A head with a command that exists."""
    assert text_of(masked([LineEvent(1, RECEIVED, raw)])) == left
