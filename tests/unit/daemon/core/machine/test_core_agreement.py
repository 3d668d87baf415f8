"""Our arithmetic against the machine's subtotal, before anything is paid."""

from decimal import Decimal

import pytest
from support.core_samples import body, read

from daemon.core.errors import MachineNonsense
from daemon.core.invoice.invoice import TaxLine
from daemon.core.machine.agreement import agree, vat_habit
from daemon.core.machine.state import Subtotal

HT = {"priceMode": "HT"}
ITEM = {"name": "Riz", "taxGroup": "B", "unitPrice": 103, "quantity": 1}


def test_in_ht_mode_the_machine_s_total_counts_within_a_franc_an_item() -> None:
    """Decision 24: the largest payment carries the difference, and a warning says so."""
    agreed = agree(read(body(ITEM, pay=122, **HT)), Subtotal(121, (TaxLine("B", 1800, 103, 18, 121),), 0))
    assert (agreed.total_ttc, agreed.payments[0].amount, agreed.taxes[0].tva) == (121, 121, 18)
    assert [(warn.code, "121" in warn.message) for warn in agreed.warnings] == [("PAYMENT_ADJUSTED", True)]


def test_payments_that_were_adjusted_before_are_adjusted_once() -> None:
    """18 is paid, the sum of the lines with VAT; 19 is their total without (10 and 6), of which the machine makes 20: one warning, with what is certified."""
    items = [ITEM | {"unitPrice": Decimal(price), "amountTtc": amount} for price, amount in (("10.4", 12), ("5.5", 6))]
    ours = read(body(*items, pay=18, **HT))
    assert [warn.code for warn in ours.warnings].count("PAYMENT_ADJUSTED") == 1
    agreed = agree(ours, Subtotal(20, (TaxLine("B", 1800, 16, 4, 20),), 0))
    adjusted = [warn.message for warn in agreed.warnings if warn.code == "PAYMENT_ADJUSTED"]
    assert (len(adjusted), "20" in adjusted[0], agreed.payments[0].amount) == (1, True, 20)


@pytest.mark.parametrize(("kind", "base"), [("LOCBIE", 121), ("LOCSER", 0)])
def test_in_ht_mode_the_withholding_is_on_the_machine_s_total(kind: str, base: int) -> None:
    """What is claimed from the customer is what the machine certifies, so that is what a share is withheld of."""
    ours = read(body(ITEM | {"itemType": kind}, pay=122, psvbGroup="A", **HT))
    agreed = agree(ours, Subtotal(121, (TaxLine("B", 1800, 103, 18, 121),), 0))
    assert (agreed.psvb.base, agreed.psvb.amount) == (base, 2 if base else 0)


