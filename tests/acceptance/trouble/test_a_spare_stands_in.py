"""A spare machine beside one that dies: real processes, the command line, the page, and tills that are not touched."""

import contextlib
import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from support.pair_shop import SPARE, PairShop, both, paired
from support.shop import NIM, Machine, invoice, wait_for
from support.till import certified, fresh

from daemon.operations import CreateKey

pytestmark = pytest.mark.long

TILLS, SALES = 8, 8
ASYNC_TILLS = (6, 7)
"""Tills that send `Prefer: respond-async`."""
PATIENCE = 120.0


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairShop]:
    with both(tmp_path_factory.mktemp("shop")) as shop:
        yield shop


def test_a_stream_of_events_goes_on_with_the_spare(shop: PairShop) -> None:
    """One that was open before the take-over: what its till's key is answered stands in it."""
    with shop.http.stream("GET", f"/v1/mcf/{NIM}/events", headers=shop.headers()) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        shop.take_over()
        try:
            sold = certified(shop.certify(invoice(fresh())))
            result = next(line for line in lines if line.startswith("data: ") and sold["codeSecef"] in line)
            assert SPARE in result
        finally:
            shop.take_back()


def test_a_box_is_ready_with_the_machine_that_is_in_use(shop: PairShop) -> None:
    """A spare may lie in the cupboard; a dead machine may lie beside its spare."""
    shop.spare.kill()
    wait_for(lambda: shop.connected() == {NIM}, "the spare away")
    assert shop.http.get("/health/ready").status_code == 200
    assert f"{SPARE} is not connected: plug it in" in shop.mcfd("machine", "take-over", NIM, "--reason", "x").stderr
    shop.take_back()
    doctor = shop.mcfd("doctor", "--json").stdout
    assert '"spare"' in doctor
    assert f"keys create --nim {SPARE}" not in doctor
    shop.spare.start()
    wait_for(lambda: shop.connected() == {NIM, SPARE}, "both machines")
    shop.first.kill()
    wait_for(lambda: shop.connected() == {SPARE}, "the machine away")
    assert shop.http.get("/health/ready").status_code == 503
    shop.take_over()
    assert f"{NIM} is not connected: plug it in" in shop.mcfd("machine", "take-back", NIM, "--reason", "x").stderr
    shop.take_over()
    try:
        ready = shop.http.get("/health/ready")
        assert ready.status_code == 200
        content = {machine["nim"]: machine for machine in ready.json()["machines"]}
        assert (content[NIM]["replacedBy"], content[SPARE]["standsFor"]) == (SPARE, NIM)
    finally:
        shop.first.start()
        wait_for(lambda: shop.connected() == {NIM, SPARE}, "both machines")
        shop.take_back()


def test_the_outage_of_a_dead_machine_is_declared_while_its_spare_stands_in(shop: PairShop) -> None:
    """The register at the machine's path is the machine's: its outage is listed, declared and notified of; that of the spare is at the spare's own path."""
    shop.first.kill()
    wait_for(lambda: NIM not in shop.connected(), "the machine's death")
    assert shop.certify(invoice(fresh())).status_code == 503
    register = wait_for(lambda: shop.get("outages").json()["outages"], "the outage")
    shop.take_over()
    try:
        listed = shop.get("outages").json()
        assert (listed["nim"], listed["outages"]) == (NIM, register)
        number = register[0]["id"]
        assert NIM in shop.get(f"outages/{number}/declaration").text
        for who in ("administration", "distributor"):
            notice = {"who": who, "reference": "DGI-118"}
            noted = shop.certify(notice, path=f"outages/{number}/notified")
            assert (noted.status_code, noted.json()["nim"]) == (201, NIM)
        (outage,) = shop.get("outages").json()["outages"]
        assert [notice["who"] for notice in outage["notified"]] == ["administration", "distributor"]
        assert f"{SPARE} certifies in the place of {NIM} since" in shop.mcfd("machine", "list").stdout
        of_spare = shop.get("outages", nim=SPARE).json()
        assert (of_spare["nim"], of_spare["outages"]) == (SPARE, [])
        assert f"spare machine {NIM}" in shop.mcfd("doctor").stdout
    finally:
        shop.first.start()
        wait_for(lambda: NIM in shop.connected(), "the machine's return")
        shop.take_back()


