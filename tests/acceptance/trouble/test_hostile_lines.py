"""The hostile family on a real line: a real daemon, a pseudo-terminal, and a till that asks again until it has its receipt.

All lines at once, each with a shop of its own: most of the time is spent waiting for timers. The whole family, with other numbers,
is in tests/integration/test_recover_hostile.py.
"""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.crash.lane import QUICK_LINE, Lane, insist
from support.nursery import Nursery
from support.shop import invoice

pytestmark = pytest.mark.long

INVOICES = 25
LINES = {
    "three frames in a hundred spoiled": "spoil=3%",
    "38h never answered in time": "late:2@38=8%",
    "38h worked on beyond the deadline": "slow:1.5@38=6%",
    "the answer to 38h dropped three times": "drop-reply@38=40%",
    "pulled out at 38h": "unplug-before:0.3@38=4%,unplug:0.3@38=6%,unplug-after:0.3@38=4%",
    "power cut before and after 38h is executed": "cut-before:0.3@38=5%,cut-executed:0.3@38=5%",
    "rebooted in the middle of an invoice": "cut-executed:0@31=3%,cut-before:0@35=3%,lose-invoice@33=3%",
    "rubbish in good frames": "nonsense@38=8%,nonsense@C1=4%",
}


def sell_everything(lane: Lane) -> None:
    """Invoices and Z until each has its answer; then the ledger is compared with the machine."""
    for each in range(INVOICES):
        body, key = lane.next_invoice(1000 + each, 500)
        insist(lambda body=body, key=key: lane.shop.certify(body, key=key), 200)
    insist(lambda: lane.shop.close_period(key="Z"), 201)
    lane.machine.order("faults", spec="")
    insist(lambda: lane.shop.certify(invoice("last"), key="last"), 200)
    lane.check()
    assert len(lane.certified) == INVOICES + 1
    closure = lane.shop.close_period(key="Z").json()
    assert (closure["certs_count"], closure["unexplained"]) == (INVOICES, 0)


def test_every_invoice_once_over_real_lines_that_are_hostile(tmp_path: Path, nursery: Nursery) -> None:
    """Line faults, power cuts, cables, reboots: one shop for each, all at once."""
    seeds = random.SystemRandom()

    def one_line(line: str) -> None:
        seed = seeds.randrange(10**6)
        try:
            with Lane(
                tmp_path / str(list(LINES).index(line)), nursery, per_machine=QUICK_LINE, hurry={"beats": False}
            ) as lane:
                lane.machine.order("faults", spec=LINES[line], seed=seed)
                sell_everything(lane)
        except BaseException as error:
            error.add_note(f"over the line {line!r}, seed {seed}")
            raise

    with ThreadPoolExecutor(len(LINES)) as threads:
        for done in [threads.submit(one_line, line) for line in LINES]:
            done.result()