@pytest.mark.parametrize(
    ("own", "machine", "agrees"),
    [
        (0, 0, True),
        (0, None, True),
        (0, 100, False),
        (100, 100, True),
        (100, None, True),
        (100, 0, True),
        (100, 90, False),
    ],
)
def test_the_specific_tax_of_the_subtotal_is_ours_or_not_told(own: int, machine: int | None, agrees: bool) -> None:
    """A machine with another specific tax has another invoice; one without it has the same totals, which is a habit."""
    item = {"name": "Boisson", "taxGroup": "B", "unitPrice": 2218 - own * 118 // 100, "quantity": 1, "amountTtc": 2218}
    excise = {"specificTax": own, "specificTaxRate": own} if own else {}
    ours = read(body(item | excise, pay=2218))
    assert ours.specific_tax == own
    subtotal = Subtotal(2218, ours.taxes, machine)
    if agrees:
        assert agree(ours, subtotal) is ours
    else:
        with pytest.raises(MachineNonsense, match=f"specific tax {machine}"):
            agree(ours, subtotal)


def ttc(*amounts: int):
    return read(body(*({"name": "x", "taxGroup": "B", "amountTtc": amount} for amount in amounts), pay=sum(amounts)))


@pytest.mark.parametrize("tva", [2287, 2288, 2289])
def test_vat_is_the_machine_s_within_a_franc(tva: int) -> None:
    """Decision 32: 15 000 at 18 % may carry 2288 rounded, or rounded up or down; `ht + tva = ttc` holds, and nothing else changes."""
    ours = ttc(15_000)
    agreed = agree(ours, Subtotal(15_000, (TaxLine("B", 1800, 15_000 - tva, tva, 15_000),), 0))
    assert agreed.taxes == (TaxLine("B", 1800, 15_000 - tva, tva, 15_000),)
    assert (agreed.total_ttc, agreed.payments) == (15_000, ours.payments)
    assert (agreed is ours) is (tva == 2288)
    assert vat_habit(ours, agreed) == ("" if tva == 2288 else f"B {tva} for 2288")


@pytest.mark.parametrize(
    ("amounts", "tva", "agrees"),
    [
        *(([40] * 10, tva, tva in (60, 61, 62, 70)) for tva in (59, 60, 61, 62, 63, 69, 70, 71)),
        *(([40] * 20 + [45], tva, tva in (126, 127, 129, 147)) for tva in (125, 126, 127, 129, 131, 146, 147, 148)),
    ],
)
def test_vat_rounded_on_each_line_may_be_many_francs_away(amounts: list[int], tva: int, agrees: bool) -> None:
    """Ten lines of 40 at 18 %: 61 on the group; 60 when each line is rounded half up or down, 70 when up. Twenty, and one of 45: 129; 127 half up,
    126 down, 147 up. What nothing explains is nonsense."""
    ours, total = ttc(*amounts), sum(amounts)
    subtotal = Subtotal(total, (TaxLine("B", 1800, total - tva, tva, total),), 0)
    if agrees:
        assert agree(ours, subtotal).taxes[0].tva == tva
    else:
        with pytest.raises(MachineNonsense):
            agree(ours, subtotal)


@pytest.mark.parametrize(
    ("mode", "total", "ttc"),
    [("HT", 124, 124), ("HT", 122, 121), ("HT", 122, 103), ("TTC", 121, 121)],
)
def test_a_subtotal_that_is_too_far_off_or_does_not_add_up_is_not_paid(mode: str, total: int, ttc: int) -> None:
    """Two francs for one item, groups that do not come to the total, or any difference of a total in TTC mode."""
    ours = read(body(ITEM, pay=122, **HT) if mode == "HT" else body({"name": "x", "taxGroup": "B", "amountTtc": 122}))
    with pytest.raises(MachineNonsense):
        agree(ours, Subtotal(total, (TaxLine("B", 1800, 103, ttc - 103, ttc),), 0))


@pytest.mark.parametrize(
    ("vat", "agrees"),
    [((19, 10), True), ((18, 10), True), ((20, 9), True), ((17, 10), False), ((0, 0), False), ((29, 0), False)],
)
def test_in_ht_mode_a_group_s_vat_is_the_machine_s_within_a_franc_an_item(vat: tuple[int, int], agrees: bool) -> None:
    """Decision 32, in both price modes: 103 at 18 % and 103 at 10 % carry 19 and 10. A machine that has understood another group, or tells
    no VAT, comes to the same total."""
    ours = read(body(ITEM, {**ITEM, "taxGroup": "C"}, pay=235, **HT))
    assert [(line.tva, line.ttc) for line in ours.taxes] == [(19, 122), (10, 113)]
    taxes = tuple(
        TaxLine(line.group, line.rate, line.ttc - tva, tva, line.ttc) for line, tva in zip(ours.taxes, vat, strict=True)
    )
    if agrees:
        assert agree(ours, Subtotal(235, taxes, 0)).taxes == taxes
    else:
        with pytest.raises(MachineNonsense):
            agree(ours, Subtotal(235, taxes, 0))


def test_in_ht_mode_a_group_s_total_is_ours_within_a_franc_an_item() -> None:
    """Three francs from one group to the other are two other groups, although the total is the same."""
    ours = read(body(ITEM, {**ITEM, "taxGroup": "C"}, pay=235, **HT))
    taxes = TaxLine("B", 1800, 106, 19, 125), TaxLine("C", 1000, 100, 10, 110)
    with pytest.raises(MachineNonsense):
        agree(ours, Subtotal(235, taxes, 0))


def off_by(difference: int, *amounts: int):
    """Two items without VAT in their price, paid by `amounts`; the machine's total is that much more."""
    paid = {"payments": [{"method": method, "amount": amount} for method, amount in zip("EMC", amounts, strict=False)]}
    ours = read({**body(ITEM, ITEM, **HT), **paid})
    total = ours.total_ttc + difference
    return ours, Subtotal(total, (TaxLine("B", 1800, 206, total - 206, total),), 0)


@pytest.mark.parametrize(("difference", "agrees"), [(2, True), (-2, True), (3, False), (-3, False)])
def test_each_item_s_price_may_bring_a_franc(difference: int, agrees: bool) -> None:
    """Two items, two francs either way; the largest payment makes up for it, and the others are as they were. One more is another invoice."""
    ours, subtotal = off_by(difference, 50, 150, 43)
    if agrees:
        assert [payment.amount for payment in agree(ours, subtotal).payments] == [50, 150 + difference, 43]
    else:
        with pytest.raises(MachineNonsense):
            agree(ours, subtotal)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [("B", 15_000), ("C", 0)],
        [("C", 15_000)],
        [("B", 15_001)],
    ],
)
def test_each_group_s_total_is_ours(lines: list[tuple[str, int]]) -> None:
    """Another group, one more, none, or one with another total is another invoice, although the total of all is ours."""
    taxes = tuple(TaxLine(group, 1800, total - 2288, 2288, total) for group, total in lines)
    for specific in (0, None):
        with pytest.raises(MachineNonsense, match="specific tax 0, is not ours"):
            agree(ttc(15_000), Subtotal(15_000, taxes, specific))
