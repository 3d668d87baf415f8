"""Outages and sales that wait, as people see them: the register and its declaration, and warnings at 24 and at 40 hours."""

import asyncio
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest
from support.browser import Visitor, create_users, staffed_shop
from support.ledgers.ledger import Till
from support.ledgers.ledger import invoice as sale
from support.receivers.headquarters import HttpHeadquarters
from support.shop import NIM, Machine, Shop, invoice, wait_for

from common.language import Text
from daemon.store.store import Store

pytestmark = pytest.mark.long

HOUR = 3_600_000


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[Shop]:
    """A shop with people, whose machine has died: a sale is taken on to be certified later."""
    with staffed_shop(tmp_path, "manager", "reader", per_machine={"when_out_of_order": "defer"}) as shop:
        shop.machines[0].kill()
        wait_for(lambda: not shop.is_ready(), "the machine's death")
        assert shop.certify(invoice("waits")).status_code == 202
        assert shop.get("outages").json()["count"] == 1
        yield shop


def state_of(shop: Shop, role: str = "reader") -> str:
    """The banner, with plain spaces and letters."""
    with Visitor(shop, role) as client:
        return unescape(client.look("/ui/state")).replace("\N{NO-BREAK SPACE}", " ")


def finding(shop: Shop, check: str) -> dict[str, str]:
    """Of `mcfd doctor`."""
    checks = json.loads(shop.mcfd("doctor", "--json").stdout)["checks"]
    (found,) = (each for each in checks if each["check"] == check)
    return found


def test_an_outage_is_shown_declared_and_noted(dead: Shop) -> None:
    """The list with what was sold meanwhile, the paper to sign in French, and who was notified, once; a reader looks only."""
    with Visitor(dead, "manager") as client:
        screen = client.get("/ui/outages").text
        assert screen.count('data-testid="outage"') == 1
        for part in ("Panne n° 1", "dure encore", "15 000", "été prévenu"):
            assert part in screen.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " "), screen
        paper = client.get("/ui/paper/outage/1").text
        for part in (
            "DÉCLARATION DE DYSFONCTIONNEMENT",
            "article 7 c",
            "Signature et cachet",
            "1 vente faite entre-temps",
            "15 000 F CFA",
        ):
            assert part in paper.replace("\N{NO-BREAK SPACE}", " "), paper
        assert client.get("/ui/paper/outage/1", params={"form": "pdf"}).content.startswith(b"%PDF")
        assert client.get("/ui/paper/outage/7").status_code == 404
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M}"
        form = {"who": "administration", "reference": "DGI-118", "at": at}
        for _ in range(2):
            assert client.post("/ui/outages/1", data=form).status_code == 303
        assert client.get("/ui/outages").text.count("DGI-118") == 1
        for wrong in ({"reference": ""}, {"reference": "DGI-119", "at": "2026-01-01T08:30"}):
            assert client.post("/ui/outages/1", data={**form, **wrong}).status_code == 422
    (outage,) = dead.get("outages").json()["outages"]
    assert outage["notified"] == [{"who": "administration", "reference": "DGI-118", "at": f"{at}:00.000Z"}]
    with Visitor(dead, "reader") as client:
        assert 'name="reference"' not in client.get("/ui/outages").text
        assert client.post("/ui/outages/1", data=form).status_code == 403


def test_a_sale_by_hand_waits_as_those_of_tills_do(dead: Shop) -> None:
    """The banner says that the till can sell: so can the page, which shows the slip for the customer; sent twice it is one sale, with a number of
    the page's series, and it is certified once the machine is back."""
    form = {"key": "out", "name1": "Natte", "price1": "1250", "group1": "A", "client": "CC", "method": "E"}
    number = f"MAIN-FV-{datetime.now(UTC).year}-000001"
    with Visitor(dead, "manager", follow_redirects=True) as client:
        for _ in range(2):
            answer = client.post("/ui/sale", data=form)
            assert (answer.status_code, answer.url.path) == (200, "/ui/waiting")
            assert 'role="status"' in answer.text
            assert answer.text.count(f">{number}<") == 1
        slip = re.search(rf'href="(/f/[^"]+)">{number}<', answer.text)
        assert "SANS VALEUR FISCALE" in client.get(slip[1]).text
        dead.machines[0].start()
        wait_for(lambda: len(dead.machines[0].certified()) == 2, "both sales")
        assert dead.machines[0].certified()[-1]["number"] == number
        wait_for(lambda: client.post("/ui/sale", data=form).url.path.startswith("/ui/journal/"), "the invoice")


