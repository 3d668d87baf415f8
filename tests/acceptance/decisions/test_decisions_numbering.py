"""Numbers that the box gives (SFE 2.18): unbroken for each type and year, whatever is refused, at once or after a restart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support.shop import Shop, invoice
from support.till import certified, invalid

YEAR = 2026


def without(**changes: Any) -> dict[str, Any]:
    body = invoice("", 500, **changes)
    del body["invoiceNumber"]
    return body


def test_a_number_is_needed_where_tills_give_it(own_shop: Shop) -> None:
    """Without [numbering], as ever."""
    assert [*invalid(own_shop.certify(without()))] == ["invoiceNumber"]


def test_the_series_is_unbroken(tmp_path: Path) -> None:
    """A refused attempt leaves its number to the next one; eight tills at once, a restart and a till's own number make no gap; each type has its own."""
    with Shop(tmp_path, config={"numbering": {"enabled": True}}) as shop:
        shop.start()
        first = certified(shop.certify(without()))["invoiceNumber"]
        prefix = first[: -len("000001")]
        assert first.endswith("-000001")
        assert prefix.startswith("FV-20")
        assert shop.certify(without(payments=[{"method": "E", "amount": 1}])).status_code == 422
        shop.machines[0].order("mode", mode="blocked")
        assert shop.certify(without()).status_code == 422
        shop.machines[0].order("mode", mode="active")
        with ThreadPoolExecutor(8) as tills:
            told = list(tills.map(lambda _: certified(shop.certify(without()))["invoiceNumber"], range(8)))
        assert sorted(told) == [f"{prefix}{place:06}" for place in range(2, 10)]
        assert certified(shop.certify(invoice(f"{prefix}000010")))["invoiceNumber"] == f"{prefix}000010"
        shop.stop_daemon()
        shop.start_daemon()
        assert certified(shop.certify(without()))["invoiceNumber"] == f"{prefix}000011"
        assert certified(shop.certify(without(invoiceType="EV")))["invoiceNumber"].endswith("-000001")
        headers = {**shop.headers(), "Idempotency-Key": "n-1"}
        path = "/v1/mcf/EL02000015-1/certify"
        answers = [shop.http.post(path, json=without(), headers=headers).json() for _ in range(2)]
        assert answers[0] == answers[1]
        assert answers[0]["invoiceNumber"] == f"{prefix}000012"
