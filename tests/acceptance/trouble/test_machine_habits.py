"""A day at machines that compute VAT in other ways than we do (decision 32), over a real line, with a kill in the middle.

What is expected is computed here, in fractions, from what the tills sold.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support.shop import IFU, NIM, Machine, Shop, invoice, wait_for

pytestmark = pytest.mark.long

SALES = 12
RATE = Fraction(18, 118)


def half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def whole_cents(value: Fraction) -> Fraction:
    return Fraction(half_up(value * 100), 100)


WAYS: dict[str, tuple[tuple[str, ...], Callable[[Iterable[int]], int]]] = {
    "cents": (("--vat", "cents"), lambda lines: half_up(whole_cents(sum(lines) * RATE))),
    "cents with a comma": (
        ("--vat", "cents", "--numbers", "comma"),
        lambda lines: half_up(whole_cents(sum(lines) * RATE)),
    ),
    "rounded up": (("--vat", "up"), lambda lines: math.ceil(sum(lines) * RATE)),
    "on each line": (("--vat-per-line",), lambda lines: sum(line - half_up(line - line * RATE) for line in lines)),
    "on each line, rounded up": (
        ("--vat-per-line", "--vat", "up"),
        lambda lines: sum(math.ceil(p * RATE) for p in lines),
    ),
}


def sold(at: int) -> list[int]:
    """Prices whose VAT is a matter of rounding."""
    return [40 + at, 4043 + 7 * at, 15_000, 40][: 2 + at % 3]


@pytest.mark.parametrize("way", WAYS)
def test_a_day_follows_the_machine_s_vat(tmp_path: Path, way: str) -> None:
    """Sales, credit notes, a kill -9 at 38h, a Z: receipts and totals carry the machine's VAT in whole francs, `ht + tva = ttc` in each,
    nothing is refused, lost or doubled, and the log tells the habit once, not as an error."""
    options, vat = WAYS[way]
    with Shop(tmp_path, machines=(Machine(tmp_path, NIM, IFU, *options),)).start() as shop:
        receipts = [taken(shop, f"F-{at}", sold(at)) for at in range(SALES)]
        credited = [credit(shop, f"A-{at}", receipts[at]) for at in range(2)]
        recovered = kill_at_close(shop, "F-K", sold(2))
        for at, receipt in enumerate(receipts):
            assert receipt["taxDetails"] == [detail(sold(at), vat(sold(at)))]
        assert recovered["taxDetails"] == [detail(sold(2), vat(sold(2)))]
        closure = shop.close_period().json()
        sales, notes = [*receipts, recovered], credited
        assert closure["certs_count"] == len(sales) + len(notes)
        expected = total("tva", sales) - total("tva", notes)
        assert (closure["total_tva"], closure["total_ht"] + closure["total_tva"]) == (expected, closure["total_ttc"])
        assert fractions_in([closure, *sales, *notes]) == []
        assert sorted(entry["number"] for entry in shop.machines[0].certified()) == sorted(
            receipt["invoiceNumber"] for receipt in (*sales, *notes)
        )
        shop.verify()
        rows = [line for line in shop.log_file.read_text().splitlines() if "machine.habit" in line]
        once_or_twice = len(rows) in (1, 2)  # once in each of the two processes
        assert once_or_twice or way.startswith("cents")  # whose VAT in whole francs is ours
        assert not [line for line in rows if "warning" in line or "error" in line]


def taken(shop: Shop, number: str, prices: list[int]) -> dict[str, Any]:
    answer = shop.certify(invoice(number, *prices))
    assert answer.status_code == 200, answer.text
    receipt: dict[str, Any] = answer.json()
    assert receipt["totalTtc"] == sum(prices)
    return receipt


def credit(shop: Shop, number: str, original: dict[str, Any]) -> dict[str, Any]:
    reference = f"{NIM}-{original['fvc']}"
    answer = shop.certify(invoice(number, 40, 43, invoiceType="FA", creditNoteRef=reference), path="credit-note")
    assert answer.status_code == 200, answer.text
    receipt: dict[str, Any] = answer.json()
    return receipt


def kill_at_close(shop: Shop, number: str, prices: list[int]) -> dict[str, Any]:
    """The machine has certified, its answer is still on the way, and the daemon is gone; the receipt that the next one has."""
    machine = shop.machines[0]
    machine.order("fault", spec="late:30@38h#1")
    till = threading.Thread(target=lambda: attempt(shop, number, prices))
    till.start()
    wait_for(lambda: any(entry["number"] == number for entry in machine.certified()), "38h at the machine")
    shop.kill_daemon()
    till.join()
    machine.order("faults", spec="")
    shop.start_daemon()
    again = shop.certify(invoice(number, *prices))
    assert (again.status_code, again.json()["code"]) == (409, "DUPLICATE_INVOICE")
    receipt: dict[str, Any] = again.json()["certification"]
    return receipt


def attempt(shop: Shop, number: str, prices: list[int]) -> None:
    try:
        shop.certify(invoice(number, *prices))
    except Exception:  # noqa: BLE001  # the daemon is killed under it
        return


def detail(prices: list[int], tva: int) -> dict[str, Any]:
    ttc = sum(prices)
    return {"group": "B", "label": "B - TVA 18%", "ht": ttc - tva, "tva": tva, "ttc": ttc}


def total(name: str, receipts: list[dict[str, Any]]) -> int:
    return sum(tax[name] for receipt in receipts for tax in receipt["taxDetails"])


def fractions_in(value: Any) -> list[float]:
    """Every number with a fraction part, wherever it stands."""
    if isinstance(value, dict):
        return [found for each in value.values() for found in fractions_in(each)]
    if isinstance(value, list):
        return [found for each in value for found in fractions_in(each)]
    return [value] if isinstance(value, float) else []


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


WANTS = """
[machine.habits]
code_page = "cp1252"
name_bytes = 24
walk_in = "fields"
close_total = "whole"
"""


def test_a_machine_is_talked_to_as_its_settings_say(tmp_path: Path) -> None:
    """One that insists on C3h with fields, short names, CP1252 and 38h without decimals refuses what others take; with
    `[machine.habits]` it certifies, and its names are read as they are written."""
    insists = ("--full-customer", "--whole-close", "--name-most", "24", "--code-page", "cp1252")
    with Shop(tmp_path, machines=(Machine(tmp_path, NIM, IFU, *insists),)).start() as shop:
        sale = invoice("F-1", 15_000)
        sale["items"][0]["name"] = "Café moulu Kénédougou, paquet de 500 g"
        refused = shop.certify(sale)
        assert (refused.status_code, refused.json()["code"]) == (422, "MACHINE_REFUSED")
        shop.stop_daemon()
        shop.more_config = WANTS
        shop.start_daemon()
        assert shop.certify(sale).status_code == 200
        [certified] = shop.machines[0].certified()
        assert certified["lines"][0]["name"] == "Café moulu Kénédougou"
        assert "Kwamé" in shop.get("info").json()["merchant"]["zone"]
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


def test_a_machine_that_takes_no_decimals_refuses_them(tmp_path: Path) -> None:
    """Where the setting is wrong nothing is certified, in the machine's own words; a line without cents goes as ever."""
    with Shop(tmp_path, machines=(Machine(tmp_path, NIM, IFU),)) as shop:
        shop.more_config = DECIMALS
        shop.start()
        refused = shop.certify(without_tax("W-1", 33.49))
        assert (refused.status_code, refused.json()["code"]) == (422, "MACHINE_REFUSED")
        assert "whole" in refused.json()["detail"]
        assert shop.certify(without_tax("W-2", 33.50)).status_code == 200
        assert [each["number"] for each in shop.machines[0].certified()] == ["W-2"]
