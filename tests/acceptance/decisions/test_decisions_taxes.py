"""Decisions 4 and 24: the specific tax, certified or folded, and HT mode, as the machine gets them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from support.shop import Shop, invoice
from support.till import certified, fresh, on_machine

GOOD = {"unitPrice": 1050, "quantity": 2, "amountTtc": 2218, "specificTax": 100, "specificTaxRate": 50}


def body(*items: dict[str, Any], paid: float, **changes: Any) -> dict[str, Any]:
    items = tuple({"name": f"Boisson {at}", "taxGroup": "B", **item} for at, item in enumerate(items))
    return invoice(fresh(), items=list(items), payments=[{"method": "E", "amount": paid}], **changes)


def lines(shop: Shop, receipt: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = on_machine(shop.machines[0], receipt)["lines"]
    return found


FOLDED = {**GOOD, "specificTaxRate": None}


@pytest.mark.parametrize(("amount", "whole"), [(2218.4, 2218), (2218.5, 2219)])
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


def test_decision_4_specific_tax_enters_the_reports(shop: Shop) -> None:
    """What was certified separately is summed; what was folded is not in it."""
    shop.close_period()
    certified(shop.certify(body(GOOD, GOOD, paid=4436)))
    certified(shop.certify(body(FOLDED, paid=2218)))
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


def test_decision_24_payments_add_up_to_either_total(shop: Shop) -> None:
    """Each item alone is 392.94 → 393, together 1 179; sent as 393, 393 and 392 the till's own sum is 1 178. The largest payment
    carries the difference, and a warning says so."""
    items = [{"unitPrice": 333, "quantity": 1, "amountTtc": amount} for amount in (393, 393, 392)]
    sent = body(*items, paid=1178, priceMode="HT")
    sent["payments"] = [{"method": "M", "amount": 100}, {"method": "E", "amount": 1078}]
    receipt = certified(shop.certify(sent))
    machine_data = on_machine(shop.machines[0], receipt)
    assert receipt["totalTtc"] == machine_data["total"] == 1179
    assert [entry["amount"] for entry in machine_data["payments"]] == [10_000, 107_900]
    assert [warning["code"] for warning in receipt["warnings"]] == ["PAYMENT_ADJUSTED"]


def test_decision_24_the_reports_hold_what_the_machine_certified(shop: Shop) -> None:
    """The group's VAT of each invoice, summed: not VAT of the sum."""
    shop.close_period()
    for _ in range(3):
        certified(shop.certify(body({"unitPrice": 333, "quantity": 1}, paid=393, priceMode="HT")))
    report = shop.x_with(3)
    assert report["by_group"] == [{"group": "B", "ht": 999, "tva": 180, "ttc": 1179}]
