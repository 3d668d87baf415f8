"""Several machines in one daemon: each with its own line, queue, numbers and trouble."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.processor import within
from support.shop import Machine, Shop, invoice, wait_for
from support.till import certified, fresh, problem

ONE, TWO, THREE = "EL02000001-1", "EL02000002-2", "EL02000003-1"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    machines = tuple(Machine(folder, nim, f"0000000{at}A") for at, nim in enumerate((ONE, TWO, THREE), 1))
    with Shop(folder, machines=machines) as shop:
        yield shop.start()


def ready(shop: Shop, nim: str) -> bool:
    machines = shop.http.get("/health/ready").json()["machines"]
    found: bool = next(machine["ready"] for machine in machines if machine["nim"] == nim)
    return found


def test_each_has_its_own_numbers(shop: Shop) -> None:
    """The same invoice number and Idempotency-Key on each: three certifications with that machine's IFU and counters; Z numbers
    count apart."""
    number, key = fresh(), fresh()
    last = {nim: shop.close_period(nim=nim).json()["z_number"] for nim in (ONE, TWO, THREE)}
    sold = [machine.counters[0] for machine in shop.machines]
    for at, nim in enumerate((ONE, TWO, THREE)):
        receipt = certified(shop.certify(invoice(number), nim=nim, key=key))
        assert (receipt["nim"], receipt["ifu"], receipt["tc"]) == (nim, f"0000000{at + 1}A", sold[at] + 1)
    for nim, count in ((ONE, 2), (TWO, 1)):
        numbers = [shop.close_period(nim=nim).json()["z_number"] for _ in range(count)]
        assert numbers == [last[nim] + more for more in range(1, count + 1)]
    assert shop.get("reports", nim=THREE).json()["count"] == last[THREE]
    assert shop.get("reports/x", nim=ONE).json()["certs_count"] == 0
    assert shop.x_with(1, nim=THREE)["total_ttc"] == 15000
    shop.verify()


def test_a_slow_machine_does_not_hold_up_the_others(shop: Shop) -> None:
    """While one takes seconds for an invoice of twenty items, another certifies ten."""
    slow = shop.machines[0]
    slow.order("think", ms=90)
    try:
        with ThreadPoolExecutor(1) as till:
            waiting = till.submit(shop.certify, invoice(fresh(), *[100] * 20), nim=ONE)
            wait_for(lambda: shop.http.get("/health/ready").json()["machines"][0]["waiting"])
            for _ in range(10):
                certified(shop.certify(invoice(fresh()), nim=TWO))
            assert not waiting.done()
            certified(waiting.result())
    finally:
        slow.order("think", ms=0)


def test_a_dead_machine_is_its_own_trouble(shop: Shop) -> None:
    """Its tills get 503, readiness names it, and the others neither wait nor stop; it comes back by itself."""
    dead = shop.machines[1]
    dead.kill()
    wait_for(lambda: not ready(shop, TWO))
    health = shop.http.get("/health/ready")
    assert (health.status_code, health.json()["status"]) == (503, "not ready")
    assert [machine["nim"] for machine in health.json()["machines"] if not machine["ready"]] == [TWO]
    problem(shop.certify(invoice(fresh()), nim=TWO), 503, "BRIDGE_OFFLINE")
    with within(5, *shop.pids):
        certified(shop.certify(invoice(fresh()), nim=ONE))
        assert shop.close_period(nim=THREE).status_code == 201
    dead.start()
    wait_for(lambda: ready(shop, TWO))
    certified(shop.certify(invoice(fresh()), nim=TWO))
    assert shop.http.get("/health/ready").status_code == 200


def test_a_machine_switched_off_is_left_alone(tmp_path: Path) -> None:
    """`enabled = false`: its line is not opened, live keys get 503, the sandbox works, and the box is ready."""
    with Shop(tmp_path, per_machine={"enabled": False}) as shop:
        shop.start()
        nim = shop.machines[0].nim
        detail = problem(shop.certify(invoice(fresh())), 503, "BRIDGE_OFFLINE")["detail"]
        assert "switched off" in detail
        certified(shop.certify(invoice(fresh()), mode="test"))
        assert shop.machines[0].order("snapshot", log=False)["frames"] == {"in": 0, "out": 0}
        assert nim in detail
