"""The groups of faults that once broke the promise, as a shop sees them from outside: HTTP, `mcfd`, and a machine that does what it does.

How each happens inside, step by step, is in tests/integration/test_attempt_*.py; in which other orders, in tests/simulation.
"""

from __future__ import annotations

import resource
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import pytest
from support.crash.lane import QUICK_LINE, Lane, insist
from support.nursery import Nursery
from support.shop import NIM, invoice, wait_for

CLOSE = 6
"""38h of an invoice of one item, counted from C3h."""
SECOND = "EL02000015-2"


@pytest.fixture
def lane(request: pytest.FixtureRequest, tmp_path: Path, nursery: Nursery) -> Iterator[Lane]:
    """Its machine is looked at more often than any, but where the test holds it at a frame that it counts."""
    hurry = {"beats": getattr(request, "param", "") != COUNTED}
    with Lane(tmp_path / "lane", nursery, per_machine=QUICK_LINE, hurry=hurry) as lane:
        yield lane


COUNTED = "frames are counted"
counts_frames = pytest.mark.parametrize("lane", [COUNTED], indirect=True)


def numbers(lane: Lane) -> list[str]:
    return [entry["number"] for entry in lane.machine.certified()]


def sold(lane: Lane, number: str, *prices: int) -> str:
    """The code."""
    answer = lane.shop.certify(invoice(number, *prices), key=f"key of {number}")
    assert answer.status_code == 200, answer.text
    code: str = answer.json()["codeSecef"]
    return code


def credit_note(lane: Lane, number: str, amount: int, reference: str) -> httpx.Response:
    return lane.shop.certify(invoice(number, amount, invoiceType="FA", creditNoteRef=reference), path="credit-note")


