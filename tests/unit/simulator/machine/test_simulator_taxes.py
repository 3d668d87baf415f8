"""The machine's arithmetic, against fractions."""

import contextlib

import pytest

from simulator.machine.command_data import ItemData, MachineRefusal
from simulator.machine.invoice import Share, check_line, split


def test_in_ht_mode_cents_of_vat_do_not_reach_the_total():
    """1003 at 18 % is 180.54, and the total 1184; a specific tax of 100 may bear none. 30 × 33.49 is 1004.70, with 18 % 1185.55: 1186, of which 1005 are before tax."""
    assert split(100_300, 1800, "HT", "cents") == Share(100_300, 18_054, 118_400)
    assert split(100_000, 1800, "HT", "half-up", 10_000) == Share(100_000, 16_200, 116_200)
    assert split(100_470, 1800, "HT") == Share(100_500, 18_100, 118_600)


def line(amount: int, price: int, quantity: int = 1000, unit_tax: int | None = None, tax: int = 0) -> ItemData:
    return ItemData("x", "", "LOCBIE", "B", 1800, amount, price, quantity, unit_tax, tax)


@pytest.mark.parametrize(
    ("entered", "mode", "refusal"),
    [
        (line(15_000, 1_500_000), "TTC", ""),
        (line(15_001, 1_500_000), "TTC", ""),  # within 1
        (line(14_999, 1_500_000), "TTC", ""),
        (line(100, 3333, 3000), "TTC", ""),  # 99.99
        (line(2218, 105_000, 2000, 5000, 10_000), "TTC", ""),  # 2100 + 100 × 1.18
        (line(2200, 105_000, 2000, 5000, 10_000), "HT", ""),  # 2100 + 100
        (line(15_002, 1_500_000), "TTC", "Wrong amount"),
        (line(14_998, 1_500_000), "TTC", "Wrong amount"),
        (line(101, 9999, 1000), "TTC", "Wrong amount"),  # 99.99 + 1.01
        (line(0, 1), "TTC", "not above 0"),
        (line(1, 0), "TTC", "not above 0"),
        (line(1, 100, 0), "TTC", "not above 0"),
        (line(2200, 105_000, 2000, 5000, 10_000), "TTC", "No amount!"),
        (line(2218, 105_000, 2000, 5000, 10_000), "HT", "No amount!"),
        (line(2218, 105_000, 2000, 5000, 10_001), "TTC", "No amount!"),  # 50 × 2 is not 100.01
        (line(1050, 105_000, 1000, 0, 0), "TTC", "No amount!"),
    ],
)
def test_lines_that_add_up_are_taken(entered, mode, refusal):
    """PRICE × QTY within 1, plus the specific tax by the mode; else the machine's own words, also for another rate."""
    with pytest.raises(MachineRefusal, match=refusal) if refusal else contextlib.nullcontext():
        check_line(entered, 1800, mode)
    with pytest.raises(MachineRefusal, match="Wrong tax rate"):
        check_line(line(15_000, 1_500_000), 1000, "TTC")
