"""A recording as people read it."""

import pytest
from support.line.naive_frames import naive_encode
from support.line.scripted_line import IDLE

from bridge.recording.recording import NOTE, RECEIVED, SENT, LineEvent
from daemon.recording.transcript import transcript

AT = 1_763_769_157_000_000


@pytest.fixture(autouse=True)
def _english(monkeypatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")


def lines(*events: tuple[int, str, bytes]) -> list[str]:
    return list(transcript(LineEvent(AT + at, kind, data) for at, kind, data in events))


def test_commands_and_fields_have_their_names_and_gaps_are_in_milliseconds() -> None:
    """A request, its reply in two pieces, and a note."""
    reply = naive_encode(0x21, 0x38, b"7,9,FV,20261121235237,EL02000015-1,00084440Y,CODE,F-1", IDLE)
    found = lines(
        (0, SENT, naive_encode(0x21, 0x38, b"15000.00")),
        (1500, RECEIVED, reply[:9]),
        (2000, RECEIVED, reply[9:]),
        (502_000, NOTE, b"retry: silence"),
    )
    assert found == [
        "2025-11-21 23:52:37.000000              >   38h  SEQ 21  certify  15000.00",
        "2025-11-21 23:52:37.001500    +1.500 ms <   9 bytes of a frame that goes on",
        (
            "2025-11-21 23:52:37.002000    +0.500 ms <   38h  SEQ 21  FC=7  TC=9  TYPE=FV  DT=20261121235237  NIM=EL02000015-1"
            "  IFU=00084440Y  CODE=CODE  FN=F-1"
        ),
        "2025-11-21 23:52:37.502000  +500.000 ms   # retry: silence",
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x15", "NAK  the request came damaged"),
        (b"\x16", "SYN  still working"),
        (
            naive_encode(0x21, 0x31, b"E:No amount!", b"\xa1\x80\x88\x80\x80\x80"),
            "refused: No amount!  [syntax error, error, an",
        ),
        (naive_encode(0x21, 0x38, b"P:wait", IDLE), "not yet: wait"),
        (naive_encode(0x21, 0xC2, b"1,2,20261121235237,DIS,none,7", IDLE), "STA=DIS  ER=none  +1=7"),
        (naive_encode(0x21, 0xC1, b"EL02000015-1,A,B,1,2,3," + b",".join([b"0"] * 16), IDLE), "FRC=3  TA=0  TB=0"),
        (naive_encode(0x21, 0x2B, b"I0,Caf\xe9", IDLE), "LINE=I0  TEXT=Caf\\xe9"),
        (naive_encode(0x21, 0x38, b"1,2", IDLE).replace(b"1,2", b"1,3"), "?    the checksum is wrong: \\x01.!8"),
        (b"AT\r", "?    no frame: AT\\r"),
    ],
)
def test_what_is_wrong_with_a_frame_is_told(data, expected) -> None:
    """In words, beside the bytes."""
    assert expected in lines((0, RECEIVED, data))[0]


def test_a_credit_note_and_an_item_have_their_own_fields() -> None:
    """Nine fields instead of seven; parts between tabs."""
    found = lines(
        (0, SENT, naive_encode(0x21, 0xC0, b"1,Awa,IFU,FA,COR,EL02000015-1-7,TTC,1,F-9")),
        (1, SENT, naive_encode(0x22, 0x31, b"Riz\nR25\tLOCBIE,B18.00%15000\t15000.00*1.000")),
        (2, SENT, naive_encode(0x23, 0x38, b"C")),
    )
    assert "NATURE=COR  REF=EL02000015-1-7  PMODE=TTC" in found[0]
    assert "NAME=Riz\\nR25  TAX=LOCBIE,B18.00%15000  PRICE=15000.00*1.000" in found[1]
    assert "cancel the open invoice" in found[2]
