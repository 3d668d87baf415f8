"""Decisions 22 and 23: keys as `mcfd keys` makes and revokes them beside the running daemon, and the sandbox."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from string import ascii_letters, digits
from typing import Any

import httpx
import pytest
from support.shop import NIM, Machine, Shop, invoice, wait_for
from support.till import certified, fresh, invalid, problem

from daemon.operations import CreateKey

OTHER = "EL02000077-1"
BASE62 = digits + ascii_letters


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    with Shop(folder, machines=(Machine(folder), Machine(folder, OTHER, "00099999Z"))) as shop:
        yield shop.start()


def create(shop: Shop, *options: str, nim: str = NIM) -> str:
    done = shop.mcfd("keys", "create", "--nim", nim, *options, check=True)
    assert re.fullmatch(r"\S+\n", done.stdout), "the key alone on stdout"
    return done.stdout.strip()


def another(shop: Shop) -> str:
    """A live key, without the command line."""
    return shop.change(CreateKey(NIM, "live", "till"))


def me(shop: Shop, key: str) -> httpx.Response:
    return shop.http.get("/v1/me", headers={"Authorization": f"Bearer {key}"})


def listed(shop: Shop, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shop.mcfd("keys", "list", "--json", *options, check=True).stdout)
    return found


@pytest.mark.parametrize(("options", "prefix"), [((), "ak_live_"), (("--test",), "ak_test_")])
def test_decision_22_a_key_has_its_shape(shop: Shop, options: tuple[str, ...], prefix: str) -> None:
    """The prefix, 32 random base62 characters, and 6 of checksum, here computed by hand."""
    key = create(shop, *options)
    assert re.fullmatch(prefix + "[0-9A-Za-z]{38}", key)
    rest, digits6 = zlib.crc32(key[:-6].encode()), ""
    for _ in range(6):
        rest, digit = divmod(rest, 62)
        digits6 = BASE62[digit] + digits6
    assert key.endswith(digits6)


def test_decision_22_a_mistyped_key_is_told_from_a_wrong_one(shop: Shop) -> None:
    """Both are 401; the words differ."""
    key = another(shop)
    mistyped = key[:-1] + ("a" if key[-1] != "a" else "b")
    revoked = another(shop)
    revoke(shop, revoked)
    rows = [problem(me(shop, text), 401, "UNAUTHENTICATED")["detail"] for text in (mistyped, revoked)]
    assert "mistyped" in rows[0]
    assert "revoked" in rows[1]


def revoke(shop: Shop, key: str) -> None:
    number = me(shop, key).json()["id"]
    assert shop.mcfd("keys", "revoke", number).returncode == 0


def test_decision_22_only_a_hash_is_stored_and_the_key_is_shown_once(shop: Shop) -> None:
    """Neither the ledger's files, nor the log, nor `keys list` have it; the list has its label, NIM and mode."""
    key = create(shop, "--label", "caisse 7")
    expected = {"label": "caisse 7", "mode": "live", "nim": NIM, "connected": True}
    assert me(shop, key).json().items() >= expected.items()
    files = [shop.log_file, *(file for file in shop.folder.glob("mcfd.sqlite3*") if file.is_file())]
    assert len(files) >= 3
    secret = key.removeprefix("ak_live_").encode()
    assert not [file for file in files if secret in file.read_bytes()]
    output = shop.mcfd("keys", "list").stdout
    assert secret.decode() not in output
    assert "caisse 7" in output


def test_decision_22_a_nim_has_several_keys_each_for_one_nim(shop: Shop) -> None:
    """For rotation: the old one and the new one work side by side, on their NIM only."""
    old, new = another(shop), another(shop)
    assert me(shop, old).status_code == me(shop, new).status_code == 200
    for key in (old, new):
        headers = {"Authorization": f"Bearer {key}"}
        assert shop.http.get(f"/v1/mcf/{NIM}/reports/x", headers=headers).status_code == 200
        answer = shop.http.get(f"/v1/mcf/{OTHER}/reports/x", headers=headers)
        problem(answer, 403, "NIM_NOT_IN_SCOPE")


def test_decision_22_a_screen_whose_key_is_revoked_hears_nothing_more(shop: Shop) -> None:
    """A stream of events may have been open for days; the next event ends it instead of being told."""
    key = another(shop)
    watching = {"Authorization": f"Bearer {key}"}
    with shop.http.stream("GET", f"/v1/mcf/{NIM}/events", headers=watching) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        revoke(shop, key)
        certified(shop.certify(invoice(fresh())))
        assert not [line for line in lines if line.startswith("event:")]


def test_decision_22_keys_made_and_revoked_beside_the_daemon_count_at_once(shop: Shop) -> None:
    """A key works with the first request after `keys create`, and not with the first after `keys revoke`; others go on."""
    key, other = create(shop), another(shop)
    headers = {"Authorization": f"Bearer {key}"}
    url = f"/v1/mcf/{NIM}/certify"
    certified(shop.http.post(url, json=invoice(fresh()), headers=headers))
    revoke(shop, key)
    answer = shop.http.post(url, json=invoice(fresh()), headers=headers)
    problem(answer, 401, "UNAUTHENTICATED")
    assert me(shop, other).status_code == 200
    assert not [found for found in listed(shop) if found["revoked_at"]]
    assert [found for found in listed(shop, "--all") if found["revoked_at"]]


# -- 23 -----------------------------------------------------------------------------------------------------------------


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


def test_decision_23_the_same_rules(shop: Shop) -> None:
    """Validation, duplicates, idempotency, specific tax, credit notes: as live."""
    body = invoice(fresh())
    first = shop.certify(body, mode="test", key="sandbox-1")
    assert shop.certify(body, mode="test", key="sandbox-1").content == first.content
    problem(shop.certify(body, mode="test"), 409, "DUPLICATE_INVOICE")
    assert "items" in invalid(shop.certify({**body, "items": []}, mode="test"))
    reference = f"{NIM}-{certified(first)['fvc']}"
    credit = invoice(fresh(), 15000, invoiceType="FA", creditNoteRef=reference)
    assert certified(shop.certify(credit, mode="test", path="credit-note"))["frc"] == 1
    again = {**credit, "invoiceNumber": fresh()}
    problem(shop.certify(again, mode="test", path="credit-note"), 409, "CREDIT_EXCEEDS_ORIGINAL")


def test_decision_23_an_idempotency_key_is_of_one_mode(shop: Shop) -> None:
    """The same key on the live machine stands for nothing that the sandbox did."""
    body, key = invoice(fresh()), fresh()
    test = certified(shop.certify(body, mode="test", key=key))
    live = certified(shop.certify(body, key=key))
    assert live["codeSecef"] != test["codeSecef"]


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


def test_decision_23_the_sandbox_goes_on_after_a_restart(shop: Shop) -> None:
    """Its counters, its numbers and its Z numbers are kept, apart from the live ones."""
    number = fresh()
    before = certified(shop.certify(invoice(number), mode="test"))
    shop.stop_daemon()
    shop.start_daemon()
    problem(shop.certify(invoice(number), mode="test"), 409, "DUPLICATE_INVOICE")
    after = certified(shop.certify(invoice(fresh()), mode="test"))
    assert (after["tc"], after["fvc"]) == (before["tc"] + 1, before["fvc"] + 1)


def test_decision_23_each_machine_has_a_sandbox_of_its_own(shop: Shop) -> None:
    """What one till tries out, the other's sandbox does not show."""
    receipt = certified(shop.certify(invoice(fresh()), mode="test", nim=OTHER))
    assert (receipt["nim"], receipt["tc"]) == (OTHER, 1)
