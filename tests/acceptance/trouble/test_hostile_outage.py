"""A machine that goes away: noticed within 5 s, back within 5 s of its return, without a restart, and no other machine minds."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.nursery import Nursery
from support.shop import Machine, Shop, invoice, wait_for

pytestmark = pytest.mark.long

IN_TIME = 20.0  # about a second on a quiet box; a busy one takes its time
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


def seconds_until(condition: Callable[[], Any]) -> float:
    began = time.monotonic()
    wait_for(condition, patience=4 * IN_TIME)
    return time.monotonic() - began


def test_an_idle_machine_that_goes_away_is_noticed_and_taken_back(shop: Shop) -> None:
    """Four ways to go away, at the same time, with nobody asking anything of those machines; a fifth machine works on meanwhile."""
    machines = {machine.nim: machine for machine in shop.machines}
    for nim in machines:
        assert shop.certify(invoice("before"), nim=nim).status_code == 200

    def go_and_come(nim: str) -> None:
        away, back, result = OUTAGES[nim]
        away(machines[nim])
        assert seconds_until(lambda: not condition(shop, nim)["connected"]) < IN_TIME
        refused = shop.certify(invoice("meanwhile"), nim=nim)
        assert (refused.status_code, refused.json()["code"]) == (503, "BRIDGE_OFFLINE")
        assert refused.headers["retry-after"]
        # On a busy box the first thing noticed may be that it does not answer; why, the next try to reach it tells.
        wait_for(lambda: any(word in condition(shop, nim)["lastError"] for word in result.split("|")), result)
        back(machines[nim])
        assert seconds_until(lambda: shop.certify(invoice("after"), nim=nim).status_code in (200, 409)) < IN_TIME

    over, slowest = Event(), 0.0
    with ThreadPoolExecutor(len(OUTAGES) + 1) as threads:
        calm = threads.submit(certify_calmly, shop, over)
        outages = [threads.submit(go_and_come, nim) for nim in OUTAGES]
        try:
            for each in outages:
                each.result()
        finally:
            over.set()
        count, slowest = calm.result()
    assert count > ENOUGH
    assert slowest < IN_TIME / 4
    shop.verify()


def certify_calmly(shop: Shop, over: Event) -> tuple[int, float]:
    """Invoices on the fifth machine until `over`, and enough to say something; how many, and how long the slowest took."""
    count, slowest = 0, 0.0
    while not over.wait(0.05) or count <= ENOUGH:
        began = time.monotonic()
        answer = shop.certify(invoice(f"calm-{count}"), nim=CALM)
        assert answer.status_code == 200, answer.text
        count += 1
        slowest = max(slowest, time.monotonic() - began)
    return count, slowest
