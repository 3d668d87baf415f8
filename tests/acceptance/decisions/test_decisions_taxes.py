"""Decisions 4 and 24: the specific tax, certified or folded, and HT mode, as the machine gets them."""

from __future__ import annotations

from typing import Any

from support.shop import Shop, invoice
from support.till import certified, fresh, on_machine


def body(*items: dict[str, Any], paid: float, **changes: Any) -> dict[str, Any]:
    items = tuple({"name": f"Boisson {at}", "taxGroup": "B", **item} for at, item in enumerate(items))
    return invoice(fresh(), items=list(items), payments=[{"method": "E", "amount": paid}], **changes)


def lines(shop: Shop, receipt: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = on_machine(shop.machines[0], receipt)["lines"]
    return found


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
