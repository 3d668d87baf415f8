"""A group of faults that once broke the promise, as a shop sees it from outside: HTTP, `mcfd`, and a machine that does what it does.

How the others happen inside, step by step, is in tests/integration/test_attempt_*.py; in which other orders, in tests/simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from support.crash.lane import QUICK_LINE, Lane, insist
from support.nursery import Nursery
from support.shop import invoice, wait_for


@pytest.fixture
def lane(tmp_path: Path, nursery: Nursery) -> Iterator[Lane]:
    """Its machine is looked at more often than any."""
    with Lane(tmp_path / "lane", nursery, per_machine=QUICK_LINE, hurry={"beats": True}) as lane:
        yield lane


def numbers(lane: Lane) -> list[str]:
    return [entry["number"] for entry in lane.machine.certified()]


def test_2_a_line_that_comes_and_goes_under_a_queue_of_tills(lane: Lane) -> None:
    """Six tills insist while the cable is pulled again and again: each invoice once, and none is abandoned that was certified."""
    with ThreadPoolExecutor(6) as tills:
        tasks = [
            tills.submit(insist, partial(lane.shop.certify, invoice(f"F-{n}"), key=f"key of F-{n}"), 200)
            for n in range(24)
        ]
        for count in (3, 6, 9, 12):
            wait_for(lambda count=count: len(numbers(lane)) >= count, "sales", patience=60)
            lane.machine.order("unplug", seconds=0.05)
        answers = [till.result() for till in tasks]
    codes = {entry["number"]: entry["code"] for entry in lane.machine.certified()}
    assert {a.json()["invoiceNumber"]: a.json()["codeSecef"] for a in answers} == codes
    lane.check()
