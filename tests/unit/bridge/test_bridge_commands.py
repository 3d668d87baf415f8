"""Commands and replies: every A and B fact of the protocol page is read, anything else is Nonsense."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.line.commands import EACH, add_item

from bridge.commands import (
    AddComment,
    CancelInvoice,
    CloseInvoice,
    MachineHabits,
    OpenInvoice,
    Pay,
    ReadServerLink,
    ReadState,
    ReadSubtotal,
    ReadTaxpayer,
    SetCustomer,
    understand,
)
from bridge.errors import Nonsense, Refused, Unsendable
from bridge.frame import MAX_REQUEST_DATA, Request, encode
from bridge.replies.answers import (
    Balance,
    Closed,
    Done,
    LastInvoiceReply,
    LineTotals,
    Opened,
    Pending,
    ServerLinkReply,
    SubtotalReply,
)

OPEN = OpenInvoice("FV", "F1", "00084440Y", "TTC", "1", "1", "Awa")
ITEM = add_item("Riz 25kg", "B", 1800, 15000, 1500000, 1000)
COMMANDS = [*EACH.values(), OPEN, ITEM, CancelInvoice()]
RATES = "0.00,18.00,10.00,0,0,18,10.0,0,0,0,0,10,10,0,0,0"
RATES_READ = (0, 1800, 1000, 0, 0, 1800, 1000, 0, 0, 0, 0, 1000, 1000, 0, 0, 0)
HEAD = "EL02000015-1,00084440Y,20260731093000,13,7,2"
LAST = "20260731092959,FV,TEST-FACT-0123-4567-89AB-CDEF,F^x2c;6,590.00"
CLOSED = "7,13,FV,20260731093000,EL02000015-1,00084440Y,TEST-FACT0123456789ABCDEF"

# Bytes made of what answers are made of, so that the property test gets past the first check now and then.
ALIKE = st.lists(
    st.sampled_from([",", "E:", "P:", "R:", "R", "D", "0", "15000", "15000.00", "18.00", "1.5", "DIS", "CON", "FV", "C",
                     "EL02000015-1", "00084440Y", "20260731093000", "TESTFACT0123456789ABCDEF", "^x2c;", "é", "I0,"]),
    max_size=60,
).map(lambda parts: "".join(parts).encode())  # fmt: skip
FIELDS = st.lists(st.sampled_from(["0", "7", "590.00", "18.0", "", "x", "20260731093000", "EL02000015"]), max_size=40)


@given(
    st.binary(max_size=212) | ALIKE | FIELDS.map(lambda fields: ",".join(fields).encode()), st.sampled_from(COMMANDS)
)
def test_any_data_is_a_reply_a_refusal_or_nonsense(data: bytes, command) -> None:
    """Whatever a machine answers, nothing but Refused and Nonsense is raised."""
    try:
        understand(command, data)
    except Refused:
        assert data.lstrip()[:1] in (b"E", b"e")
    except Nonsense:
        assert not data.startswith(b"E:")


TEXTS = st.text(max_size=300)
SHORT = st.text(max_size=6)
NATURES = st.sampled_from(["COR", "RAN", "RAM", "RRR"])


@given(
    st.builds(SetCustomer, st.sampled_from(["CC", "PM"]), SHORT, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)
    | st.builds(OpenInvoice, st.sampled_from(["FV", "FA"]), SHORT, SHORT, st.just("TTC"), SHORT, SHORT, TEXTS, NATURES, SHORT)
    | st.builds(
        add_item, TEXTS, st.just("B"), st.just(1800), st.just(10**12), st.just(10**14), st.just(10**12),
        st.just("LOCBIE"), TEXTS, st.just(5000), st.sampled_from([0, 100]), TEXTS,
    )
    | st.builds(AddComment, st.just("A"), TEXTS)
)  # fmt: skip
def test_any_text_fits_a_frame(command) -> None:
    """Texts of any length and any characters make a frame that the codec takes."""
    data = command.encode()
    assert len(data) <= MAX_REQUEST_DATA
    encode(Request(0x20, command.cmd, data))


def test_what_must_not_be_cut_is_not_sent_cut() -> None:
    """An invoice number that does not fit is an error before anything is sent; texts around it give way first."""
    number = "F" * 170
    whole = OpenInvoice("FV", number, "00084440Y", "TTC", "1", "1", "Awa " * 50).encode()
    assert whole.endswith(number.encode())
    assert len(whole) == MAX_REQUEST_DATA
    with pytest.raises(Unsendable, match="241 bytes that must not be cut do not fit into a frame's 219"):
        OpenInvoice("FV", "F" * 219, "00084440Y", "TTC", "1", "1", "Awa").encode()


@pytest.mark.parametrize(
    ("command", "data"),
    [
        (SetCustomer("CC", name="Awa"), "CC,,Awa,,,,"),
        (SetCustomer("PC", "1", "A,B", "Rue 1", "70", "a@b.bf", "R1"), "PC,1,A^x2c;B,Rue 1,70,a@b.bf,R1"),
        (
            OpenInvoice("EA", "N,1", "00084440Y", "HT", "1", "1", "Awa", "RAM", "EL02000015-1-7"),
            "1,Awa,00084440Y,EA,RAM,EL02000015-1-7,HT,1,N^x2c;1",
        ),
        (ITEM, "Riz 25kg\tLOCBIE,B18.00%15000\t15000.00*1.000"),
        (
            add_item("Boisson", "B", 1800, 2218, 105000, 2000, "LOCBIE", "", 5000, 100, "Taxe boisson"),
            "Boisson\tLOCBIE,B18.00%2218\t1050.00*2.000;T50,100,Taxe boisson",
        ),
        (
            add_item("A\nB", "A", 0, 1, 10, 10005, "IMPSER", "C,1", 33, 1),
            "A^xd;B\nC^x2c;1\tIMPSER,A0.00%1\t0.10*10.005;T0.33,1",
        ),
        (msgspec.structs.replace(ITEM, amount=10, cents=99), "Riz 25kg\tLOCBIE,B18.00%10.99\t15000.00*1.000"),
        (AddComment("H", "x\ty"), "H,x y"),
        (ReadTaxpayer(5), "I5"),
    ],
)
def test_requests_are_written_as_the_page_shows(command, data: str) -> None:
    """The examples of section 3, and what they leave open: escapes, item code, specific tax."""
    assert command.encode().decode() == data


def test_the_state_with_and_without_a_last_invoice() -> None:
    """22 fields, 27 of which five are empty or zeros, or 27 with the last invoice; a comma for the point makes more of them; dashes leave the code."""
    blank = (",,,,", ",,,,0.00", f"{'0' * 14},,,,0")
    for text in (f"{HEAD},{RATES}", *(f"{HEAD},{none},{RATES}" for none in blank)):
        comma = text.replace("10.0,", "10,").replace(".", ",")
        for written in (text, comma, comma.replace("0,00,18", "0,18")):
            state = understand(ReadState(), written.encode())
            assert (state.last, state.tc, state.fvc, state.frc, state.rates) == (None, 13, 7, 2, RATES_READ), written
    state = understand(ReadState(), f"{HEAD},{LAST},{RATES}".encode())
    assert state.last == LastInvoiceReply("20260731092959", "FV", "TESTFACT0123456789ABCDEF", "F,6", 590)
    assert (state.nim, state.ifu, state.time, state.rates) == (
        "EL02000015-1", "00084440Y", "20260731093000", RATES_READ,
    )  # fmt: skip
    assert understand(ReadState(), f"{HEAD},{RATES}".replace("-1", "").encode()).nim == "EL02000015"
    state = understand(ReadState(), f"{HEAD},{','.join(['0.00'] * 16)}".encode())
    assert (state.last, state.rates) == (None, (0,) * 16)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("EL02000015-1", "mysterious"),
        (",13,", ",-13,"),
        ("18.00", "x"),
        (RATES, f"{RATES.rpartition(',')[0]},x"),
        (f",13,7,2,{LAST},{RATES}", ""),
        ("F^x2c;6", "A,B,C,D,6"),
    ],
)
def test_a_state_that_cannot_be_read_is_nonsense(good: str, bad: str) -> None:
    """A wrong NIM, counter or rate, no counters at all, or a number with four commas that nobody escaped: what exactly-once rests on is an error, never guessed at."""
    text = f"{HEAD},{LAST},{RATES}"
    understand(ReadState(), text.encode())
    assert good in text
    with pytest.raises(Nonsense):
        understand(ReadState(), text.replace(good, bad, 1).encode())


OURS = ("20260731092959", "FV", "TESTFACT0123456789ABCDEF", "F,6", 590)


@pytest.mark.parametrize(
    ("good", "other", "last"),
    [
        ("590.00", "590,00", OURS),
        ("590.00", "590", OURS),
        ("590.00", "590,05", OURS),
        ("590.00", " 000590 ", OURS),
        ("F^x2c;6", "F,6", OURS),
        ("F^x2c;6", "F^x2c;6  ", OURS),
        ("FV", "fv ", OURS),
        ("TEST-FACT-0123-4567-89AB-CDEF", "TESTFACT0123456789ABCDEF", OURS),
        ("20260731092959", "2026-07-31 09:29:59", OURS),
        (RATES, RATES + ",0", OURS),
        (RATES, RATES + ",more,and more", OURS),
        (RATES, RATES + ",a,b,c,d,e,f", OURS),
        ("F^x2c;6,590.00", "A,B,6,590,00", (*OURS[:3], "A,B,6", 590)),
        ("F^x2c;6,590.00", "A,B,C,6,590,00", (*OURS[:3], "A,B,C,6", 590)),
        (f"F^x2c;6,590.00,{RATES}", f"7,0,18,{RATES}", (*OURS[:3], "7,0", 18)),
        (RATES, RATES.replace("10.0,", "10,").replace(".", ","), OURS),
        (f"590.00,{RATES}", f"590,00,{RATES.replace('10.0,', '10,').replace('.', ',')}", OURS),
        (f"590.00,{RATES}", "590,0,18,10,0,0,18,10,0,0,0,0,10,10,0,0,0,0", OURS),
        (f"F^x2c;6,590.00,{RATES}", f"F,6,590.50,{RATES},more", (*OURS[:4], 591)),
        (RATES, RATES.replace("0.00,", ",", 1), OURS),
        ("590.00", "590.50", (*OURS[:4], 591)),
        ("590.00", "gratis", (*OURS[:4], 0)),
        (f"590.00,{RATES}", f"gratis,{RATES},0", (*OURS[:4], 0)),
        ("20260731092959", "", ("", *OURS[1:])),
        ("TEST-FACT-0123-4567-89AB-CDEF", "", (*OURS[:2], "", *OURS[3:])),
        ("FV", "RZ", (OURS[0], "RZ", *OURS[2:])),
        ("FV", "Facture de vente", (OURS[0], "FACTURE DE VENTE", *OURS[2:])),
    ],
)
def test_a_habit_of_the_state_is_no_nonsense(good: str, other: str, last: tuple[object, ...]) -> None:
    """Decimals, commas (also in a number or a total that nobody escaped), blanks, capitals, fields that we do not know, and a
    last invoice of somebody else with cents, without time or code, or of a type of its own: counters and rates are read in each."""
    text = f"{HEAD},{LAST},{RATES}"
    assert good in text
    state = understand(ReadState(), text.replace(good, other, 1).encode())
    assert (state.nim, state.tc, state.fvc, state.frc, state.rates) == ("EL02000015-1", 13, 7, 2, RATES_READ)
    assert (state.last.time, state.last.type, state.last.code, state.last.number, state.last.total) == last


def test_a_state_with_fields_missing_at_its_end_or_an_odd_clock() -> None:
    """The rates of the reserved groups may be left out, and all others; a clock that cannot be read is no reason to do without the machine."""
    short = understand(ReadState(), f"{HEAD},{LAST},{RATES.rpartition(',')[0]}".encode())
    assert (short.rates, short.last and short.last.total) == (RATES_READ[:-1], 590)
    assert understand(ReadState(), f"{HEAD},{RATES},more".encode()).rates == RATES_READ
    comma = f"{HEAD},{LAST.replace('.', ',')},{RATES.replace('10.0,', '10,').replace('.', ',').rpartition(',')[0]}"
    read = understand(ReadState(), comma.encode())
    assert (read.rates, read.last and read.last.number, read.last and read.last.total) == (RATES_READ[:-1], "F,6", 590)
    new = understand(ReadState(), f"{HEAD},,,,,,{RATES.rpartition(',')[0]}".encode())
    assert (new.rates, new.last) == (RATES_READ[:-1], None)
    other = understand(
        ReadState(), f"{HEAD},,,,17,590,{RATES}".encode()
    )  # another program's: digits alone, and no time
    assert other.last is not None
    assert (other.last.number, other.last.total, other.rates) == ("17", 590, RATES_READ)
    digits = understand(ReadState(), f"{HEAD},20260731092959,1,123,17,590,0,18".encode())
    assert (digits.last, digits.rates) == (LastInvoiceReply("20260731092959", "1", "123", "17", 590), (0, 1800))
    fifteen = f"{HEAD},{LAST},{'0,18,10,0,' * 3}0,0,18"  # what follows is unknown, and no cents of the last rate
    assert understand(ReadState(), f"{fifteen},05,more".encode()).rates == (0, 1800, 1000, 0) * 3 + (0, 0, 1800)
    for some in range(1, 16):
        few = understand(ReadState(), f"{HEAD},{','.join(RATES.split(',')[:some])}".encode())
        assert (few.last, few.rates) == (None, RATES_READ[:some])
    assert understand(ReadState(), HEAD.encode()).rates == ()
    odd = understand(ReadState(), f"{HEAD.replace('20260731093000', '--:--')},{RATES}".encode())
    assert (odd.time, odd.last, odd.rates) == ("", None, RATES_READ)


@pytest.mark.parametrize(
    ("command", "text", "value"),
    [
        (ReadServerLink(), "12,15,20260731080000,CON", ServerLinkReply(12, 15, "20260731080000", "CON", "")),
        (ReadServerLink(), "12,15,,DIS,404, not found", ServerLinkReply(12, 15, "", "DIS", "404, not found")),
        (ReadServerLink(), "12,15", ServerLinkReply(12, 15, "", "", "")),
        (ReadServerLink(), "12,15,never,huh ", ServerLinkReply(12, 15, "", "HUH", "")),
        (ReadTaxpayer(1), "I1,12, rue^x2c; B", "12, rue, B"),
        (ReadTaxpayer(1), "12 rue B", "12 rue B"),
        (ReadTaxpayer(1), "", ""),
        (ReadTaxpayer(1), "I1: rue I1: B", "rue I1: B"),
        (ReadTaxpayer(1), "i1:12 rue B ", "12 rue B"),
        (OPEN, "7,12,1", Opened(7, 12)),
        *((command, text, Done(text)) for command, text in ((OPEN, "7"), (OPEN, ""), (ITEM, "OK"))),
        *(
            (command, text, Done(text))
            for command in (SetCustomer(), AddComment("A", "x"), CancelInvoice())
            for text in ("", "OK", "1,2")
        ),
        (ITEM, "15000,12711.86,2288.14,0", LineTotals(1500000, 1271186, 228814, 0)),
        (ITEM, "15000,12712,2288", LineTotals(1500000, 1271200, 228800, 0)),
        (ITEM, "15000,12711,86,2288,14,0", LineTotals(1500000, 1271100, 8600, 228800)),
        *((Pay("E", 1), text, Balance(500, 0)) for text in ("D500", "d 500,00")),
        *((Pay("E", 1), text, Balance(0, 0)) for text in ("R0.00", "R")),
        (Pay("E", 1), "R20.0", Balance(0, 20)),
        *((Pay("E", 1), text, Done(text)) for text in ("OK", "")),
        (
            ReadSubtotal(),
            ",".join(map(str, range(34))),
            SubtotalReply(0, tuple(range(100, 1700, 100)), tuple(range(1700, 3300, 100)), 3300),
        ),
        *((CloseInvoice(1), text, Pending("attente")) for text in ("P:attente", " p: attente")),
        (
            CloseInvoice(1),
            "r: 7,0013,fv,2026-07-31 09:30:00,el02000015-1, 00084440Y ,TEST FACT 0123,F1 ",
            Closed(7, 13, "FV", "20260731093000", "EL02000015-1", "00084440Y", "TESTFACT0123", "F1"),
        ),
        (
            CloseInvoice(1),
            ",13,X,20260731093000,,,TF,F1,more",
            Closed(None, 13, "X", "20260731093000", "", "", "TF", "F1,more"),
        ),
    ],
)
def test_replies_are_read_in_each_form(command, text: str, value) -> None:
    """Optional fields, prefixes and decimals that the page calls A or B, and habits: other case, blanks, fields too many or missing. A reply that nobody
    decides by is taken whatever it is: C3h, 36h and the cancelling 38h ask for nothing more than "not E:"."""
    assert understand(command, text.encode()) == value


GROUPS = ["0", "15000", *["0"] * 14]


def subtotal(total: str, groups: list[str], vat: str, *more: str) -> bytes:
    return ",".join([total, *groups, "0", vat, *["0"] * 14, *more]).encode()


@pytest.mark.parametrize(
    ("data", "vat"),
    [
        (subtotal("15000", GROUPS, "2288", "0"), 228_800),
        (subtotal("15000.00", GROUPS, "2288.14", "0"), 228_814),
        (subtotal("15000", GROUPS, "2288,14", "0"), 228_814),
        (subtotal("15000,00", ["0", "15000,00", *["0"] * 14], "2288,14", "0"), 228_814),
        (subtotal("15 000", ["0", "15 000", *["0"] * 14], "2 288", "0"), 228_800),
        (subtotal("15,000", ["0", "15,000", *["0"] * 14], "2,288", "0"), 228_800),
        (subtotal("15,000.00", ["", "15,000.00", *[""] * 14], "2,288.14", ""), 228_814),
        (subtotal("15000^x2c;00", GROUPS, "2288^x2c;14", "0"), 228_814),
        (subtotal("15000", GROUPS, "2288"), 228_800),
        (subtotal("15000", GROUPS, "2288", "0", "7", "x"), 228_800),
        (subtotal("15000,00", ["0", "15000,00", *["0"] * 14], "2288,14", "0", "0", "x"), 228_814),
        (subtotal("15000,00", ["0", "15000,00", *["0"] * 14], "2288,14"), 228_814),
        (",".join(["15000,00", "0,00", "15000,00", *["0,00"] * 15, "2288,14", *["0,00"] * 15]).encode(), 228_814),
    ],
)
def test_a_subtotal_in_each_spelling(data: bytes, vat: int) -> None:
    """Decimals, commas between commas, thousands, empty for zero, no specific tax, fields that we do not know (decision 32)."""
    read = understand(ReadSubtotal(), data)
    specific = None if data.count(b",") == 32 else 0  # left out
    assert read == SubtotalReply(1_500_000, (0, 1_500_000, *[0] * 14), (0, vat, *[0] * 14), specific)


@pytest.mark.parametrize(
    ("habits", "command", "data"),
    [
        (MachineHabits(walk_in="fields"), SetCustomer(), b"CC,,,,,,"),
        (MachineHabits(close_total="whole"), CloseInvoice(15000), b"15000"),
        (MachineHabits(code_page="cp1252"), AddComment("A", "Né"), "A,Né".encode("cp1252")),
        (MachineHabits(name_bytes=6), ITEM, b"Riz 25\tLOCBIE,B18.00%15000\t15000.00*1.000"),
        (MachineHabits(name_bytes=6), add_item("Caféé", "B", 0, 1, 1, 1), "Café\tLOCBIE,B0.00%1\t0.01*0.001".encode()),
    ],
)
def test_a_machine_is_talked_to_as_it_wants(habits: MachineHabits, command, data: bytes) -> None:
    """Each of the settings changes what goes over the line; a name is cut at a character."""
    assert command.encode(habits) == data
    assert command.encode() != data


@pytest.mark.parametrize("prefix", ["", "R:"])
@pytest.mark.parametrize(("suffix", "number"), [("", ""), (",F1", "F1"), (",F^x2c;1,2", "F,1,2"), (",", "")])
def test_a_certification_is_read_with_and_without_its_options(prefix: str, suffix: str, number: str) -> None:
    """`R:` before it, FN behind it and dashes in the code are all optional."""
    closed = understand(CloseInvoice(590), f"{prefix}{CLOSED}{suffix}".encode())
    assert closed == Closed(
        7, 13, "FV", "20260731093000", "EL02000015-1", "00084440Y", "TESTFACT0123456789ABCDEF", number
    )


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (ReadServerLink(), "12"),
        (ReadServerLink(), "twelve,15,20260731080000,CON"),
        (ReadSubtotal(), ",".join(["0"] * 32)),
        (ReadSubtotal(), ",".join(["x"] * 34)),
        (ReadSubtotal(), ",".join(["-0.5"] * 34)),
        (CloseInvoice(1), CLOSED.replace("TEST-FACT0123456789ABCDEF", "")),
        (CloseInvoice(1), CLOSED.replace("20260731093000", "today")),
        (CloseInvoice(1), CLOSED.replace("13", "")[:2]),
        (CloseInvoice(1), CLOSED.rpartition(",")[0]),
        (CloseInvoice(1), "R:"),
    ],
)
def test_other_forms_are_nonsense(command, text: str) -> None:
    """What is needed and is not there, or is no number, is not read as something else."""
    with pytest.raises(Nonsense):
        understand(command, text.encode())


@pytest.mark.parametrize(
    ("data", "text"), [("E:Montant^x2c; refusé!".encode("latin-1"), "Montant, refusé!"), (b" e: non", "non")]
)
def test_a_refusal_in_another_encoding_is_still_a_refusal(data: bytes, text: str) -> None:
    """Text that is not UTF-8 is readable, and escapes in it are undone; so is one in small letters."""
    with pytest.raises(Refused) as refused:
        understand(ITEM, data)
    assert refused.value.text == text