@pytest.mark.parametrize(("limit", "is_long"), [(0.5, True), (300.0, False)])
def test_an_outage_that_is_over_is_still_to_be_notified(tmp_path: Path, limit: float, is_long: bool) -> None:
    """The law wants both notified at once (7 c), and the machine may be back before anybody reads the page: it says so until it is noted, to
    who may note it. A till that was refused for a second is no reason."""
    with staffed_shop(tmp_path, "manager", "seller", per_machine={"outage_after": limit}) as shop:
        shop.machines[0].kill()
        wait_for(lambda: shop.certify(invoice("refused")).status_code == 503, "an outage")
        begun = time.monotonic()
        wait_for(lambda: time.monotonic() - begun > 1, "an outage that lasts")
        shop.machines[0].start()
        wait_for(lambda: shop.get("outages").json()["outages"][0]["to"], "its end")
        with Visitor(shop, "manager") as manager, Visitor(shop, "seller") as seller:
            assert ("unnotified" in manager.look("/ui/")) == is_long
            assert "unnotified" not in seller.look("/ui/")
            assert manager.submit("/ui/outages/1", who="administration", reference="DGI-1").status_code == 303
            assert "unnotified" not in manager.look("/ui/")


def test_of_many_outages_each_is_reached(tmp_path: Path) -> None:
    """Twenty on a screen, the newest first, and the older ones behind a link."""
    first = int(datetime.now(UTC).timestamp() * 1000) - 100 * HOUR

    async def write() -> None:
        async with await Store.open(shop.ledger, timezone=UTC, reserve_bytes=0) as store:
            till = await Till.of(store)
            for at in range(first, first + 45 * HOUR, HOUR):
                await store.ledger.begin_outage(
                    till.book, "no_answer", at=at, lasted=0, refused=True, incident="", is_over=False
                )
                await store.ledger.end_outage(till.book, at=at + HOUR // 2, until=at + HOUR // 2)

    with Shop(tmp_path) as shop:
        asyncio.run(write())
        shop.start()
        create_users(shop, ("reader",))
        with Visitor(shop, "reader") as client:
            numbers, link = [], "/ui/outages"
            while link:
                screen = client.get(link).text
                numbers.append(re.findall(r"Panne n° (\d+)", screen))
                found = re.search(r'href="(/ui/outages[^"]*page=\d+)"', screen)
                link = unescape(found[1]) if found else ""
    assert [len(each) for each in numbers] == [20, 20, len(numbers[2])]
    assert [int(number) for each in numbers for number in each][-45:] == list(range(45, 0, -1))


@pytest.mark.parametrize(
    ("hours", "level", "banner"),
    [(23, "ok", "amber"), (25, "warn", "amber"), (39, "warn", "amber"), (41, "fail", "bad"), (48, "fail", "bad")],
)
def test_a_sale_that_waits_for_long_is_told_everywhere(dead: Shop, hours: int, level: str, banner: str) -> None:
    """The law leaves 48 hours: amber from 24, red from 40, on the banner, by `mcfd doctor` and as a metric."""
    dead.stop_daemon()
    with closing(sqlite3.connect(dead.ledger)) as connection, connection:
        connection.execute("UPDATE deferred SET sold_at = sold_at - ?", (hours * HOUR,))
    dead.start_daemon(ready=False)
    state = state_of(dead)
    assert f'data-level="{banner}"' in state, state
    left = f"il reste {48 - hours - 1} heures" if hours < 48 else "les 48 heures de la loi sont passées"
    assert left in state, state
    (seconds,) = re.findall(r"(?m)^mcfd_deferred_oldest_seconds{.*live.*} (\S+)$", dead.http.get("/metrics").text)
    assert hours * 3600 <= float(seconds) < (hours + 1) * 3600
    assert [finding(dead, check)["state"] for check in ("deferred", "outage")] == [level, "fail"]
    assert dead.get("outages").json()["outages"][0]["to"] is None


def test_a_sale_that_waits_is_found_told_and_taken_back(dead: Shop) -> None:
    """A customer is back with the slip: the journal has no invoice of that number yet, and leads to where it waits. Who closes the day is told of it: it is not in
    the Z, and the drawer seems to have too much. It is taken back by a decision that was made, with its reason; then its number is free."""
    with Visitor(dead, "manager") as client:
        found = client.get("/ui/journal", params={"q": "waits"}).text.partition('id="found"')[2]
        assert 'href="/ui/waiting' in found
        assert "/ui/waiting" not in client.get("/ui/journal", params={"q": "nothing"}).text.partition('id="found"')[2]
        dialogue = client.get("/ui/z").text
        assert "<li>1 vente attend sa certification</li>" in dialogue.replace("\N{NO-BREAK SPACE}", " "), dialogue
        for form in ({"reason": "le client est parti"}, {"decision": "withdraw", "reason": "no"}):
            assert client.post("/ui/waiting/1", data=form).status_code == 422
        assert "waits" in client.get("/ui/waiting").text
        form = {"decision": "withdraw", "reason": "le client est parti"}
        assert client.post("/ui/waiting/1", data=form).status_code == 303
        assert client.post("/ui/waiting/1", data=form).status_code == 409
        assert client.post("/ui/waiting/1", data={**form, "decision": "release"}).status_code == 409
    assert dead.get("reports/x").json()["waiting"]["count"] == 0
    assert dead.certify(invoice("waits")).status_code == 202


def test_a_waiting_sale_that_needs_a_decision_is_announced(dead: Shop) -> None:
    """After `adopt` or a restore nothing happens to it by itself: the page's banner and `mcfd doctor` say that a person has to decide."""
    dead.stop_daemon()
    with closing(sqlite3.connect(dead.ledger)) as connection, connection:
        connection.execute("UPDATE deferred SET state = 'doubtful'")
    dead.machines[0].start()
    dead.start_daemon()
    banner = state_of(dead, "manager")
    assert "1 d'entre elles demande une décision" in banner
    assert "/ui/waiting" in banner
    found = finding(dead, "deferred")
    assert (found["state"], "decide for each" in str(found)) == ("fail", True)


def test_what_is_in_doubt_of_a_former_taxpayer_is_decided_in_the_page(dead: Shop, tmp_path: Path) -> None:
    """The machine can be asked no more: its customer's page stays, a person looks at the machine's paper, and the till may sell it again."""
    create_users(dead, ("technician",))
    dead.stop_daemon()
    first = dead.machines[0]
    with closing(sqlite3.connect(dead.ledger)) as connection, connection:
        connection.execute("UPDATE deferred SET state = 'doubtful'")
        key, address = connection.execute("SELECT key, address FROM deferred").fetchone()

    async def dispute() -> None:
        async with await Store.open(dead.ledger, timezone=UTC) as store:
            till = await Till.of(store, NIM)
            for number in ("D-1", "D-2"):
                await store.ledger.dispute(till.book, await till.begin(sale(number)), Text("unknown"), at=till.at)

    asyncio.run(dispute())
    (tmp_path / "other").mkdir()
    dead.machines = (Machine(tmp_path / "other", f"{NIM[:-1]}2", "00099999X").start(),)
    dead.start_daemon()
    wait_for(dead.is_ready, "the other taxpayer's machine")

    def state() -> str:
        with closing(sqlite3.connect(f"file:{dead.ledger}?mode=ro", uri=True)) as connection:
            return str(connection.execute("SELECT state FROM deferred").fetchone()[0])

    with Visitor(dead, "manager") as client:
        assert "1 vente" in client.get("/ui/state").text.replace("\N{NO-BREAK SPACE}", " ")
        assert "waits" in client.get("/ui/waiting").text
        paper = client.get(f"/f/{address}")
        assert (paper.status_code, "00084440Y" in paper.text, "00099999X" in paper.text) == (200, True, False)
        form = {"decision": "release", "reason": "pas sur son journal"}
        assert client.post("/ui/waiting/1", data=form).status_code == 303
    wait_for(lambda: state() == "refused", "the refusal")
    with Visitor(dead, "technician") as client:
        screen = client.get("/ui/attention").text
        assert (screen.count('name="case"'), NIM in screen) == (1, True)
        (case,) = re.findall(r'name="case" value="(\w+)"', screen)
        form = {"m": NIM, "case": case, "decision": "not-certified", "reason": "pas sur son journal"}
        assert client.post("/ui/attention", data=form).status_code == 303
    settled = dead.mcfd("machine", "settle", "--json", "--decision", "not-certified", "--reason", "pas sur le journal")
    assert settled.returncode == 0, settled.stderr
    with Visitor(dead, "technician") as client:
        assert 'name="case"' not in client.get("/ui/attention").text
    dead.stop_daemon()
    dead.machines = (first.start(),)
    dead.start_daemon()
    wait_for(lambda: dead.get(f"requests/{key}").status_code == 200, "the first taxpayer's machine")
    found = dead.get(f"requests/{key}").json()
    assert (found["status"], found["problem"]["code"]) == ("refused", "MACHINE_REFUSED")
    assert "autre contribuable" in found["problem"]["detail"] or "another taxpayer" in found["problem"]["detail"]
    dead.verify()


def test_a_sale_that_waits_for_a_machine_that_is_gone(dead: Shop, tmp_path: Path) -> None:
    """The shop has replaced it without more ado: no machine certifies what waits there, and page and command say so. With the new one as its spare it is certified."""
    first, new = dead.machines[0], Machine(tmp_path, "EL02000088-1")
    dead.stop_daemon()
    dead.machines = (new.start(),)
    dead.start_daemon()
    assert f"{NIM}, pour laquelle des ventes attendent, n'est plus dans la configuration" in state_of(dead)
    found = finding(dead, "deferred")
    assert (found["state"], found["nim"]) == ("fail", NIM)
    assert f'mcfd_deferred_oldest_seconds{{mode="live",nim="{NIM}"}}' in dead.http.get("/metrics").text
    dead.stop_daemon()
    dead.machines = (first,)
    dead.more_config = f'[[machine]]\nnim = "{new.nim}"\nport = "{new.link}"\nspare_for = "{NIM}"\n'
    dead.start_daemon(ready=False)
    dead.mcfd("machine", "take-over", NIM, "--reason", "it will never start again", check=True)
    wait_for(lambda: [each["number"] for each in new.certified()] == ["waits"], "its certification by the new machine")
    new.stop()


def test_a_machine_that_refuses_every_sale_is_no_green_banner(tmp_path: Path) -> None:
    """A blocked machine answers, and sells nothing: red from the outage on, also after a restart, until a sale is certified; amber once it has met
    the tax server since."""
    with staffed_shop(tmp_path, "reader") as shop:
        shop.machines[0].order("mode", mode="blocked")
        assert shop.certify(invoice("B-0")).status_code == 422
        state = state_of(shop)
        assert 'data-level="amber"' in state, state
        assert "la prochaine dira si elle les refuse toutes" in state
        assert shop.certify(invoice("B-1")).status_code == 422
        for _ in range(2):
            with Visitor(shop, "reader") as client:
                assert 'data-state="attention">refuse toutes les factures<' in client.get("/ui/").text
            state = state_of(shop)
            assert 'data-level="bad"' in state, state
            assert "Ventes arrêtées depuis" in state
            assert "la machine a refusé toutes les factures" in state
            assert "chaque vente est tentée quand même" in state
            shop.stop_daemon()
            shop.start_daemon()
        for seconds, level in ((-3600, "bad"), (3600, "amber")):
            contact = f"{datetime.now(UTC) + timedelta(seconds=seconds):%Y%m%d%H%M%S}"
            shop.machines[0].order("tax-server", reachable=True, last_contact=contact)
            wait_for(lambda at=contact: shop.get("info").json()["taxServer"]["lastContact"] == at, "the reading")
            state = state_of(shop)
            assert f'data-level="{level}"' in state, state
            assert "Ventes arrêtées depuis" in state
            assert ("la prochaine vente dira" in state) == (level == "amber")
        shop.machines[0].order("mode", mode="active")
        assert shop.certify(invoice("B-0")).status_code == 200
        assert 'data-level="good"' in state_of(shop)


def test_sales_that_wait_for_a_decision_say_so(tmp_path: Path) -> None:
    """They were told to be certified later, and nobody that it takes a person: the banner has the decision, and its link for who makes it."""
    with staffed_shop(tmp_path, "technician", "seller", per_machine={"when_out_of_order": "defer"}) as shop:
        assert shop.certify(invoice("before")).status_code == 200
        shop.machines[0].order("counters", tc=0, fvc=0)
        wait_for(lambda: shop.http.get("/health/ready").json()["machines"][0]["attention"], "attention")
        assert shop.certify(invoice("waits")).status_code == 202
        for role, link in (("technician", '<a href="/ui/attention">Décider</a>'), ("seller", ">Afficher</a>")):
            state = state_of(shop, role)
            assert "une décision est attendue" in state, state
            assert link in state, state


def test_headquarters_that_has_had_no_closure_for_days_is_in_the_banner(tmp_path: Path) -> None:
    hq = HttpHeadquarters(tmp_path)  # nobody listens there
    upstream = {"kind": "https", "url": hq.url, "secret_file": str(hq.keys.file)}
    with staffed_shop(tmp_path, "reader", config={"upstream": upstream}) as shop:
        shop.closed()
        assert 'data-level="good"' in state_of(shop)
        shop.stop_daemon()
        with closing(sqlite3.connect(shop.ledger)) as connection, connection:
            connection.execute("UPDATE outbox SET created_at = created_at - ?", (50 * HOUR,))
        shop.start_daemon()
        state = state_of(shop)
    assert 'data-level="amber"' in state, state
    assert "le siège ne reçoit plus de clôture depuis 2 jours" in state


def test_a_nightly_copy_that_fails_for_days_is_in_the_banner(tmp_path: Path) -> None:
    """The journal of systemd is rarely read: the day on which the copy is needed is no day to learn that there is none."""
    with staffed_shop(tmp_path, "reader", "technician") as shop:
        shop.mcfd("backup", "--into", str(shop.ledger.parent / "backups"), check=True)
        (copy,) = (shop.ledger.parent / "backups").glob("*.sqlite3")
        for days, level in ((0, "good"), (2, "good"), (5, "amber")):
            at = time.time() - days * 86_400 - 60
            os.utime(copy, (at, at))
            state = state_of(shop)
            assert f'data-level="{level}"' in state, state
        assert '<a href="/ui/box">Afficher</a>' in state_of(shop, "technician")  # where each finding has what to do
    assert "la dernière copie du registre date de 5 jours" in state
    assert "/ui/box" not in state


def test_a_machine_in_attention_that_left_the_configuration_is_decided(tmp_path: Path) -> None:
    with staffed_shop(tmp_path, "technician") as shop:
        assert shop.certify(invoice("B-1")).status_code == 200
        shop.machines[0].order("counters", tc=0, fvc=0)
        wait_for(lambda: shop.http.get("/health/ready").json()["machines"][0]["attention"], "attention")
        shop.stop_daemon()
        new = Machine(tmp_path, "EL02000088-1")
        shop.machines = (new.start(),)
        shop.start_daemon()
        with Visitor(shop, "technician") as client:
            screen = client.get("/ui/attention").text
            assert f">{NIM}<" in screen
            assert "text-red-fg" in screen.partition("<main")[0]
            case = re.search(r'name="case" value="([^"]+)"', screen)
            form = {"m": NIM, "case": case[1], "decision": "adopt", "reason": "un autre logiciel"}
            assert client.post("/ui/attention", data=form).status_code == 303
            assert 'name="case"' not in client.get("/ui/attention").text
        new.stop()


def test_of_several_machines_the_one_that_is_out_of_order_is_named(tmp_path: Path) -> None:
    """What is sold at it is certified later, and the banner does not leave it to be guessed which one that is."""
    first, second = Machine(tmp_path), Machine(tmp_path, "EL02000088-1")
    with Shop(tmp_path, machines=(first, second), per_machine={"when_out_of_order": "defer"}) as shop:
        shop.start()
        create_users(shop, ("reader",))
        second.kill()
        wait_for(lambda: f"en panne : {second.nim}" in state_of(shop), "the banner")
