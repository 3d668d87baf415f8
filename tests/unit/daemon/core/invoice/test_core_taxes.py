"""VAT per group, and the withholding on goods (fiscal-rules.md, decision 24)."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.core_samples import RATES, body, item, read
from support.vat import PUT_ON, TAKEN_OUT

from daemon.core.invoice.invoice import Psvb, TaxLine
from daemon.core.invoice.taxes import percent, tax_line

AMOUNTS = st.integers(1, 10**12)
RATE = st.integers(0, 10_000)


@pytest.mark.parametrize(("ttc", "rate", "ht", "tva"), TAKEN_OUT)
def test_vat_is_taken_out_of_a_total_with_vat(ttc, rate, ht, tva):
    """`ht = ttc × 100 / (100 + rate)` rounded half up, `tva = ttc - ht`; 3 at 100 % is 1.5, so 2."""
    assert tax_line("B", rate, ttc, "TTC") == TaxLine("B", rate, ht, tva, ttc)


@pytest.mark.parametrize(("ht", "rate", "tva"), PUT_ON)
def test_vat_comes_on_top_of_a_total_without(ht, rate, tva):
    """HT mode: `tva = ht × rate` rounded half up; 10 % of 25 is 2.5, so 3."""
    assert tax_line("C", rate, ht, "HT") == TaxLine("C", rate, ht, tva, ht + tva)


@given(AMOUNTS, RATE, st.sampled_from(["TTC", "HT"]))
def test_without_and_vat_are_the_whole(amount, rate, mode):
    """`ht + tva = ttc`, always, and VAT is within half a franc of what it should be."""
    line = tax_line("B", rate, amount, mode)
    assert line.ht + line.tva == line.ttc
    assert abs(line.tva - Fraction(line.ht * rate, 10_000)) <= 1
    assert (line.ttc if mode == "TTC" else line.ht) == amount


@pytest.mark.parametrize("group", RATES)
def test_every_group_has_its_own_line(group):
    """Groups A to P, each at the machine's rate, computed on the group's total and not line by line."""
    invoice = read(body(item(taxGroup=group, amountTtc=333), item(taxGroup=group, amountTtc=334)))
    assert invoice.taxes == (tax_line(group, RATES[group], 667, "TTC"),)


def test_groups_are_sorted_and_those_that_do_not_occur_left_out():
    """One line a group."""
    invoice = read(body(*(item(taxGroup=group, amountTtc=100) for group in "PBAB")))
    assert [(line.group, line.ttc) for line in invoice.taxes] == [("A", 100), ("B", 200), ("P", 100)]
    assert invoice.total_ttc == 400


@pytest.mark.parametrize(("group", "rate", "amount"), [("A", 200, 254), ("B", 100, 127), ("C", 20, 25), ("D", 0, 0)])
def test_withholding_is_a_share_of_the_goods_without_vat(group, rate, amount):
    """Of 12 712 F: 2 %, 1 %, 0.2 %, 0 %, rounded half up."""
    assert read(body(psvbGroup=group)).psvb == Psvb(group, 12712, rate, amount)


def test_services_are_not_withheld_on():
    """Its base are the goods, local and imported; a service has none."""
    goods = item(taxGroup="A", amountTtc=1000, itemType="IMPBIE")
    service = item(taxGroup="A", amountTtc=500, itemType="LOCSER")
    assert read(body(goods, service, psvbGroup="A")).psvb == Psvb("A", 1000, 200, 20)
    assert read(body(service, psvbGroup="A")).psvb == Psvb("A", 0, 200, 0)
    assert read(body()).psvb is None


@pytest.mark.parametrize(("rate", "shown"), [(1800, "18"), (20, "0.2"), (1750, "17.5"), (0, "0")])
def test_rates_are_shown_in_percent(rate, shown):
    """Whole where they are whole."""
    assert str(percent(rate)) == shown
