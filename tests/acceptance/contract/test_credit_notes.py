"""Credit notes over HTTP: the ledger knows what may still be credited, and the tax server may take its time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.shop import NIM, Machine, Shop, invoice


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("credit")
    with Shop(folder, machines=(Machine(folder),)) as shop:
        yield shop.start()


def credit(number: str, reference: str, *prices: int, **changes: Any) -> dict[str, Any]:
    return {**invoice(number, *prices), "invoiceType": "FA", "creditNoteRef": reference, **changes}


def sold(shop: Shop, number: str, price: int) -> str:
    """The reference of a new sale."""
    return f"{NIM}-{shop.certify(invoice(number, price)).json()['fvc']}"


def test_credits_never_exceed_their_original(own_shop: Shop) -> None:
    """Two credit notes of 6 000 on a sale of 10 000: the second is refused with both sums, one of 4 000 still fits, and
    after that not a franc more."""
    reference = sold(own_shop, "S-1", 10000)
    first = own_shop.certify(credit("C-1", reference, 6000), path="credit-note")
    assert (first.status_code, first.json()["frc"]) == (200, 1)
    second = own_shop.certify(credit("C-2", reference, 6000), path="credit-note")
    assert (second.status_code, second.json()["code"]) == (409, "CREDIT_EXCEEDS_ORIGINAL")
    assert "10000" in second.text
    assert "12000" in second.text
    assert own_shop.certify(credit("C-3", reference, 4000), path="credit-note").status_code == 200
    assert own_shop.certify(credit("C-4", reference, 1), path="credit-note").status_code == 409


def test_two_credits_at_once_cannot_both_be_the_last_that_fits(shop: Shop) -> None:
    """Of eight credit notes of the whole original, sent at the same moment, exactly one is certified."""
    reference = sold(shop, "S-2", 5000)
    bodies = [credit(f"P-{at}", reference, 5000) for at in range(8)]
    with ThreadPoolExecutor(8) as tills:
        answers = list(tills.map(lambda body: shop.certify(body, path="credit-note").status_code, bodies))
    assert sorted(answers) == [200] + [409] * 7


@pytest.mark.parametrize("reference", ["BF12345678-1-77", "RRR"])
def test_an_original_of_elsewhere_passes(shop: Shop, reference: str) -> None:
    """A reference to another machine passes with a warning, and a rebate over many invoices (RRR) without one."""
    body = credit(f"E-{reference}", reference, 700, creditNoteNature="RRR")
    receipt = shop.certify(body, path="credit-note").json()
    warnings = [warning["code"] for warning in receipt["warnings"]]
    assert warnings == ([] if reference == "RRR" else ["ORIGINAL_NOT_CHECKED"])


@pytest.mark.parametrize("style", ["pending", "silent", "syn"])
def test_a_slow_tax_server_is_waited_for(shop: Shop, style: str) -> None:
    """`P:` answers, plain silence and SYN while the tax server checks a credit note end in one certification."""
    machine = shop.machines[0]
    reference = sold(shop, f"S-{style}", 900)
    machine.order("options", credit_style=style, credit_check=1.2)
    before = machine.counters
    answer = shop.certify(credit(f"W-{style}", reference, 900), path="credit-note")
    machine.order("options", credit_check=0.0)
    assert answer.status_code == 200, answer.text
    assert machine.counters[2] == before[2] + 1
    shop.verify()
