"""Decisions 4 and 24: the specific tax, certified or folded, and HT mode, as the machine gets them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from support.shop import NIM, Shop, invoice
from support.till import certified, fresh, invalid, on_machine

GOOD = {"unitPrice": 1050, "quantity": 2, "amountTtc": 2218, "specificTax": 100, "specificTaxRate": 50}


def body(*items: dict[str, Any], paid: float, **changes: Any) -> dict[str, Any]:
    items = tuple({"name": f"Boisson {at}", "taxGroup": "B", **item} for at, item in enumerate(items))
    return invoice(fresh(), items=list(items), payments=[{"method": "E", "amount": paid}], **changes)


def lines(shop: Shop, receipt: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = on_machine(shop.machines[0], receipt)["lines"]
    return found


HOLD = {
    "whole": ("TTC", GOOD, (2218, 105_000, 5000, 10_000)),
    "a rate per unit with decimals": (
        "TTC",
        {"unitPrice": 100, "quantity": 8, "amountTtc": 918, "specificTax": 100, "specificTaxRate": 12.5},
        (918, 10_000, 1250, 10_000),
    ),
    "a quantity with decimals": (
        "TTC",
        {"unitPrice": 400, "quantity": 2.5, "amountTtc": 1118, "specificTax": 100, "specificTaxRate": 40},
        (1118, 40_000, 4000, 10_000),
    ),
    "a group without VAT": (
        "TTC",
        {"taxGroup": "A", "unitPrice": 500, "quantity": 2, "amountTtc": 1010, "specificTax": 10, "specificTaxRate": 5},
        (1010, 50_000, 500, 1000),
    ),
    "HT, the invariants taken literally": ("HT", GOOD, (1880, 89_000, 5000, 10_000)),
}


@pytest.mark.parametrize("case", HOLD)
def test_decision_4_a_specific_tax_that_holds(shop: Shop, case: str) -> None:
    """It goes to the machine beside the line, per unit and in all; the answer tells the total; no warning."""
    mode, item, result = HOLD[case]
    receipt = certified(shop.certify(body(item, paid=item["amountTtc"], priceMode=mode)))
    line = lines(shop, receipt)[0]
    assert (line["amount"], line["price"], line["unit_tax"], line["tax"]) == result
    assert (receipt["specificTax"], receipt["warnings"]) == (item["specificTax"], [])
    assert receipt["totalTtc"] == item["amountTtc"]


FOLDED = {
    "the first invariant fails": {**GOOD, "unitPrice": 1049},
    "the second fails": {**GOOD, "specificTaxRate": 51},
    "no rate": {**GOOD, "specificTaxRate": None},
    "no tax": {**GOOD, "specificTax": None},
    "a negative tax": {**GOOD, "specificTax": -100, "specificTaxRate": -50},
    "a tax that is not whole": {**GOOD, "specificTax": 100.5, "specificTaxRate": 50.25},
    "a string": {**GOOD, "specificTax": "100"},
    "true": {**GOOD, "specificTaxRate": True},
    "a list": {**GOOD, "specificTax": [100]},
    "an object": {**GOOD, "specificTaxRate": {"rate": 50}},
    "no unit price": {**GOOD, "unitPrice": None},
}


@pytest.mark.parametrize("case", FOLDED)
@pytest.mark.parametrize("mode", ["TTC", "HT"])
def test_decision_4_in_every_other_case_it_is_folded(shop: Shop, case: str, mode: str) -> None:
    """No specific tax, the price derived from amountTtc, never a refusal; one warning for the item, with its index and why."""
    plain = {"unitPrice": None, "quantity": 1, "amountTtc": 1180}
    sent = body(plain, FOLDED[case], paid=1180 + 2218, priceMode=mode)
    receipt = certified(shop.certify(sent))
    line = lines(shop, receipt)[1]
    assert (line["unit_tax"], line["tax"], receipt["specificTax"]) == (None, 0, 0)
    assert receipt["totalTtc"] == 3398
    assert line["amount"] == (2218 if mode == "TTC" else 1880)
    (warning,) = receipt["warnings"]
    assert (warning["code"], warning["item"]) == ("SPECIFIC_TAX_FOLDED", 1)
    assert len(warning["message"]) > len("the specific tax is folded into the price: ")


@pytest.mark.parametrize("text", ["1e400", "-1e999999999", "1e-400", "123456789012345678901234567890"])
def test_decision_4_a_number_nobody_can_mean_is_folded_too(shop: Shop, text: str) -> None:
    """What would be refused as an amount is no reason to refuse an invoice here."""
    raw = json.dumps(body(GOOD, paid=2218)).replace('"specificTax": 100', f'"specificTax": {text}')
    headers = {**shop.headers(), "Content-Type": "application/json"}
    receipt = certified(shop.http.post(f"/v1/mcf/{NIM}/certify", content=raw, headers=headers))
    assert (receipt["totalTtc"], receipt["specificTax"]) == (2218, 0)


@pytest.mark.parametrize(("amount", "whole"), [(2218.4, 2218), (2218.5, 2219), (2217.999, 2218)])
def test_decision_4_an_amount_that_is_not_whole_is_rounded_half_up(shop: Shop, amount: float, whole: int) -> None:
    """Folded and certified at the rounded amount; payments may be off by the rounding, and the largest is adjusted; both are told."""
    sent = body({**GOOD, "amountTtc": amount}, paid=amount)
    sent["payments"] = [{"method": "M", "amount": 218}, {"method": "E", "amount": float(Decimal(str(amount)) - 218)}]
    receipt = certified(shop.certify(sent))
    assert receipt["totalTtc"] == whole
    machine_data = on_machine(shop.machines[0], receipt)
    assert [entry["amount"] for entry in machine_data["payments"]] == [21_800, (whole - 218) * 100]
    warnings = {warning["code"]: warning.get("item") for warning in receipt["warnings"]}
    assert warnings == {"AMOUNT_ROUNDED": 0, "PAYMENT_ADJUSTED": None}


def test_decision_4_payments_may_be_off_by_the_rounding_only(shop: Shop) -> None:
    """A franc and a half is more than one item's rounding."""
    assert "payments" in invalid(shop.certify(body({**GOOD, "amountTtc": 2218.5}, paid=2220.5)))


