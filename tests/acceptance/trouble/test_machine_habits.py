"""Machines with habits of their own, over a real line: those of a line, those that `[machine.habits]` names, decimals on a line."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support.shop import IFU, NIM, Machine, Shop, invoice

pytestmark = pytest.mark.long


def taken(shop: Shop, number: str, prices: list[int]) -> dict[str, Any]:
    answer = shop.certify(invoice(number, *prices))
    assert answer.status_code == 200, answer.text
    receipt: dict[str, Any] = answer.json()
    assert receipt["totalTtc"] == sum(prices)
    return receipt


def test_a_line_with_every_habit_of_lines(tmp_path: Path) -> None:
    """9 600 baud and deaf to any other speed, an echo, replies in two halves 400 ms apart, a machine that takes 1.2 s to wake and whose clock
    is ten years ahead: with the speed in the configuration it certifies, and time stays ours."""
    habits = ("--strict-baud", "--echo", "--halves-ms", "400", "--wake-ms", "1200", "--clock-offset", "315360000")
    machine = Machine(tmp_path, NIM, IFU, *habits, "--baud", "9600")
    with Shop(tmp_path, machines=(machine,), per_machine={"baudrate": 9600}).start() as shop:
        receipt = taken(shop, "F-1", [15_000])
        assert receipt["dateTime"] == machine.certified()[0]["time"]
        assert receipt["certifiedAt"][:4] < receipt["dateTime"][:4]
        assert shop.x_with(1)["total_ttc"] == 15_000
        shop.verify()


DECIMALS = """
[machine.habits]
line_decimals = 2
"""


def without_tax(number: str, *prices: float, **changes: Any) -> dict[str, Any]:
    """Thirty of each, with the exact total in whole francs as the payment."""
    items = [
        {"name": f"Article {at}", "taxGroup": "B", "unitPrice": price, "quantity": 30}
        for at, price in enumerate(prices)
    ]
    total = int(Decimal(30) * sum(Decimal(str(price)) for price in prices) * Decimal("1.18") + Decimal("0.5"))
    return invoice(number, priceMode="HT", items=items, payments=[{"method": "E", "amount": total}], **changes)


def test_a_machine_that_takes_two_decimals_on_a_line(tmp_path: Path) -> None:
    """SFE 6.2: 30 × 33.49 goes as 1004.70. Without the setting each line is whole francs, and a warning says by how much the total differs; with it the total is the
    exact one to the franc, on paper too; X, Z, a credit note of all of it and `verify` are as ever."""
    with Shop(tmp_path, machines=(Machine(tmp_path, NIM, IFU, "--line-decimals"),)).start() as shop:
        sale = without_tax(
            "W-1", 33.48, 33.48, 33.48
        )  # 3 × 1004.40: 3013.20, with VAT 3555.58; in whole francs 3012, 3554
        whole = shop.certify(sale).json()
        assert whole["totalTtc"] == 3554
        content = {warning["code"]: warning["message"] for warning in whole["warnings"]}
        assert "3555.58" in content["LINES_ROUNDED"]
        shop.stop_daemon()
        shop.more_config = DECIMALS
        shop.start_daemon()
        exact = shop.certify(without_tax("W-2", 33.48, 33.48, 33.48)).json()
        assert (exact["totalTtc"], exact["warnings"]) == (3556, [])
        (line,) = exact["taxDetails"]
        assert (line["ht"], line["tva"], line["ttc"]) == (3013, 543, 3556)
        paper = shop.get(f"certifications/{exact['codeSecef']}/ticket", lang="fr").text.replace("\u00a0", " ")
        assert paper.count("1 004,4 B") == 3
        credit = without_tax(
            "W-3", 33.48, 33.48, 33.48, invoiceType="FA", creditNoteNature="COR", originalInvoiceNumber="W-2"
        )
        assert shop.certify(credit, path="credit-note").json()["totalTtc"] == 3556
        assert shop.certify(invoice("W-4", 1500)).json()["totalTtc"] == 1500
        report = shop.x_with(4)
        assert report["total_ttc"] == report["total_ht"] + report["total_tva"] == 3554 + 1500
        shop.verify()
