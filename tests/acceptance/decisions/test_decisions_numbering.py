"""Numbers that the box gives (SFE 2.18): unbroken for each type and year, whatever is refused, at once or after a restart."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.shop import Shop, invoice, running_shop
from support.till import certified, invalid


def without(**changes: Any) -> dict[str, Any]:
    body = invoice("", 500, **changes)
    del body["invoiceNumber"]
    return body


def test_a_number_is_needed_where_tills_give_it(own_shop: Shop) -> None:
    """Without [numbering], as ever."""
    assert [*invalid(own_shop.certify(without()))] == ["invoiceNumber"]


def test_the_series_is_unbroken(tmp_path: Path) -> None:
    """A refused attempt leaves its number to the next one; eight tills at once, a restart and a till's own number make no gap; each type has its own."""
    with running_shop(tmp_path, config={"numbering": {"enabled": True}}) as shop:
        first = certified(shop.certify(without()))["invoiceNumber"]
        prefix = first[: -len("000001")]
        assert first.endswith("-000001")
        assert prefix.startswith("FV-20")
        assert shop.certify(without(payments=[{"method": "E", "amount": 1}])).status_code == 422
        shop.machines[0].order("mode", mode="blocked")
        assert shop.certify(without()).status_code == 422
        shop.machines[0].order("mode", mode="active")
        with ThreadPoolExecutor(8) as tills:
            result = list(tills.map(lambda _: certified(shop.certify(without()))["invoiceNumber"], range(8)))
        assert sorted(result) == [f"{prefix}{place:06}" for place in range(2, 10)]
        assert certified(shop.certify(invoice(f"{prefix}000010")))["invoiceNumber"] == f"{prefix}000010"
        shop.stop_daemon()
        shop.start_daemon()
        assert certified(shop.certify(without()))["invoiceNumber"] == f"{prefix}000011"
        assert certified(shop.certify(without(invoiceType="EV")))["invoiceNumber"].endswith("-000001")
        answers = [shop.certify(without(), key="n-1").json() for _ in range(2)]
        assert answers[0] == answers[1]
        assert answers[0]["invoiceNumber"] == f"{prefix}000012"


def sandbox_to(shop: Shop, moment: datetime) -> None:
    """Its clock goes on to that moment, in steps of whole hours at most one hour short."""
    now = datetime.fromisoformat(move(shop, 0, 0))
    hours = int((moment - now).total_seconds() // 3600)
    move(shop, *divmod(hours, 24))


def move(shop: Shop, days: int, hours: int) -> str:
    answer = shop.certify({"days": days, "hours": hours}, mode="test", path="test/clock")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["now"])


def code_of(shop: Shop, body: dict[str, Any], path: str = "certify") -> str:
    return str(shop.certify(body, mode="test", path=path).json().get("code", "certified"))


def test_a_number_is_taken_for_a_year_where_the_shop_says_so(tmp_path: Path) -> None:
    """A till whose series begins at 1 each January sells on; within the year, and over midnight of New Year, the number is taken; a credit note of
    one of two such sales names it by its reference, and the journal shows both."""
    with running_shop(tmp_path, config={"numbering": {"unique": "year"}}) as shop:
        move(shop, 0, 0)
        new_year = datetime(datetime.now(UTC).year + 1, 1, 1, tzinfo=UTC)
        first = certified(shop.certify(invoice("F-1"), mode="test"))
        sandbox_to(shop, new_year - timedelta(hours=2))
        late = certified(shop.certify(invoice("F-2"), mode="test"))
        sandbox_to(shop, new_year + timedelta(hours=2))
        assert code_of(shop, invoice("f-2")) == "DUPLICATE_INVOICE"
        again = shop.certify(invoice("F-1"), mode="test", headers={"Mcfd-Test": "line-lost-at-38h"}).json()
        assert again["codeSecef"] != first["codeSecef"]
        assert code_of(shop, invoice("F-1")) == "DUPLICATE_INVOICE"
        sandbox_to(shop, new_year + timedelta(days=2))
        assert certified(shop.certify(invoice("F-2"), mode="test"))["codeSecef"] != late["codeSecef"]
        assert code_of(shop, invoice("F-1")) == "DUPLICATE_INVOICE"
        credit = invoice("A-1", invoiceType="FA", creditNoteNature="COR", originalInvoiceNumber="F-1")
        faults = invalid(shop.certify(credit, mode="test", path="credit-note"))
        assert "several sales" in faults["originalInvoiceNumber"]
        credit["creditNoteRef"] = f"EL02000015-1-{first['fvc']}"
        assert code_of(shop, credit, "credit-note") == "certified"
        found = shop.get("certifications", mode="test", invoiceNumber="F-1").json()["certifications"]
        assert [each["codeSecef"] for each in found if each["state"] == "certified"] == [
            again["codeSecef"],
            first["codeSecef"],
        ]
        shop.stop_daemon()
        shop.mcfd("verify", check=True)
        shop.start_daemon()
        assert code_of(shop, invoice("F-1")) == "DUPLICATE_INVOICE"


def test_numbers_from_before_the_switch(tmp_path: Path) -> None:
    """Taken for ever, a number of this year is still taken when the shop changes to years; and every number, when it changes back."""
    numbering: dict[str, Any] = {"unique": "ever"}
    with running_shop(tmp_path, config={"numbering": numbering}) as shop:
        move(shop, 0, 0)
        certified(shop.certify(invoice("F-1"), mode="test"))
        certified(shop.certify(invoice("F-2"), mode="test"))
        for unique, days, expected in (
            ("year", 0, "DUPLICATE_INVOICE"),
            ("year", 366, "certified"),
            ("ever", 366, "DUPLICATE_INVOICE"),
        ):
            shop.stop_daemon()
            numbering["unique"] = unique
            shop.start_daemon()
            move(shop, days, 0)
            assert code_of(shop, invoice("F-1")) == expected, (unique, days)
        shop.verify()
