"""Several machines in one daemon: each with its own line, queue, numbers and trouble."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.shop import Machine, Shop, invoice, wait_for
from support.till import certified, fresh

ONE, TWO, THREE = "EL02000001-1", "EL02000002-2", "EL02000003-1"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    machines = tuple(Machine(folder, nim, f"0000000{at}A") for at, nim in enumerate((ONE, TWO, THREE), 1))
    with Shop(folder, machines=machines) as shop:
        yield shop.start()


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
