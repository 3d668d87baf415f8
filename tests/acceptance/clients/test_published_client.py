"""The published client `avepay-mcf`, unchanged, pointed at mcfd: it notices nothing but speed."""

import time
from datetime import UTC, datetime
from typing import Any

from support.published import OPERATOR, Published, machine_record, sale
from support.shop import IFU, NIM, Shop, wait_for
from support.till import fresh


def test_a_receipt_has_everything_the_client_reads(shop: Shop, client: Published) -> None:
    """The quickstart of its page: every field of `Receipt` is there with its type, the rate from the label too."""
    began = time.monotonic()
    receipt = client(
        "certify",
        number=fresh(),
        type="FV",
        operator=OPERATOR,
        customer={"type": "PP", "name": "Client Comptant"},
        items=[
            {"name": "Riz 25kg", "tax_group": "B", "unit_price": 15000, "quantity": 1},
            {"name": "Pain", "tax_group": "A", "unit_price": 150, "quantity": 4},
        ],
        payments=[{"method": "cash", "amount": 15600}],
    )
    most = (time.monotonic() - began) * 1000 + 1
    entry = machine_record(shop, receipt)
    assert (receipt.total_ttc, receipt.invoice_type, receipt.invoice_number) == (15600, "FV", entry["number"])
    assert (receipt.nim, receipt.nim_short, receipt.ifu) == (NIM, NIM.partition("-")[0], IFU)
    assert receipt.date_time == datetime.strptime(entry["time"], "%Y%m%d%H%M%S")  # noqa: DTZ007  as the client has it
    assert (receipt.counters.tc, receipt.counters.fvc, receipt.counters.frc) == (
        entry["tc"],
        entry["fvc"],
        entry["frc"],
    )
    assert receipt.qr == f"BFSECEF01;{receipt.nim_short};{receipt.sig};{IFU};{entry['time']}"
    assert [(line.group, line.rate, line.ht, line.tva, line.ttc) for line in receipt.tax] == [
        ("A", 0.0, 600, 0, 600),
        ("B", 18.0, 12712, 2288, 15000),
    ]
    assert 0 < receipt.duration_ms <= most
    assert shop.get(f"certifications/{receipt.sig}").json()["receipt"]["warnings"] == []
    assert entry["opening"]["operator_id"] == "1"
    assert entry["opening"]["isf"] == "SFE-1"


# -- credit notes -------------------------------------------------------------------------------------------------------


def test_a_credit_note_of_a_receipt(shop: Shop, client: Published) -> None:
    """`from_` a receipt makes the reference `{NIM}-{FVC}`; nature COR by default; its counter is FRC."""
    receipt = client("certify", **sale(15000))
    credit = client("credit_note", from_=receipt, **sale(5000))
    entry = machine_record(shop, credit)
    assert (credit.invoice_type, credit.total_ttc) == ("FA", 5000)
    assert (entry["opening"]["reference"], entry["opening"]["nature"]) == (f"{NIM}-{receipt.counters.fvc}", "COR")
    assert credit.counters.frc == entry["frc"]


# -- the rest of it -----------------------------------------------------------------------------------------------------


def live(shop: Shop, info: Any) -> Any:
    """That, if it is what the machine has counted."""
    counters = info.counters
    return info if (counters.tc, counters.fvc, counters.frc) == shop.machines[0].counters else None


def test_info(shop: Shop, client: Published) -> None:
    """Machine, counters and merchant, read live: no older than a second."""
    info = wait_for(lambda: live(shop, client("info")), "the counters of the machine")
    assert (info.nim, info.nim_short, info.ifu, info.mode) == (NIM, NIM.partition("-")[0], IFU, "live")
    assert abs((info.date_time.replace(tzinfo=UTC) - datetime.now(UTC)).total_seconds()) < 60
    merchant = info.merchant
    assert all((merchant.commercial_name, merchant.address, merchant.city, merchant.zone, merchant.email))
    assert info.read_at.endswith("Z")


def test_cancel_pending(shop: Shop, client: Published) -> None:
    """Nothing is open: said, and not an error (the client posts without a body)."""
    result = client("cancel_pending")
    assert (result.was_pending, bool(result.message)) == (False, True)


def test_the_sandbox(shop: Shop, client: Published) -> None:
    """The same client with a test key."""
    key = shop.key("test")
    receipt = client("certify", key=key, **sale())
    assert receipt.sig.startswith("TESTFACT")
    assert client("info", key=key).mode == "test"
    assert client("credit_note", key=key, from_=receipt, **sale()).invoice_type == "FA"
