"""The simulator's own reading of command data (protocol 2 and 3)."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.machine import command_data
from simulator.machine.command_data import MachineRefusal


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a\rb", "a^xa;b"),
        ("a\nb", "a^xd;b"),
        ("a,b", "a^x2c;b"),
        ("a<b>c", "a^lt;b^gt;c"),
        ("R&D", "R^amp;D"),
        ("2^3", "2^3"),
        ("&lt;", "^amp;lt;"),
    ],
)
def test_escapes_of_the_protocol(text, escaped):
    """The six escapes of section 2, both ways; a lone ^ stays, and an escape is undone once."""
    assert command_data.escape(text) == escaped
    assert command_data.unescape(escaped) == text


@pytest.mark.parametrize("raw", ["a,b", "a<b", "a&b", "a\nb", "a\tb"])
def test_what_should_have_been_escaped_is_refused(raw):
    """A free text with a raw special character is a fault of the till."""
    with pytest.raises(MachineRefusal, match="not escaped"):
        command_data.unescape(raw)


def test_the_protocols_own_item_examples():
    """Both examples of protocol 3 are read to the franc. A code stands behind LF, the quantity is 1 when it is left out."""
    rice = command_data.parse_line(b"Riz 25kg\tLOCBIE,B18.00%15000\t15000.00*1.000")
    assert rice == command_data.ItemData("Riz 25kg", "", "LOCBIE", "B", 1800, 15000, 1_500_000, 1000)
    drink = command_data.parse_line(b"Boisson\tLOCBIE,B18.00%2218\t1050.00*2.000;T50,100,Taxe boisson")
    assert drink == command_data.ItemData(
        "Boisson", "", "LOCBIE", "B", 1800, 2218, 105_000, 2000, 5000, 10_000, "Taxe boisson"
    )
    line = command_data.parse_line("Pâté ^x2c; riz\nP-01\tIMPSER,A0.00%500\t500".encode())
    assert (line.name, line.code, line.quantity, line.rate) == ("Pâté , riz", "P-01", 1000, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Riz\tLOCBIE,B18.00%15000",
        b"Riz\tLOCBIE,B18.00%15000\t15000\textra",
        b"\tLOCBIE,B18.00%15000\t15000",
        b"Riz\tLOCAL,B18.00%15000\t15000",
        b"Riz\tLOCBIE,Q18.00%15000\t15000",
        b"Riz\tLOCBIE,B 18.00%15000\t15000",
        b"Riz\tLOCBIE,B18.000%15000\t15000",
        b"Riz\tLOCBIE,B18.00%15000.00\t15000",
        b"Riz\tLOCBIE,B18.00%-5\t15000",
        b"Riz\tLOCBIE,B18.00%15000\t15000.001",
        b"Riz\tLOCBIE,B18.00%15000\t15000*1.0001",
        b"Riz\tLOCBIE,B18.00%15000\t15000;50,100",
        b"Riz\tLOCBIE,B18.00%15000\t15000;T50",
        b"Riz\tLOCBIE,B18.00%15000\t1e4",
        b"Riz\nA\nB\tLOCBIE,B18.00%15000\t15000",
        b"Riz\xff\tLOCBIE,B18.00%15000\t15000",
        "Riz\tLOCBIE,B18.00%١٥٠٠٠\t15000".encode(),
    ],
)
def test_items_that_cannot_be_read_are_refused(data):
    """A line that is not exactly in the format of 31h is a syntax error, and never an exception of another kind."""
    with pytest.raises(MachineRefusal):
        command_data.parse_line(data)


@given(st.binary(max_size=219), st.sampled_from(["line", "customer", "opening", "payment", "comment"]))
def test_any_bytes_give_a_value_or_a_refusal(data, what):
    """No command data brings the parser down."""
    with contextlib.suppress(MachineRefusal):
        getattr(command_data, f"parse_{what}")(data)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1500, "15"), (1550, "15.5"), (1555, "15.55"), (5, "0.05"), (1005, "10.05")]
)
def test_amounts_go_out_without_needless_decimals(value, text):
    """Section 1: what does not fit otherwise has to be short."""
    assert command_data.format_hundredths(value) == text
    assert command_data.parse_number(text, 2) == value


def test_references_of_credit_notes():
    """`<NIM>-<FVC>`, with or without the activation counter in the NIM, or RRR."""
    assert command_data.parse_reference("EL02000015-1-42") == ("EL02000015", 42)
    assert command_data.parse_reference("EL02000015-42") == ("EL02000015", 42)
    assert command_data.parse_reference("RRR") is None
