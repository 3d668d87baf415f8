"""A machine that goes away: noticed, and back at its return, without a restart, and no other machine minds."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.nursery import Nursery
from support.processor import within
from support.shop import Machine, Shop, invoice, wait_for

pytestmark = pytest.mark.long

ENOUGH = 20
CALM = "EL02000099-1"


def outage(
    away: Callable[[Machine], object], back: Callable[[Machine], object], expected: str
) -> tuple[Callable[[Machine], object], Callable[[Machine], object], str]:
    return away, back, expected


OUTAGES = {
    "EL02000001-1": outage(
        lambda m: m.order("unplug"), lambda m: m.order("plug"), "gone|missing|exist|closed|lost|vanished"
    ),
    "EL02000002-1": outage(lambda m: m.order("silence"), lambda m: m.order("speak"), "does not answer"),
    "EL02000003-1": outage(
        lambda m: m.order("reboot", nim="EL09999999-1"), lambda m: m.order("reboot", nim=m.nim), "EL09999999-1"
    ),
    "EL02000004-1": outage(lambda m: m.kill(), lambda m: m.start(), "gone|missing|exist|closed|lost|vanished"),
}
"""Pulled out, struck dumb, exchanged for another one, without power; and what the operator is told."""


@pytest.fixture
def shop(tmp_path: Path, nursery: Nursery) -> Any:
    machines = tuple(Machine(tmp_path, nim) for nim in (*OUTAGES, CALM))
    with Shop(tmp_path, machines=machines, config={"sandbox": {"enabled": False}}) as shop:
        yield shop.start()


def condition(shop: Shop, nim: str) -> dict[str, Any]:
    machines = shop.http.get("/health/ready").json()["machines"]
    (found,) = [machine for machine in machines if machine["nim"] == nim]
    return found


def test_an_idle_machine_that_goes_away_is_noticed_and_taken_back(shop: Shop) -> None:
    """Four ways to go away, at the same time, with nobody asking anything of those machines; a fifth machine works on meanwhile."""
    machines = {machine.nim: machine for machine in shop.machines}
    for nim in machines:
        assert shop.certify(invoice("before"), nim=nim).status_code == 200

    def go_and_come(nim: str) -> None:
        away, back, result = OUTAGES[nim]
        away(machines[nim])
        wait_for(lambda: not condition(shop, nim)["connected"], f"{nim} away")
        refused = shop.certify(invoice("meanwhile"), nim=nim)
        assert (refused.status_code, refused.json()["code"]) == (503, "BRIDGE_OFFLINE")
        assert refused.headers["retry-after"]
        # On a busy box the first thing noticed may be that it does not answer; why, the next try to reach it tells.
        wait_for(lambda: any(word in condition(shop, nim)["lastError"] for word in result.split("|")), result)
        back(machines[nim])
        wait_for(lambda: shop.certify(invoice("after"), nim=nim).status_code in (200, 409), f"{nim} back")

    over = Event()
    with ThreadPoolExecutor(len(OUTAGES) + 1) as threads:
        calm = threads.submit(certify_calmly, shop, over)
        outages = [threads.submit(go_and_come, nim) for nim in OUTAGES]
        try:
            for each in outages:
                each.result()
        finally:
            over.set()
        calm.result()
    shop.verify()


def certify_calmly(shop: Shop, over: Event) -> None:
    """Invoices on the fifth machine until `over`, and enough to say something."""
    for number in itertools.count():
        if over.wait(0.05) and number > ENOUGH:
            return
        with within(5, shop.pid):
            answer = shop.certify(invoice(f"calm-{number}"), nim=CALM)
        assert answer.status_code == 200, answer.text
