"""Decisions 22 and 23: keys as `mcfd keys` makes and revokes them beside the running daemon, and the sandbox."""

import re

import httpx
from support.shop import NIM, Shop, invoice, wait_for
from support.till import certified, fresh, problem

from daemon.operations import CreateKey


def me(shop: Shop, key: str) -> httpx.Response:
    return shop.http.get("/v1/me", headers={"Authorization": f"Bearer {key}"})


def revoke(shop: Shop, key: str) -> None:
    number = me(shop, key).json()["id"]
    assert shop.mcfd("keys", "revoke", number).returncode == 0


def test_decision_22_a_screen_whose_key_is_revoked_hears_nothing_more(shop: Shop) -> None:
    """A stream of events may have been open for days; the next event ends it and is not sent."""
    key = shop.change(CreateKey(NIM, "live", "till"))
    watching = {"Authorization": f"Bearer {key}"}
    with shop.http.stream("GET", f"/v1/mcf/{NIM}/events", headers=watching) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        revoke(shop, key)
        certified(shop.certify(invoice(fresh())))
        assert not [line for line in lines if line.startswith("event:")]


def test_decision_23_the_sandbox_stands_beside_the_live_machine(own_shop: Shop) -> None:
    """Behind the same NIM: codes with TESTFACT, its own numbers, counters, periods, Z numbers and history."""
    number = fresh()
    live, test = (
        certified(own_shop.certify(invoice(number, 100))),
        certified(own_shop.certify(invoice(number, 200), mode="test")),
    )
    assert not live["codeSecef"].startswith("TESTFACT")
    assert re.fullmatch("TESTFACT[A-Z0-9]{16}", test["codeSecef"])
    assert test["nim"] == live["nim"] == NIM
    assert (test["tc"], test["fvc"]) == (1, 1)
    own_shop.close_period()
    z = own_shop.close_period(mode="test").json()
    assert (z["z_number"], z["certs_count"], z["total_ttc"], z["mcf_counters"]) == (
        1,
        1,
        200,
        {"tc": 1, "fvc": 1, "frc": 0},
    )
    assert own_shop.get("reports", mode="test").json()["count"] == 1
    assert own_shop.get("reports/a", mode="test").json()["total_ttc"] == 200
    assert own_shop.get("reports/x", mode="test").json()["certs_count"] == 0
    info = own_shop.get("info", mode="test").json()
    assert (info["mode"], info["counters"]) == ("test", {"tc": 1, "fvc": 1, "frc": 0})
    own_shop.verify()


def test_decision_23_it_never_touches_the_serial_line(shop: Shop) -> None:
    """With the cable pulled it certifies and closes as ever, and the live machine has not heard of any of it."""
    machine = shop.machines[0]
    before = machine.counters
    machine.order("unplug")
    wait_for(lambda: not me(shop, shop.key()).json()["connected"])
    try:
        certified(shop.certify(invoice(fresh()), mode="test"))
        assert shop.close_period(mode="test").status_code == 201
        assert me(shop, shop.key("test")).json()["connected"] is True
        problem(shop.certify(invoice(fresh())), 503, "BRIDGE_OFFLINE")
    finally:
        machine.order("plug")
    wait_for(lambda: me(shop, shop.key()).json()["connected"])
    assert machine.counters == before
