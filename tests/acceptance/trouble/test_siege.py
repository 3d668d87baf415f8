"""Each attack of `make siege`, for a moment: a till with its key goes on certifying over real sockets, plain and TLS."""

import time
from collections.abc import Iterator

import pytest
from support.processor import within

from bench.siege.attacked_shop import AttackedShop, open_attacked_shop
from bench.siege.attacks import ATTACKS
from bench.siege.target import InvoiceTimes

pytestmark = pytest.mark.long

SECONDS = 0.4
PAUSE = 0.04
"""Between two invoices: a till has a customer, and the processor is the attack's."""
BOUND = 5.0
"""Seconds for one certification; every attack took more than that, or ended in an error, before it was fixed."""


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "TLS"])
def site(request: pytest.FixtureRequest) -> Iterator[AttackedShop]:
    with open_attacked_shop(tls=request.param, baud=0) as site:
        site.till.certify(InvoiceTimes())  # what is loaded at the first invoice
        yield site


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_till_goes_on(site: AttackedShop, attack: str) -> None:
    """No error, no long wait; and the daemon says so itself: the watchdog hears from it all the time."""
    seen = InvoiceTimes()
    (attacker,) = site.attack([attack], SECONDS)
    while attacker.poll() is None:
        with within(BOUND, *site.shop.pids):
            site.till.certify(seen)
        time.sleep(PAUSE)
    assert attacker.returncode == 0
    assert seen.times
    assert seen.errors == []
    assert site.shop.is_running
