"""`mcfd run` as a process: its configuration, its end, its log, its health."""

import json
import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.processor import within
from support.shop import BIN, NIM, Shop, invoice, wait_for
from support.till import certified, fresh, invalid, problem

CUSTOMER = {
    "clientType": "PM",
    "ifu": "77777123X",
    "name": "Kouyaté Distinctive SARL",
    "address": "Rue Introuvable 12",
    "phone": "70123456",
    "email": "secret-buyer@example.bf",
}

GOOD = """
[storage]
path = "mcfd.sqlite3"

[[machine]]
nim = "EL02000015-1"
port = "machine"
"""


# -- configuration ------------------------------------------------------------------------------------------------------


def test_a_wrong_configuration_is_one_line_that_names_the_key(tmp_path: Path) -> None:
    """Before anything is opened: exit 2, one line, no traceback, no ledger made."""
    (tmp_path / "mcfd.toml").write_text(GOOD)
    done = run(tmp_path, MCFD_REPORTS_AGGREGATION_DELAY="soon")
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "MCFD_REPORTS_AGGREGATION_DELAY" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "mcfd.sqlite3").exists()


def run(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "mcfd"), "run", "--config", str(folder / "mcfd.toml")],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "en_US.UTF-8", **environ},
    )


# -- start and stop -----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_stop_waits_for_a_machine_at_work(tmp_path: Path) -> None:
    """Twelve seconds, as long as it sends SYNs (decision 38): the till gets its certification, exit 0."""
    with Shop(tmp_path) as shop, ThreadPoolExecutor(1) as till:
        machine = shop.start().machines[0]
        machine.order("fault", spec="syn-storm:12@38h#1")
        answer = till.submit(shop.certify, invoice(fresh()), key="stuck")
        wait_for(lambda: machine.order("snapshot", log=False)["struck"])
        assert shop.stop_daemon(signal.SIGTERM) == 0
        receipt = certified(answer.result())
        assert [entry["code"] for entry in machine.certified()] == [receipt["codeSecef"]]
        assert "Traceback" not in shop.log_file.read_text()


def test_a_second_signal_ends_the_stop_at_once(tmp_path: Path) -> None:
    """By that signal; the till's retry after the next start gets its certification, once."""
    with Shop(tmp_path) as shop, ThreadPoolExecutor(1) as till:
        shop.start()
        shop.machines[0].order("fault", spec="syn-storm:60@38h#1")
        body = invoice(fresh())
        answer = till.submit(shop.certify, body, key="stuck")
        wait_for(lambda: shop.machines[0].order("snapshot", log=False)["struck"])
        os.kill(shop.pid, signal.SIGTERM)
        wait_for(lambda: shop.events("daemon.stopping"))
        with within(5, *shop.pids):
            assert shop.stop_daemon() == -signal.SIGTERM
        with pytest.raises(httpx.HTTPError):
            answer.result()
        shop.machines[0].order("reboot", seconds=0.1)
        shop.start_daemon()
        receipt = certified(shop.certify(body, key="stuck"))
        assert [entry["code"] for entry in shop.machines[0].certified()] == [receipt["codeSecef"]]


def test_an_idle_daemon_stops_at_once(own_shop: Shop) -> None:
    """Exit 0, also with keep-alive connections open, and no line worse than `info`."""
    certified(own_shop.certify(invoice(fresh())))
    assert own_shop.stop_daemon(signal.SIGINT) == 0
    assert {line["level"] for line in log_lines(own_shop)} == {"info"}


def test_it_starts_without_its_machine_and_finds_it_later(tmp_path: Path) -> None:
    """Live at once, ready when the machine is; a till hears 503 meanwhile, and nothing has to be restarted."""
    with Shop(tmp_path) as shop:
        shop.start_daemon(ready=False)
        assert shop.http.get("/health/live").json()["status"] == "live"
        ready = shop.http.get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
        assert ready.json()["machines"][0]["lastError"]
        assert str(tmp_path) not in ready.text
        problem(shop.certify(invoice(fresh())), 503, "BRIDGE_OFFLINE")
        shop.machines[0].start()
        wait_for(lambda: shop.http.get("/health/ready").status_code == 200)
        certified(shop.certify(invoice(fresh())))


# -- the log ------------------------------------------------------------------------------------------------------------


