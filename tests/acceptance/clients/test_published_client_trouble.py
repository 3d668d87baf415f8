"""The published client when something is wrong: every error code it knows, its own retries, and forty at once."""

from collections.abc import Iterator

import pytest
from support.hurried import HURRIED
from support.published import Published, sale
from support.shop import Shop, wait_for

pytestmark = pytest.mark.long

TIMERS = {"reply_timeout": 0.4, "certify_timeout": 1.0}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with Shop(tmp_path_factory.mktemp("shop"), per_machine=TIMERS, first=HURRIED) as shop:
        yield shop.start()


# -- errors -------------------------------------------------------------------------------------------------------------


def test_errors_of_the_invoice(shop: Shop, client: Published) -> None:
    """`INVALID_REQUEST` with the field, `DUPLICATE_INVOICE` with the receipt, `MACHINE_REFUSED` with the machine's words."""
    error = client.refused("INVALID_REQUEST", 422, "certify", **sale(payments=[{"method": "cash", "amount": 1}]))
    assert [fault["field"] for fault in error.raw["errors"]] == ["payments"]
    body = sale()
    receipt = client("certify", **body)
    error = client.refused("DUPLICATE_INVOICE", 409, "certify", **body)
    assert error.raw["certification"] == receipt.raw
    shop.machines[0].order("mode", mode="blocked")
    error = client.refused("MACHINE_REFUSED", 422, "certify", **sale())
    shop.machines[0].order("mode", mode="active")
    assert "blocked" in error.message.lower()


# -- retries ------------------------------------------------------------------------------------------------------------


def test_its_retries_never_certify_twice(shop: Shop, client: Published) -> None:
    """The line dies in the middle of the entry or before the answer to 38h, or that answer is lost: the client repeats with the key it made up,
    and gets the one certification there is."""
    machine = shop.machines[0]
    since = machine.counters[0]
    receipts = []
    for spec in ("unplug-before:0.2@33h#1", "unplug:0.2@38h#1", "drop-reply@38h#1"):
        machine.order("fault", spec=spec)
        receipts.append(client("certify", retries=8, **sale(100)))
        wait_for(lambda: client("me")["connected"])
    assert [entry["code"] for entry in machine.certified(since)] == [receipt.sig for receipt in receipts]


def test_what_the_client_did_adds_up(shop: Shop) -> None:
    """`mcfd verify` after all of it."""
    shop.verify()
