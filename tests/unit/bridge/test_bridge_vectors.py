"""Frames written out by hand, against the codec and against a second, naive one, in both directions."""

import pytest
from support.line.naive_frames import load_vectors, naive_decode, naive_encode, parse_hex

from bridge import commands
from bridge.commands import understand
from bridge.errors import Refused
from bridge.frame import Decoder, Garbage, MachineReply, Request, encode
from bridge.replies.answers import Balance, Closed, LineTotals, Opened, ServerLinkReply, StateReply, SubtotalReply

VECTORS = load_vectors()
FRAMES = {vector["name"]: vector for vector in VECTORS["frame"]}
CODE = "TESTFACT0123456789ABCDEF"

REQUESTS = {
    "state, request": commands.ReadState(),
    "taxpayer, request": commands.ReadTaxpayer(0),
    "customer, walk-in": commands.SetCustomer(),
    "customer, company": commands.SetCustomer("PM", "00012345A", "Sahel SARL"),
    "open a sale": commands.OpenInvoice("FV", "F1", "00084440Y", "TTC", "1", "1", "Awa"),
    "open a credit note": commands.OpenInvoice("FA", "N9", "00084440Y", "TTC", "1", "1", "A", "RAM", "EL02000015-1-7"),
    "item": commands.AddItem("Riz", "B", 1800, 590, 59000, 1000),
    "subtotal, request": commands.ReadSubtotal(),
    "payment, highest SEQ": commands.Pay("E", 590),
    "comment, SEQ wrapped": commands.AddComment("A", "Merci"),
    "close": commands.CloseInvoice(590),
    "cancel": commands.CancelInvoice(),
}
B590 = (0, 59000, *[0] * 14)
B90 = (0, 9000, *[0] * 14)
REPLIES = {
    "state, reply of a new machine": (
        commands.ReadState(),
        StateReply("EL02000015", "X", "20260731080000", 0, 0, 0, None, (0,) * 16),
    ),
    "server link, reply": (commands.ReadServerLink(), ServerLinkReply(12, 15, "", "DIS", "")),
    "taxpayer, reply in UTF-8": (commands.ReadTaxpayer(0), "Épicerie"),
    "open a sale, reply": (REQUESTS["open a sale"], Opened(7, 12)),
    "item, reply": (REQUESTS["item"], LineTotals(59000, 50000, 9000, 0)),
    "subtotal, reply": (commands.ReadSubtotal(), SubtotalReply(59000, B590, B90, 0)),
    "payment, reply": (commands.Pay("E", 590), Balance(0, 0)),
    "close, reply": (
        commands.CloseInvoice(590),
        Closed(7, 13, "FV", "20260731093000", "EL02000015-1", "00084440Y", CODE, ""),
    ),
}


def parts(vector: dict) -> tuple[int, int, bytes, bytes | None]:
    data = vector["data"].encode() * vector.get("times", 1)
    status = bytes.fromhex(vector.get("status", "80 " * 6)) if vector["kind"] == "reply" else None
    return vector["seq"], vector["cmd"], data, status


def events_of(raw: bytes, step: int) -> list:
    decoder = Decoder()
    events = []
    for start in range(0, len(raw), step):
        decoder.receive(raw[start : start + step])
        while not isinstance(event := decoder.next_event(), type):
            events.append(event)
    return events


@pytest.mark.parametrize("name", FRAMES)
def test_frames_by_hand_by_codec_and_by_a_naive_coder_are_one(name: str) -> None:
    """Each hand-written frame is what both coders make of its parts, and both find those parts in it."""
    vector = FRAMES[name]
    seq, cmd, data, status = parts(vector)
    raw = parse_hex(vector["hex"])
    frame = Request(seq, cmd, data) if status is None else MachineReply(seq, cmd, data, status)
    assert naive_encode(seq, cmd, data, status) == raw
    assert encode(frame) == raw
    assert naive_decode(raw) == (seq, cmd, data, status)
    assert events_of(raw, len(raw)) == events_of(raw, 1) == [frame]


@pytest.mark.parametrize("vector", VECTORS["line"], ids=lambda vector: vector["name"])
def test_what_else_is_on_the_line_is_told_apart(vector: dict) -> None:
    """NAK, SYN and the kinds of garbage are as written down by hand."""
    events = events_of(parse_hex(vector["hex"]), 1000)
    assert [e.reason if isinstance(e, Garbage) else type(e).__name__ for e in events] == vector["events"]


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_carry_the_data_of_the_protocol_page(name: str) -> None:
    """Each command's code and data are those of the hand-written frame."""
    seq, cmd, data, _ = parts(FRAMES[name])
    command = REQUESTS[name]
    assert (command.cmd, command.encode()) == (cmd, data)
    assert encode(Request(seq, command.cmd, command.encode())) == parse_hex(FRAMES[name]["hex"])


@pytest.mark.parametrize("name", REPLIES)
def test_replies_read_as_the_protocol_page_says(name: str) -> None:
    """Each hand-written reply is read as the value written beside it. One that starts with `E:` is a refusal; the rest is the machine's own text."""
    command, value = REPLIES[name]
    _, cmd, data, _ = parts(FRAMES[name])
    assert command.cmd == cmd
    assert understand(command, data) == value
    with pytest.raises(Refused, match="No invoice"):
        understand(command, parts(FRAMES["cancel, refused with status bits"])[2])