def log_lines(shop: Shop) -> list[dict[str, Any]]:
    """Every line of the log is one JSON object."""
    return [json.loads(line) for line in shop.log_file.read_text().splitlines()]


def test_one_event_per_certification(shop: Shop) -> None:
    """With request_id, NIM, invoice number, and the durations of the line and of the whole, whatever its outcome."""
    machine, numbers = shop.machines[0], [fresh() for _ in range(4)]
    send(shop, numbers[0])
    machine.order("mode", mode="blocked")
    send(shop, numbers[1])
    machine.order("mode", mode="active")
    machine.order("fault", spec="unplug-before:0.2@33h#1")
    send(shop, numbers[2])
    wait_for(lambda: shop.http.get("/health/ready").status_code == 200)
    machine.order("fault", spec="unplug:0.2@38h#1")
    assert send(shop, numbers[3]) == 200  # the answer came with C1h, after the line was back
    found = [line for line in shop.events("certification.ended") if line["invoice_number"] in numbers]
    assert [(line["invoice_number"], line["outcome"]) for line in found] == [
        (numbers[0], "certified"),
        (numbers[1], "refused"),
        (numbers[2], "abandoned"),
        (numbers[3], "certified"),
    ]
    for line in found:
        assert (line["nim"], line["mode"], line["request_id"]) == (NIM, "live", "id-" + line["invoice_number"])
        assert line["duration_ms"] >= line["line_ms"] >= 0


def send(shop: Shop, number: str) -> int:
    return shop.certify(invoice(number), headers={"X-Request-ID": f"id-{number}"}).status_code


def test_neither_a_key_nor_a_customer_is_ever_logged(shop: Shop) -> None:
    """Through success, refusal, nonsense, a lost line, invalid bodies and wrong keys, at the level `debug`; and no file of the box
    holds the key."""
    shop.stop_daemon()
    shop.environ["MCFD_LOGS_LEVEL"] = "debug"
    shop.start_daemon()
    machine, body = shop.machines[0], {"customer": CUSTOMER, "operatorName": "Opératrice Cachée"}
    certified(shop.certify(invoice(fresh(), **body), key="idem-key-distinctive"))
    invalid(shop.certify(invoice(fresh(), **body, invoiceType="XX")))
    for spec in ("nonsense@33h#1", "nonsense@38h#1", "drop-reply@C3h#1", "unplug:0.2@38h#1"):
        machine.order("fault", spec=spec)
        shop.certify(invoice(fresh(), **body))
        wait_for(lambda: shop.http.get("/health/ready").status_code == 200)
    secret = shop.key()
    shop.http.get(f"/v1/me?key={secret}", headers={"Authorization": f"Bearer {secret}x", "Cookie": f"k={secret}"})
    shop.http.get(f"/{secret}", headers={"X-Request-ID": secret})
    shop.stop_daemon()
    log = shop.log_file.read_text()
    for text in (*CUSTOMER.values(), "Opératrice", "Article 0", "idem-key-distinctive", secret, secret[8:]):
        assert text == "PM" or text not in log, text
    for file in shop.folder.glob("mcfd.sqlite3*"):
        assert secret[8:].encode() not in file.read_bytes()
    assert log_lines(shop)
    shop.environ.pop("MCFD_LOGS_LEVEL")
    shop.start_daemon()


# -- health -------------------------------------------------------------------------------------------------------------


def test_health_needs_no_key_and_tells_none(shop: Shop) -> None:
    """`live` says the version; `ready` names each machine, what is wrong with it, its queue and its clock."""
    live = shop.http.get("/health/live").json()
    assert (live["status"], bool(re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+\S*", live["version"]))) == ("live", True)
    ready = shop.http.get("/health/ready")
    assert ready.status_code == 200
    (machine,) = ready.json()["machines"]
    assert {name: machine[name] for name in ("nim", "ready", "connected", "attention", "lastError", "waiting")} == {
        "nim": NIM,
        "ready": True,
        "connected": True,
        "attention": "",
        "lastError": "",
        "waiting": 0,
    }
    # The machine tells whole seconds: with an answer that a busy box hears half a second late, it is two. Each look measures it anew.
    wait_for(lambda: abs(shop.http.get("/health/ready").json()["machines"][0]["clockDrift"]) <= 1, "the clock")
    assert "ak_" not in ready.text