def test_the_receipt_of_a_regularised_sale_names_the_machine_whose_outage_it_was(shop: PairShop) -> None:
    """Each machine has a register of its own: sold while the spare stood in and was away too, certified by the machine that is back."""
    shop.take_over()
    shop.spare.kill()
    wait_for(lambda: SPARE not in shop.connected(), "the spare away")
    assert shop.certify(invoice("D-1"), key="k", headers={"Prefer": "respond-async"}).status_code == 202
    shop.take_back()
    wait_for(lambda: shop.get("requests/k").json()["status"] == "certified", "the regularisation")
    receipt = shop.get("requests/k").json()["receipt"]
    assert (receipt["nim"], receipt["deferred"]["outageNim"]) == (NIM, SPARE)
    (outage,) = shop.get("outages", nim=SPARE).json()["outages"]
    assert (outage["id"], outage["sales"]["count"]) == (receipt["deferred"]["outage"], 1)


def left_open(shop: PairShop) -> list[str]:
    """Machines of which the doctor says that a Z is still to be made."""
    checks = json.loads(shop.mcfd("doctor", "--json").stdout)["checks"]
    return [check["nim"] for check in checks if check["check"] == "left_open"]


def test_what_a_till_leaves_without_a_z_is_told(tmp_path: Path) -> None:
    """A till closes the book that is in use. What the other machine has certified since its last Z would come to no month and not to headquarters
    until somebody closes it: the doctor names that machine."""
    with both(tmp_path) as shop:
        certified(shop.certify(invoice("L-1")))
        shop.x_with(1)
        assert left_open(shop) == []
        shop.take_over()
        certified(shop.certify(invoice("L-2")))
        shop.x_with(1)
        assert left_open(shop) == [NIM]
        shop.take_back()
        assert shop.closed()["nim"] == NIM
        assert left_open(shop) == [SPARE]
        assert shop.close_period(nim=SPARE).json()["certs_count"] == 1
        assert left_open(shop) == []


def test_a_spare_of_another_taxpayer_is_refused(tmp_path: Path) -> None:
    """At first it is greeted and told to be in the way of nothing but itself; from then on the start is refused, in one line."""
    with both(tmp_path, "00099999Z") as shop:
        certified(shop.certify(invoice(fresh())))
        content = {machine["nim"]: machine for machine in shop.http.get("/health/ready").json()["machines"]}
        assert "another taxpayer" in content[SPARE]["attention"]
        done = shop.mcfd("machine", "take-over", NIM, "--reason", "x")
        assert done.returncode == 1
        assert "another taxpayer" in done.stderr
        shop.stop_daemon()
        shop.launch_daemon()
        assert shop.wait_for_exit() == 2
        (refused,) = shop.events("start.refused")
        assert SPARE in refused["reason"]


def test_a_machine_that_has_changed_hands_sells_beside_its_former_spare(tmp_path: Path) -> None:
    """Also after a restart, which is not refused for a spare that was of the same taxpayer; once that one has changed hands too, it takes over."""
    with both(tmp_path) as shop:
        certified(shop.certify(invoice(fresh())))
        change_hands(shop.first)
        wait_for(lambda: "EL02000015-2" in shop.connected(), "the other taxpayer")
        shop.use_key(shop.change(CreateKey(NIM, "live", "till")))
        certified(shop.certify(invoice(fresh())))
        shop.stop_daemon()
        shop.start_daemon()
        certified(shop.certify(invoice(fresh())))
        change_hands(shop.spare)
        wait_for(lambda: shop.connected() == {"EL02000015-2", "EL02000099-2"}, "the other taxpayer's spare")
        shop.take_over()
        assert certified(shop.certify(invoice(fresh())))["nim"] == "EL02000099-2"


def change_hands(machine: Machine) -> None:
    machine.order("options", ifu="00099999Z")
    machine.order("reboot", seconds=0.3, nim=machine.nim[:-1] + "2")


THEN = {"regime": "RNI", "accounts": ["BF074 1"]}
NOW = {"regime": "RSI", "accounts": ["BF074 2"]}


