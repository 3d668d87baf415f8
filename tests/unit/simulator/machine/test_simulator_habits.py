"""What each habit changes of what the machine answers, and that it changes nothing of what it counts."""

import pytest
from support.simulator.simulator_till import RICE, Till

THIRD = "Savon\tLOCBIE,B18.00%40\t40.00*1.000"


def test_fc_may_count_each_type_by_itself():
    """FVC goes on for all sales; FC of 38h and C0h is that of the type."""
    till = Till(fc_per_type=True)
    assert [till.certify(f"F-{n}", kind=kind)[0] for n, kind in enumerate(("FV", "EV", "FV", "FT"))] == [
        "1", "1", "2", "1",
    ]  # fmt: skip
    assert till.state()[3:6] == ["4", "4", "0"]


def test_exports_may_be_told_in_another_way():
    """EV and ET move TC alone, with a word of its own for the type; C1h has no code."""
    till = Till(fvc_local=True, odd_types=True, no_codes=True)
    assert [till.certify(f"F-{n}", kind=kind)[2] for n, kind in enumerate(("FV", "ET", "FT", "EV"))][3] == "EXPORT"
    assert till.state()[3:6] == ["4", "2", "0"]
    assert till.state()[7:9] == ["EXPORT", ""]


@pytest.mark.parametrize(
    ("habits", "lines", "total", "group", "vat"),
    [
        ({}, (RICE,), "15000", "15000", "2288"),
        ({"vat": "up"}, (RICE,), "15000", "15000", "2289"),
        ({"vat": "down"}, (RICE,), "15000", "15000", "2288"),
        ({"vat": "cents"}, (RICE,), "15000", "15000", "2288.14"),
        ({"vat_per_line": True}, (THIRD,) * 10, "400", "400", "60"),
        ({"vat_per_line": True, "vat": "up"}, (THIRD,) * 10, "400", "400", "70"),
        ({"groups_without_vat": True}, (RICE,), "15000", "12712", "2288"),
        ({"numbers": "decimals"}, (RICE,), "15000.00", "15000.00", "2288.00"),
        ({"numbers": "spaces"}, (RICE,), "15 000", "15 000", "2 288"),
        ({"numbers": "zeros"}, (RICE,), "0015000", "0015000", "002288"),
    ],
)
def test_the_subtotal_in_each_way(habits, lines, total, group, vat):
    """33h: the total, group B's and its VAT."""
    till = Till(**habits)
    till.enter("F-1", *lines)
    fields = till.take(0x33).split(",")
    assert (fields[0], fields[2], fields[18], len(fields)) == (total, group, vat, 34)


def test_the_subtotal_in_other_fields():
    """The specific tax told or not, a comma that cuts the fields of 33h and C1h, nothing where nothing was sold."""
    for habits, expected in (({}, "100"), ({"untold_specific": True}, "0")):
        till = Till(**habits)
        till.enter("F-1", "Riz\tLOCBIE,B18.00%2218\t1050.00*2.000;T50,100")
        fields = till.take(0x33).split(",")
        assert (fields[0], fields[33]) == ("2218", expected)
    comma, empty = Till(numbers="comma"), Till(numbers="empty")
    for till in (comma, empty):
        till.enter("F-1")
    assert comma.take(0x33).startswith("15000,00,0,15000,00,0,")
    assert ",18,00,10,00,0," in comma.take(0xC1)
    assert empty.take(0x33) == "15000,,15000," + "," * 14 + ",2288" + "," * 15


def test_fields_at_the_end_and_texts():
    """One fewer, two more; blanks and capitals; times with separators."""
    assert len(Till(fields="fewer").state()) == 26
    assert Till(fields="more").state()[-2:] == ["0", "NEUF"]
    padded = Till(texts="padded", close_number=True)
    assert padded.certify("f-1")[-1] == "f-1  "
    capitals = Till(texts="capitals")
    capitals.certify("f-1")
    assert capitals.state()[9] == "F-1"
    assert Till(times="dated").state()[2] == "2026-03-02 09:00:00"
    assert Till(clock_offset=3600).state()[2] == "20260302100000"


def test_names_in_another_code_page_come_back_as_they_went():
    """CP1252 in both directions."""
    machine = Till(code_page="cp1252", close_number=True).machine
    assert "Kwamé".encode("cp1252") in machine.execute(0x2B, b"I2").data
    request = "1,Zoé,00084440Y,FV,TTC,1,F-é".encode("cp1252")
    assert not machine.execute(0xC0, request).data.startswith(b"E:")
    assert machine.opened.opening.number == "F-é"


def test_what_a_machine_may_insist_on():
    """The customer written out, 38h without decimals, short names: else it refuses."""
    till = Till(full_customer=True, whole_close=True, name_most=8)
    assert till.ask(0xC3).startswith("E:")
    till.take(0xC3, "CC,,,,,,")
    till.enter_and_pay("F-1")
    assert till.ask(0x38, "15000.00").startswith("E:")
    till.take(0x38, "15000")
    till.take(0xC0, "1,Awa,00084440Y,FV,TTC,1,F-2")
    assert till.ask(0x31, "Riz longs\t" + RICE.partition("\t")[2]) == "E:Name too long"
    till.take(0x31, "Riz long\t" + RICE.partition("\t")[2])