def test_decision_4_an_item_without_specific_tax_is_not_rounded(shop: Shop) -> None:
    """The leniency is for specific tax alone: otherwise an amount has to be whole (decision 3)."""
    item = {"unitPrice": 1050, "quantity": 2, "amountTtc": 2218.5}
    assert "items[0].amountTtc" in invalid(shop.certify(body(item, paid=2219)))


def test_decision_4_zero_is_no_specific_tax(shop: Shop) -> None:
    """Tills that always send the fields send zeros: nothing to certify and nothing to warn of."""
    item = {"unitPrice": 1000, "quantity": 2, "amountTtc": 2000, "specificTax": 0, "specificTaxRate": 0}
    receipt = certified(shop.certify(body(item, paid=2000)))
    assert (receipt["specificTax"], receipt["warnings"]) == (0, [])


def test_decision_4_specific_tax_enters_the_reports(shop: Shop) -> None:
    """What was certified separately is summed; what was folded is not in it."""
    shop.close_period()
    certified(shop.certify(body(GOOD, GOOD, paid=4436)))
    certified(shop.certify(body(FOLDED["no rate"], paid=2218)))
    assert shop.x_with(2)["specific_tax"] == 200


# -- HT mode ------------------------------------------------------------------------------------------------------------


def test_decision_24_the_machine_gets_prices_and_amounts_without_vat(shop: Shop) -> None:
    """PMODE HT; VAT is computed on the group's total: 3 × 333 HT are 999, with 18 % 1 178.82 → 1 179."""
    items = [{"unitPrice": 333, "quantity": 1} for _ in range(3)]
    receipt = certified(shop.certify(body(*items, paid=1179, priceMode="HT")))
    machine_data = on_machine(shop.machines[0], receipt)
    assert machine_data["opening"]["price_mode"] == "HT"
    assert [(line["price"], line["amount"]) for line in machine_data["lines"]] == [(33_300, 333)] * 3
    assert [(t["group"], t["ht"], t["tva"], t["ttc"]) for t in receipt["taxDetails"]] == [("B", 999, 180, 1179)]
    assert receipt["totalTtc"] == machine_data["total"] == 1179


@pytest.mark.parametrize("paid", [1179, 1178])
def test_decision_24_payments_add_up_to_either_total(shop: Shop, paid: int) -> None:
    """Each item alone is 392.94 → 393, together 1 179; sent as 393, 393 and 392 the till's own sum is 1 178. The largest payment
    carries the difference, and a warning says so."""
    items = [{"unitPrice": 333, "quantity": 1, "amountTtc": amount} for amount in (393, 393, 392)]
    sent = body(*items, paid=paid, priceMode="HT")
    sent["payments"] = [{"method": "M", "amount": 100}, {"method": "E", "amount": paid - 100}]
    receipt = certified(shop.certify(sent))
    machine_data = on_machine(shop.machines[0], receipt)
    assert receipt["totalTtc"] == machine_data["total"] == 1179
    assert [entry["amount"] for entry in machine_data["payments"]] == [10_000, 107_900]
    assert [warning["code"] for warning in receipt["warnings"]] == ([] if paid == 1179 else ["PAYMENT_ADJUSTED"])


def test_decision_24_more_than_a_franc_an_item_is_refused(shop: Shop) -> None:
    """The items say 1 000, their prices with VAT 1 180: somebody forgot the VAT."""
    item = {"unitPrice": 1000, "quantity": 1, "amountTtc": 1000}
    assert invalid(shop.certify(body(item, paid=1000, priceMode="HT"))).keys() >= {"items"}


def test_decision_24_payments_that_fit_neither_total_are_refused(shop: Shop) -> None:
    """Not by a franc."""
    items = [{"unitPrice": 333, "quantity": 1, "amountTtc": amount} for amount in (393, 393, 392)]
    assert "payments" in invalid(shop.certify(body(*items, paid=1177, priceMode="HT")))


def test_decision_24_the_reports_hold_what_the_machine_certified(shop: Shop) -> None:
    """The group's VAT of each invoice, summed: not VAT of the sum."""
    shop.close_period()
    for _ in range(3):
        certified(shop.certify(body({"unitPrice": 333, "quantity": 1}, paid=393, priceMode="HT")))
    report = shop.x_with(3)
    assert report["by_group"] == [{"group": "B", "ht": 999, "tva": 180, "ttc": 1179}]