def test_what_either_machine_has_made_is_shown_and_printed_as_it_was(tmp_path: Path) -> None:
    """0047 art. 23: whatever the letterhead is called since, and whichever machine is in use: an invoice, a Z by its `report_id`, a closed report of
    articles; by the command line too."""
    with paired(tmp_path) as shop:
        shop.spare.kill()
        shop.configure(THEN)
        shop.start()
        shop.get("info")
        sale = certified(shop.certify(invoice("L-1")))
        shop.x_with(1)
        closed = shop.closed()
        assert shop.certify({}, path="reports/articles").status_code == 201
        paths = [f"certifications/{sale['codeSecef']}/ticket", f"reports/z/{closed['report_id']}/ticket"]
        before = [shop.get(path).text for path in (*paths, "reports/articles/1/ticket")]
        typed = shop.mcfd("report", "z", "1", "--nim", NIM, check=True).stdout
        assert "MAISON FASO" in typed
        shop.stop_daemon()
        shop.configure(NOW)
        shop.start_daemon()
        shop.spare.start()
        wait_for(lambda: shop.connected() == {NIM, SPARE}, "both machines")
        shop.take_over()
        certified(shop.certify(invoice("L-2")))
        of_spare = shop.closed()
        assert [shop.get(path).text for path in paths] == before[:2]
        assert shop.get(f"reports/z/{closed['report_id']}").json() == closed
        shop.take_back()
        assert shop.get("reports/articles/1/ticket").text == before[2]
        assert shop.get(f"reports/z/{of_spare['report_id']}").json() == of_spare
        paper = shop.get(f"reports/z/{of_spare['report_id']}/ticket").text
        assert SPARE in paper
        assert "RSI" in paper
        assert shop.mcfd("report", "z", "1", "--nim", NIM, check=True).stdout == typed


def sell(shop: PairShop, till: int, over: Event) -> list[dict[str, Any]]:
    """As tills are written: the same request with the same key until there is an answer. Some do not wait for it, and ask later what became of it."""
    headers = {"Prefer": "respond-async"} if till in ASYNC_TILLS else {}
    receipts = []
    for sale in range(SALES):
        body, key = invoice(f"T{till}-{sale}"), f"key {till} {sale}"
        until = time.monotonic() + PATIENCE
        while not over.is_set():
            assert time.monotonic() < until, f"{key} has no answer"
            with contextlib.suppress(httpx.HTTPError):
                answer = shop.certify(body, key=key, headers=headers)
                if answer.status_code == 200:
                    receipts.append(answer.json())
                    break
                assert answer.status_code in ((202, 503, 507) if headers else (503, 507)), answer.text
            over.wait(0.05)
        over.wait(0.05)
    return receipts


def test_a_busy_hour_in_which_the_machine_dies(tmp_path: Path) -> None:
    """Eight tills sell, the machine dies in the middle of it, the spare is plugged in and takes over, the daemon is killed before and after; the machine comes
    back and is taken back. No till is touched, and every key is certified once, on one machine or the other."""
    with paired(tmp_path) as shop, ThreadPoolExecutor(TILLS) as pool:
        shop.spare.kill()
        shop.start()
        wait_for(lambda: shop.connected() == {NIM}, "the machine")
        shop.key()
        over = Event()
        tills = [pool.submit(sell, shop, till, over) for till in range(TILLS)]
        try:
            wait_for(lambda: shop.first.counters[1] >= TILLS, "a busy hour")
            shop.first.kill()
            shop.kill_daemon()
            shop.start_daemon(ready=False)
            shop.spare.start()
            wait_for(lambda: shop.connected() == {SPARE}, "the spare")
            shop.take_over()
            wait_for(lambda: shop.spare.counters[1] >= TILLS, "sales at the spare")
            shop.kill_daemon()
            shop.start_daemon(ready=False)
            at_spare = shop.spare.counters[1]
            wait_for(lambda: shop.spare.counters[1] > at_spare, "sales at the spare after a restart")
            shop.first.start()
            wait_for(lambda: NIM in shop.connected(), "the machine back")
            shop.take_back()
            receipts = [receipt for till in tills for receipt in till.result(timeout=PATIENCE)]
        finally:
            over.set()
        assert len({receipt["invoiceNumber"] for receipt in receipts}) == TILLS * SALES
        assert len({receipt["codeSecef"] for receipt in receipts}) == TILLS * SALES
        assert shop.first.counters[1] + shop.spare.counters[1] == TILLS * SALES
        by_machine = {nim: sum(receipt["nim"] == nim for receipt in receipts) for nim in (NIM, SPARE)}
        assert by_machine == {NIM: shop.first.counters[1], SPARE: shop.spare.counters[1]}
        assert shop.stop_daemon(signal.SIGTERM) == 0
        shop.verify()
