"""Decisions 8 to 10: what an answer looks like, whatever the firmware behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.shop import NIM, Shop, invoice
from support.till import TIMESTAMP, certified, fresh

PERCENT = {"rate", "rates"}
MOMENT = re.compile(r"(period_(start|end)|created_at|from|to|certifiedAt|readAt)")


def answers(shop: Shop) -> Iterator[dict[str, Any]]:
    """One of each endpoint, with every optional part in it."""
    body = invoice(fresh(), 1050, psvbGroup="C")
    body["items"][0] |= {"quantity": 2, "amountTtc": 2218, "specificTax": 100, "specificTaxRate": 50}
    body["payments"] = [{"method": "E", "amount": 2218.0}]
    receipt = certified(shop.certify(body))
    yield receipt
    credit = invoice(fresh(), 1, invoiceType="FA", creditNoteRef=f"{NIM}-{receipt['fvc']}")
    yield certified(shop.certify(credit, path="credit-note"))
    yield shop.get("reports/x").json()
    yield shop.close_period().json()
    for path in ("reports/a", "reports", "info"):
        yield shop.get(path).json()
    yield shop.http.get("/v1/me", headers=shop.headers()).json()


def walk(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with the name of the member it stands in."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from walk(below, key if name not in PERCENT else name)
    elif isinstance(value, list):
        for below in value:
            yield from walk(below, name)
    else:
        yield name, value


def test_decision_8_amounts_are_integers(shop: Shop) -> None:
    """Every number of every answer but a rate in percent; never a string, never `15000.0`."""
    for answer in answers(shop):
        for name, value in walk(answer):
            assert not isinstance(value, float) or name in PERCENT, (name, value)


def test_decision_8_timestamps_are_rfc_3339_in_utc(shop: Shop) -> None:
    """With `Z`, wherever a moment is told."""
    found = [pair for answer in answers(shop) for pair in walk(answer) if MOMENT.fullmatch(pair[0])]
    assert len(found) > 10
    assert all(TIMESTAMP.fullmatch(value) for _, value in found), found


def test_decision_8_date_time_is_the_machines_own(shop: Shop) -> None:
    """14 digits of a clock that is 20 minutes ahead, as they came; our own time stands beside it."""
    shop.machines[0].order("clock", offset=1200)
    try:
        receipt = certified(shop.certify(invoice(fresh())))
    finally:
        shop.machines[0].order("clock", offset=0)
    machine = datetime.strptime(receipt["dateTime"], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    ahead = machine - datetime.fromisoformat(receipt["certifiedAt"])
    assert timedelta(minutes=19, seconds=58) < ahead < timedelta(minutes=20, seconds=2)
    assert receipt["qrContent"].endswith(";" + receipt["dateTime"])


HABITS = {
    "dashed codes": {"dashed_codes": True},
    "a NIM without its suffix": {"short_nim": True},
    "R: before the answer": {"close_prefix": True},
    "the number at its end": {"close_number": True},
    "2Bh without I0": {"plain_taxpayer": True},
}


@pytest.mark.parametrize("habit", HABITS)
def test_decision_9_the_answer_is_the_same_whatever_the_firmware(shop: Shop, habit: str) -> None:
    """`codeSecef` without dashes, `nim` of the URL path, the same QR content."""
    options = HABITS[habit]
    shop.machines[0].order("options", **options)
    try:
        receipt = certified(shop.certify(invoice(fresh())))
        info = shop.get("info").json()
    finally:
        shop.machines[0].order("options", **dict.fromkeys(options, False))
    assert re.fullmatch("[A-Z0-9]{24}", receipt["codeSecef"])
    assert (receipt["nim"], info["nim"], info["merchant"]["commercialName"]) == (NIM, NIM, "MAISON FASO")
    assert receipt["qrContent"].split(";")[1:3] == [NIM.partition("-")[0], receipt["codeSecef"]]


def test_decision_10_what_is_added_has_its_name(shop: Shop) -> None:
    """Beside the shapes of the service contract: what existing clients and the decisions want (their names are fixed from here on)."""
    receipt, credit, x, z, a, history, info, me = answers(shop)
    assert (
        receipt.keys()
        == credit.keys()
        >= {"invoiceNumber", "nimShort", "durationMs", "specificTax", "warnings", "psvb"}
    )
    added = {"by_payment", "by_type_and_group", "credit_notes", "incomplete", "specific_tax", "psvb"}
    assert all(report.keys() >= added for report in (x, z, a))
    assert a.keys() >= {"from", "to", "total_ht", "total_tva", "by_type"}
    assert history.keys() == {"nim", "count", "reports"}
    assert info.keys() >= {"nimShort", "mode", "datetime", "counters", "merchant", "rates", "taxServer", "clockDrift"}
    expected = {"id": me["id"], "label": "till", "mode": "live", "nim": NIM, "connected": True}
    assert me == {**expected, "role": "manager", "expiresAt": None}