@counts_frames
def test_1_a_stop_during_disk_trouble_loses_no_certification(lane: Lane) -> None:
    """A is certified while the disk takes nothing, B waits, A's till asks again, and the daemon is stopped: the machine has A alone, and
    after the start A's till gets its certification and B is certified."""
    with ThreadPoolExecutor(3) as tills:
        lane.machine.order("pause-at", next=CLOSE, when="before", direction="in")
        tasks = [tills.submit(lane.shop.certify, invoice("A"), key="key of A")]
        wait_for(lane.machine.is_stopped, "38h of A")
        limit = resource.prlimit(lane.shop.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(lane.shop.pid, resource.RLIMIT_FSIZE, (0, limit[1]))
        tasks += [tills.submit(lane.shop.certify, invoice(number), key=f"key of {number}") for number in ("A", "B")]
        lane.machine.order("resume")
        wait_for(lambda: numbers(lane) == ["A"], "A on the machine")
        lane.shop.stop_daemon(signal.SIGTERM)
        for till in tasks:
            till.exception()  # what it is told at such a stop is anything but a certification of B
    lane.start()
    assert numbers(lane) == ["A"]
    code = sold(lane, "A")
    assert code == lane.machine.certified()[0]["code"]
    sold(lane, "B")
    lane.check()


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


def test_4_8_10_another_activation_goes_on_in_the_same_book(lane: Lane) -> None:
    """A technician resets the machine, and it comes back as -2: a number of before is a duplicate, Z numbers go on, and a credit note
    finds the sale that its reference names; one beyond every counter is the machine's to refuse."""
    sold(lane, "F-1", 1000)
    assert lane.shop.close_period().json()["z_number"] == 1
    lane.machine.order("silence")
    lane.machine.order("counters", tc=0, fvc=0, frc=0)
    lane.machine.order("reboot", seconds=0.1, nim=SECOND)
    wait_for(lambda: lane.shop.events("machine.activated"), "the new activation", patience=60)
    insist(partial(lane.shop.certify, invoice("F-2", 4000), key="key of F-2"), 200)
    again = lane.shop.certify(invoice("F-1", 1000))
    assert (again.status_code, again.json()["code"]) == (409, "DUPLICATE_INVOICE")
    assert credit_note(lane, "K-1", 1001, f"{NIM}-1").json()["code"] == "CREDIT_EXCEEDS_ORIGINAL"
    assert credit_note(lane, "K-2", 4001, f"{SECOND}-1").json()["code"] == "CREDIT_EXCEEDS_ORIGINAL"
    assert credit_note(lane, "K-3", 4000, f"{SECOND}-1").status_code == 200
    assert credit_note(lane, "K-4", 1, f"{SECOND}-{10**17}").json()["code"] == "MACHINE_REFUSED"
    assert lane.shop.close_period().json()["z_number"] == 2
    lane.shop.verify()


def test_6_what_an_older_backup_does_not_know_stays_given_and_revoked(lane: Lane, tmp_path: Path) -> None:
    """Z 1 and the end of a key come after the backup that is put back over the newer ledger: the next Z is 2, the key opens nothing, and
    `mcfd verify` is clean with the gap in it."""
    sold(lane, "F-1")
    old = lane.shop.key()
    assert lane.mcfd("backup", str(tmp_path / "saved"))[0] == 0
    assert lane.shop.close_period().json()["z_number"] == 1
    assert lane.mcfd("keys", "revoke", "1")[0] == 0
    lane.shop.stop_daemon()
    assert lane.mcfd("restore", str(tmp_path / "saved"), "--yes")[0] == 0
    lane.start()
    headers = {"Authorization": f"Bearer {old}"}
    assert lane.shop.http.get(f"/v1/mcf/{NIM}/reports/x", headers=headers).status_code == 401
    lane.shop._keys.clear()
    closure = lane.shop.close_period().json()
    assert (closure["z_number"], closure["certs_count"]) == (2, 1)
    lane.shop.verify()


@counts_frames
def test_10_what_else_a_shop_met(lane: Lane) -> None:
    """One day: another program leaves an invoice open, and our sale is certified all the same. The machine rounds another way, so a payment is adjusted, and the till is told. A kill with two tills waiting leaves one incomplete sale,
    not three. Another program's last invoice has a comma and no code, and sales go on. And the ledger's file is lost: an operator is asked, while
    nothing is certified; `not-certified` is no answer to that; after `adopt` the shop goes on, and no Z number comes twice."""
    lane.machine.order("leave-open")
    sold(lane, "F-0")
    assert lane.shop.events("machine.left_open")
    assert numbers(lane) == ["F-0"]

    lane.machine.order("options", vat="down")
    item = {"name": "Riz", "taxGroup": "B", "unitPrice": 103, "quantity": 1}
    sale = {"items": [item], "priceMode": "HT", "payments": [{"method": "E", "amount": 122}]}
    answer = lane.shop.certify(invoice("F-1", **sale))
    assert (answer.json()["totalTtc"], [w["code"] for w in answer.json()["warnings"]]) == (121, ["PAYMENT_ADJUSTED"])

    lane.machine.order("pause-at", next=1, when="before", direction="in")
    with ThreadPoolExecutor(3) as tills:
        tasks = [tills.submit(lane.shop.certify, invoice(f"K-{n}"), key=f"key of K-{n}") for n in range(3)]
        wait_for(lane.machine.is_stopped, "C3h")
        wait_for(lambda: intents(lane) == 3, "three intents")
        lane.shop.kill_daemon()
        for till in tasks:
            assert till.exception()
    lane.machine.order("resume")
    lane.start()
    assert lane.shop.x_with(2)["incomplete"] == 1

    lane.machine.order("options", numbers="comma", no_codes=True)
    lane.machine.order("foreign-invoice", total=700)
    wait_for(lambda: lane.shop.events("machine.unexplained"), "the look at the machine", patience=60)
    assert lane.shop.certify(invoice("F-2")).status_code == 200
    lane.machine.order("options", numbers="plain", no_codes=False)
    assert insist(lane.shop.close_period, 201).json()["z_number"] == 1

    sold(lane, "F-3")
    lane.shop.stop_daemon()
    for file in lane.shop.ledger.parent.glob(f"{lane.shop.ledger.name}*"):
        if not file.name.endswith(".high-water"):
            file.unlink()
    lane.shop._keys.clear()
    lane.shop.start_daemon(ready=False)
    wait_for(lambda: lane.shop.events("machine.attention"), "attention", patience=60)
    assert lane.shop.certify(invoice("F-4")).json()["code"] == "MACHINE_ATTENTION"
    settle = ("machine", "settle", NIM, "--reason", "the disk was lost", "--json", "--decision")
    assert lane.mcfd(*settle, "not-certified")[0] != 0
    code, output = lane.mcfd(*settle, "adopt")
    assert code == 0, output
    insist(partial(lane.shop.certify, invoice("F-4"), key="key of F-4"), 200)
    assert lane.shop.certify(invoice("F-3")).json()["code"] == "DUPLICATE_INVOICE"
    assert insist(lane.shop.close_period, 201).json()["z_number"] == 2
    lane.shop.verify()


def intents(lane: Lane) -> int:
    with closing(sqlite3.connect(lane.shop.ledger)) as ledger:
        (count,) = ledger.execute("SELECT count(*) FROM certification WHERE seq IS NULL").fetchone()
    return int(count)
