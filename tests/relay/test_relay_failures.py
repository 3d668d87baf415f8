"""What goes wrong between a till outside and its box, on a real nats-server, with processes that are killed."""

import asyncio
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from nats.aio.msg import Msg
from support.hurried import PATIENT, STILL
from support.line.network import Relay as LossyLine
from support.receivers.headquarters import until as until_true
from support.receivers.nats_server import NIM, OTHER
from support.relay_site import (
    RelaySite,
    answering,
    bearer,
    check_once,
    in_seconds,
    in_service,
    ledger_codes,
    mistyped,
    running,
    until_answered,
)
from support.shop import invoice
from support.signing_client import signed

from common.turns import ended
from common.wire.call import LaterCall, RelayedCall, RelayedReply, encode, key_id_of
from common.wire.keys import PUBLIC, LaneHeader, PrivateKey, decode, read_credentials, seal
from common.wire.nats_headers import LANE, PRESENCE, PRESENCE_STREAM
from common.wire.nats_pull import NatsServers
from common.wire.presence import read_presence
from daemon.core.keys import KeyTerms
from daemon.operations import CreateKey
from headquarters.cli.main import cli
from relay.boxes import Boxes
from relay.connection import Connection
from relay.later import LaterCalls

pytestmark = pytest.mark.long

PATIENCE = 60.0
STANDING = {"reply_timeout": 60.0, "certify_timeout": 60.0}
"""Of a machine that stands until a test lets it go on."""


def base(site: RelaySite, relay: int = 0) -> str:
    return f"{site.relays[relay].base}/v1/mcf/{NIM}"


@pytest.fixture
async def patient(tmp_path: Path) -> AsyncIterator[RelaySite]:
    async with running(tmp_path, first=PATIENT, per_machine=STANDING) as created:
        yield created


async def test_a_box_that_is_off(site: RelaySite, http: httpx.AsyncClient) -> None:
    """503 BRIDGE_OFFLINE with Retry-After; after its start it answers again, and what was certified before is replayed."""
    key, url = await in_service(site, http)
    sale = {"json": invoice("F-1"), "headers": bearer(key, "k-1")}
    first = await http.post(f"{url}/certify", **sale)
    site.shop.kill_daemon()
    answer = await until(lambda: http.get(f"{url}/info", headers=bearer(key)), 503)
    assert answer.json()["code"] == "BRIDGE_OFFLINE"
    assert int(answer.headers["retry-after"]) > 0
    site.shop.start_daemon()
    again = await until_answered(http, "POST", f"{url}/certify", **sale)
    assert (again.status_code, again.content, again.headers["idempotency-replayed"]) == (200, first.content, "true")
    check_once(site.shop, {"k-1": first.json()})


async def has_begun(site: RelaySite, key: str) -> bool:
    """Whether the box has that request, as the shop's network says."""
    found = await asyncio.to_thread(site.shop.get, f"requests/{key}")
    return found.status_code == 200


async def until(ask, status: int) -> httpx.Response:
    found: list[httpx.Response] = []

    async def answered() -> bool:
        found[:] = [await ask()]
        return found[0].status_code == status

    await until_true(answered)
    return found[0]


async def switch_off(site: RelaySite, http: httpx.AsyncClient, url: str, key: str) -> None:
    site.shop.kill_daemon()
    await until(lambda: http.get(f"{url}/info", headers=bearer(key)), 503)


async def test_one_request_through_two_relays(site: RelaySite, http: httpx.AsyncClient) -> None:
    """At the same moment, with one key: one sale, of which both tell; another sale with that key is 409 through either."""
    key = site.key()
    await answering(site, http, key)
    await asyncio.to_thread(site.relays[1].start)
    receipts = {}
    for number in range(6):
        sale = {"json": invoice(f"F-{number}"), "headers": bearer(key, f"k-{number}")}
        both = [until_answered(http, "POST", f"{base(site, relay)}/certify", **sale) for relay in (0, 1)]
        first, second = await asyncio.gather(*both)
        assert (first.status_code, first.content) == (200, second.content)
        receipts[f"k-{number}"] = first.json()
    for relay in (0, 1):
        other = await http.post(f"{base(site, relay)}/certify", json=invoice("F-9"), headers=bearer(key, "k-1"))
        assert (other.status_code, other.json()["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
    check_once(site.shop, receipts)


async def test_a_till_that_goes_away(site: RelaySite, http: httpx.AsyncClient) -> None:
    """In the middle of its body: nothing has begun. After it: the sale is certified without a listener, and the retry replayed."""
    key = site.key()
    url = httpx.URL(await answering(site, http, key))
    machine, body = site.shop.machines[0], json.dumps(invoice("F-1")).encode()
    head = f"POST {url.path}/certify HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nIdempotency-Key: k-1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    connections = [(await asyncio.open_connection(url.host, url.port))[1] for _ in range(2)]
    connections[0].write(head + body[:-1])
    await until_true(lambda: under_way(http, site, 1))
    connections[0].transport.abort()
    await until_true(lambda: under_way(http, site, 0))
    assert not await has_begun(site, "k-1")
    machine.order("pause-at", next=1, when="before", direction="in")
    connections[1].write(head + body)
    await until_true(lambda: has_begun(site, "k-1"))
    connections[1].transport.abort()
    machine.order("resume")
    again = await until_answered(
        http, "POST", f"{url}/certify", content=body, headers=bearer(key, "k-1", **{"Content-Type": "application/json"})
    )
    assert again.status_code == 200, again.text
    check_once(site.shop, {"k-1": again.json()})


async def under_way(http: httpx.AsyncClient, site: RelaySite, count: int) -> bool:
    text = (await http.get(f"{site.relays[0].base}/metrics")).text
    return f"mcfd_relay_requests_under_way {count}\n" in text


async def test_a_box_that_is_revoked_while_it_certifies(tmp_path: Path, http: httpx.AsyncClient) -> None:
    """The client hears within seconds that the outcome is unknown; the sale stands once, and the shop's tills go on."""
    async with running(tmp_path, jwt=True, first=STILL, per_machine=STANDING) as site:
        key, url = await in_service(site, http)
        machine = site.shop.machines[0]
        machine.order("pause-at", next=6, when="before", direction="in")
        sale = {"json": invoice("F-1"), "headers": bearer(key, "k-1")}
        sending = asyncio.create_task(http.post(f"{url}/certify", **sale))
        await until_true(machine.is_stopped)
        folder = site.nats.directory / "jwt"
        await asyncio.to_thread(revoke, folder, site.nats.shop)
        shutil.copy(folder / "users.conf", site.nats.directory / "hq-1" / "users.conf")
        os.kill(site.server.pid, signal.SIGHUP)
        answer = await asyncio.wait_for(sending, 30)
        assert (answer.status_code, answer.json()["code"]) == (504, "OUTCOME_UNKNOWN")
        again = await http.post(f"{url}/certify", **sale)
        assert (again.status_code, again.json()["code"]) == (503, "BRIDGE_OFFLINE")
        machine.order("resume")
        lan = await asyncio.to_thread(site.shop.certify, invoice("F-2"), key="lan-1")
        found = await asyncio.to_thread(site.shop.get, "requests/k-1")
        check_once(site.shop, {"k-1": found.json()["receipt"], "lan-1": lan.json()})


def revoke(folder: Path, credentials: Path) -> None:
    done = CliRunner().invoke(cli, ["nats", "revoke", str(folder), read_credentials(credentials, "nats").public])
    assert done.exit_code == 0, done.output


async def test_more_sales_than_may_wait(site: RelaySite, http: httpx.AsyncClient) -> None:
    """A hundred for a box that is off; the next is 503, and one of them once more is 202. Back on, the box certifies each once."""
    key, url = await in_service(site, http)
    await switch_off(site, http, url, key)

    async def sold(number: int) -> httpx.Response:
        headers = bearer(key, f"k-{number}", Prefer="respond-async")
        return await http.post(f"{url}/certify", json=invoice(f"F-{number}"), headers=headers)

    for number in range(100):
        assert (await sold(number)).status_code == 202
    full = await sold(100)
    assert (full.status_code, full.json()["code"]) == (503, "MACHINE_BUSY")
    assert int(full.headers["retry-after"]) > 0
    assert (await sold(1)).status_code == 202
    await asyncio.to_thread(site.shop.start_daemon)
    await until_true(lambda: asyncio.to_thread(lambda: len(ledger_codes(site.shop.ledger)) >= 100), deadline=150)
    assert site.shop.machines[0].counters[1] == len(set(ledger_codes(site.shop.ledger))) == 100


async def sell(site: RelaySite, http: httpx.AsyncClient, key: str, client: int, count: int) -> dict[str, dict]:
    """So many sales of a till, each until it has its answer: the receipts by their keys."""
    receipts = {}
    for number in range(count):
        name = f"{client}-{number}"
        sale = {"json": invoice(f"F-{name}"), "headers": bearer(key, name)}
        answer = await until_answered(http, "POST", f"{base(site)}/certify", **sale)
        assert answer.status_code == 200, answer.text
        receipts[name] = answer.json()
    return receipts


async def test_an_answer_that_comes_too_late(tmp_path: Path, http: httpx.AsyncClient) -> None:
    """504 OUTCOME_UNKNOWN while 38h is on the line; the sale is certified all the same, and the retry replayed."""
    async with running(tmp_path, server="answer_seconds = 2", first=STILL) as site:
        key, url = await in_service(site, http)
        machine = site.shop.machines[0]
        machine.order("pause-at", next=6, when="before", direction="in")
        sale = {"json": invoice("F-1"), "headers": bearer(key, "k-1")}
        answer = await http.post(f"{url}/certify", **sale)
        assert (answer.status_code, answer.json()["code"]) == (504, "OUTCOME_UNKNOWN")
        assert int(answer.headers["retry-after"]) > 0
        machine.order("resume")
        again = await until_answered(http, "POST", f"{url}/certify", **sale)
        assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true"), again.text
        found = await http.get(f"{url}/requests/k-1", headers=bearer(key))
        assert found.json()["receipt"] == again.json()
        check_once(site.shop, {"k-1": again.json()})


async def test_a_request_that_is_lost(site: RelaySite, http: httpx.AsyncClient) -> None:
    """A box that carries out none says so, and the client hears it within seconds; of one that carries one out it waits."""
    key, url = await in_service(site, http)
    boot = read_presence((await last_presence(site)).data).boot
    site.shop.kill_daemon()
    client = await site.nats.connect(site.server.url, site.nats.shop)
    under_way = 0

    async def reply(msg) -> None:  # of a box that has not got the request
        if not msg.data:
            await msg.respond(encode(RelayedReply(boot, "line", NIM, under_way=under_way)))

    await client.subscribe(f"mcf.{NIM}.call", cb=reply)
    await client.flush()
    for _ in range(2):  # the first one finds another connection of the box, too
        answer = await asyncio.wait_for(http.get(f"{url}/info", headers=bearer(key)), 30)
        assert (answer.status_code, answer.json()["code"]) == (504, "OUTCOME_UNKNOWN")
    under_way = 1
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(http.get(f"{url}/info", headers=bearer(key)), 20)
    await client.close()


async def test_keys_that_are_refused(site: RelaySite, http: httpx.AsyncClient) -> None:
    """By the box, sent or signed, with nothing certified; a good key is answered however many wrong ones came."""
    key, url = await in_service(site, http)
    past = int(datetime.now(UTC).timestamp() * 1000) - 1000

    def new_key(nim: str = NIM, expires_at: int = 0, *, is_signing: bool = False) -> str:
        terms = KeyTerms("manager", lane="relay", expires_at=expires_at, signed=is_signing)
        return site.shop.change(CreateKey(nim, "live", "refused", terms))

    revoked, signing = new_key(), new_key(is_signing=True)
    listed = json.loads((await asyncio.to_thread(site.shop.mcfd, "keys", "list", "--json", check=True)).stdout)
    for row in listed[-2:]:
        await asyncio.to_thread(site.shop.mcfd, "keys", "revoke", str(row["id"]), check=True)
    limit = {"mcfd-not-after": in_seconds(60), "idempotency-key": "k-1", "content-type": "application/json"}
    body = json.dumps(invoice("F-1")).encode()
    refused = [
        (bearer(new_key(expires_at=past), "k-1"), 401),
        (signed(new_key(expires_at=past, is_signing=True), "POST", f"{url}/certify", limit, body), 401),
        (bearer(revoked, "k-1"), 401),
        (signed(signing, "POST", f"{url}/certify", limit, body), 401),
        (bearer(mistyped(key), "k-1"), 401),
        (bearer(new_key(OTHER), "k-1"), 403),
    ]
    for headers, status in refused:
        answer = await http.post(
            f"{url}/certify", content=body, headers={"content-type": "application/json", **headers}
        )
        assert answer.status_code == status, answer.text
    guesses = [bearer(f"ak_live_{number:038}", "k-1") for number in range(12)]
    statuses = [(await http.post(f"{url}/certify", content=body, headers=guess)).status_code for guess in guesses]
    assert statuses[-1] == 429
    assert site.shop.machines[0].counters == (0, 0, 0)
    answer = await http.post(f"{url}/certify", json=invoice("F-1"), headers=bearer(key, "k-1"))
    assert answer.status_code == 200, answer.text


async def test_a_key_with_a_rate(site: RelaySite, http: httpx.AsyncClient) -> None:
    """What is beyond it is 429 with the seconds to wait; other keys, and a sale that waited, are not concerned."""
    other, url = await in_service(site, http)
    options = ("--via", "relay", "--role", "seller", "--rate", "3")
    created = await asyncio.to_thread(site.shop.mcfd, "keys", "create", "--nim", NIM, *options, check=True)
    key = created.stdout.strip()
    answers = [
        await until_answered(
            http, "POST", f"{url}/certify", json=invoice(f"F-{number}"), headers=bearer(key, f"k-{number}")
        )
        for number in range(5)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    refused = answers[-1]
    assert (refused.json()["code"], 0 < int(refused.headers["retry-after"]) <= 60) == (
        "TOO_MANY_REQUESTS",
        True,
    )
    assert site.shop.machines[0].counters[0] == 3
    assert (await http.get(f"{url}/me", headers=bearer(other))).status_code == 200

    async def has_the_key() -> bool:
        return hashlib.sha256(key.encode()).hexdigest()[:16] in await lane_keys(site)

    await until_true(has_the_key)
    async with stored_calls(site) as later:
        await store_sale(later, NIM, "w-1", key)
        await until_true(lambda: asyncio.sleep(0, len(ledger_codes(site.shop.ledger)) == 4), deadline=20)


async def test_two_boxes_with_one_identity(site: RelaySite, http: httpx.AsyncClient, tmp_path: Path) -> None:
    """A copied card: none is asked (BOX_AMBIGUOUS), and nothing certified, until the copy is off."""
    key = site.key()
    await answering(site, http, key)
    copy = site.box(tmp_path / "copy", NIM, site.nats.shop)
    copy.start()
    try:
        copy.change(CreateKey(NIM, "live", "copy", KeyTerms("manager", lane="relay")))
        answer = await until(lambda: http.get(f"{base(site)}/info", headers=bearer(key)), 503)
        async with asyncio.timeout(PATIENCE):
            while answer.json()["code"] != "BOX_AMBIGUOUS":
                answer = await http.get(f"{base(site)}/info", headers=bearer(key))
                await asyncio.sleep(0.1)
        sale = await http.post(f"{base(site)}/certify", json=invoice("F-1"), headers=bearer(key, "k-1"))
        assert (sale.status_code, sale.json()["code"]) == (503, "BOX_AMBIGUOUS")
        assert site.shop.machines[0].counters == copy.machines[0].counters == (0, 0, 0)
        assert '"event":"box.ambiguous"' in site.relays[0].log
    finally:
        copy.__exit__(None, None, None)


async def test_too_many_at_once(patient: RelaySite, http: httpx.AsyncClient) -> None:
    """Two requests of a key are carried out at a time; the third is 503 MACHINE_BUSY at once, and nothing was sent for it."""
    site = patient
    key, url = await in_service(site, http)
    machine = site.shop.machines[0]
    machine.order("pause-at", next=1, when="before", direction="in")
    sending = [
        asyncio.create_task(http.post(f"{url}/certify", json=invoice(f"F-{n}"), headers=bearer(key, f"k-{n}")))
        for n in range(2)
    ]
    await until_true(lambda: has_begun(site, "k-0"))
    await until_true(lambda: has_begun(site, "k-1"))
    third = await until(lambda: http.get(f"{url}/reports", headers=bearer(key)), 503)
    assert third.json()["code"] == "MACHINE_BUSY"
    machine.order("resume")
    answers = await asyncio.gather(*sending)
    assert [answer.status_code for answer in answers] == [200, 200]


async def test_strangers_lock_nobody_out(patient: RelaySite, http: httpx.AsyncClient) -> None:
    """Who guesses keys is refused at once, soon with 429, and holds no place of those who have one, nor by a key's id."""
    site = patient
    key, signing = site.key(), site.key(signed=True)
    url = await answering(site, http, key)
    machine = site.shop.machines[0]
    machine.order("pause-at", next=1, when="before", direction="in")
    with ThreadPoolExecutor() as pool:
        tills = [pool.submit(site.shop.certify, invoice(f"LAN-{number}"), key=f"lan-{number}") for number in range(2)]
        await until_true(lambda: has_begun(site, "lan-0"))
        await until_true(lambda: has_begun(site, "lan-1"))
        taken = signed(signing, "POST", f"{url}/certify", {"mcfd-not-after": in_seconds(60), "idempotency-key": "s-1"})
        guesses = [
            *(bearer(f"ak_live_{number:038}", f"s-{number}") for number in range(20)),
            *({**taken, "idempotency-key": f"s-{number}"} for number in range(4)),
        ]
        guessing = [
            asyncio.create_task(http.post(f"{url}/certify", json=invoice("S-1"), headers=guess)) for guess in guesses
        ]
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):  # who waits for the tills does so for ten times that
            for _ in range(10):
                answer = await until_answered(http, "GET", f"{url}/reports", headers=bearer(key))
                assert answer.status_code == 200, answer.text
            refused = await asyncio.gather(*guessing)
        machine.order("resume")
        assert [till.result().status_code for till in tills] == [200, 200]
    statuses = Counter(answer.status_code for answer in refused)
    assert statuses.keys() <= {401, 429, 503}
    assert 0 < statuses[401] <= 10
    last = await http.get(f"{url}/info", headers=bearer(mistyped(key)))
    assert (last.status_code, last.json()["code"]) == (429, "TOO_MANY_REQUESTS")
    assert machine.counters == (2, 2, 0)


async def test_a_sale_for_a_box_that_is_off(site: RelaySite, http: httpx.AsyncClient) -> None:
    """202 once for each key and values; certified once when the box is back; sealed on the server; all else is 503."""
    key, url = await in_service(site, http)
    site.shop.stop_daemon(signal.SIGTERM)
    body = invoice("F-1", customer={"clientType": "CC", "name": "OUEDRAOGO AWA"})
    later = bearer(key, "k-1", Prefer='wait=5; a="b, c", Respond-Async=""')
    await until(lambda: http.get(f"{url}/info", headers=bearer(key)), 503)
    for _ in range(2):
        answer = await http.post(f"{url}/certify", json=body, headers=later)
        assert (answer.status_code, answer.json()) == (202, {"status": "waiting"}), answer.text
        assert answer.headers["location"] == f"/v1/mcf/{NIM}/requests/k-1"
    anew = json.dumps({"note": None, **dict(reversed(body.items()))}, indent=1)
    same = await http.post(f"{url}/certify", content=anew, headers={**later, "Content-Type": "application/json"})
    assert same.status_code == 202, same.text
    assert await waiting(site) == 1
    other = await http.post(f"{url}/certify", json=invoice("F-2"), headers=later)
    assert (other.status_code, other.json()["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
    stranger = await http.post(
        f"{url}/certify", json=body, headers={**later, "Authorization": f"Bearer {mistyped(key)}"}
    )
    assert stranger.json()["code"] == "BRIDGE_OFFLINE"
    without = await http.post(f"{url}/certify", json=body, headers=bearer(key, "k-3"))
    assert without.json()["code"] == "BRIDGE_OFFLINE"
    export = await http.post(
        f"{url}/certify", json={**body, "invoiceType": "EV"}, headers=bearer(key, "k-4", Prefer="respond-async")
    )
    assert export.json()["code"] == "BRIDGE_OFFLINE"
    never = [
        {"Prefer": 'handling="strict, respond-async, lenient"'},
        {"Idempotency-Key": "k" * 201},
        {"Idempotency-Key": "k-\xe9".encode("latin-1")},
    ]
    twice = [*later.items(), ("Idempotency-Key", "k-5")]
    for headers in (*({**later, **each} for each in never), twice):
        answer = await http.post(f"{url}/certify", json=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (503, "BRIDGE_OFFLINE"), headers
    unread = await http.post(f"{url}/certify", json=body, headers={**later, "Mcfd-Not-After": "tomorrow"})
    assert (unread.status_code, unread.json()["errors"][0]["field"]) == (422, "Mcfd-Not-After")
    expired = await http.post(f"{url}/certify", json=body, headers={**later, "Mcfd-Not-After": in_seconds(-5)})
    assert expired.json()["code"] == "REQUEST_EXPIRED"
    rest = b"".join(f.read_bytes() for f in (site.directory / "nats").rglob("*") if f.is_file())
    assert b"mcf.EL02000015-1.later" in rest
    assert b"OUEDRAOGO" not in rest
    site.shop.start_daemon()
    async with asyncio.timeout(PATIENCE + 40):
        while True:
            found = await http.get(f"{url}/requests/k-1", headers=bearer(key))
            if found.status_code == 200 and found.json()["status"] == "certified":
                break
            await asyncio.sleep(0.2)
    check_once(site.shop, {"k-1": found.json()["receipt"]})


async def test_a_sale_whose_time_was_over_is_sent_again(site: RelaySite, http: httpx.AsyncClient) -> None:
    """It waits once more, also where it lies in the queue still, and is certified once; a retry takes no second place."""
    key, url = await in_service(site, http)
    await switch_off(site, http, url, key)

    async def sold(number: int, **limit: str) -> None:
        later = bearer(key, f"k-{number}", Prefer="respond-async", **limit)
        answer = await http.post(f"{url}/certify", json=invoice(f"F-{number}"), headers=later)
        assert answer.status_code == 202, answer.text

    short = {"Mcfd-Not-After": in_seconds(60)}
    await sold(1, **short)
    await sold(2, **short)
    for _ in range(2):
        await sold(3)
    (site.directory / "ahead").touch()
    await sold(1)
    await until_true(lambda: asyncio.sleep(0, site.relays[0].log.count('"later.expired"') == 2), deadline=60)
    await sold(2)
    assert site.relays[0].log.count('"event":"later.kept"') == 6
    assert await waiting(site) == 3
    await asyncio.to_thread(site.shop.start_daemon)
    await until_true(lambda: asyncio.sleep(0, len(set(ledger_codes(site.shop.ledger))) == 3), deadline=PATIENCE + 40)
    assert site.shop.machines[0].counters[1] == 3


async def test_sales_for_later_do_not_wait_for_a_relay_that_was_stopped(
    site: RelaySite, http: httpx.AsyncClient
) -> None:
    """What it had just fetched from the queue, or has under way, is another one's at once, and not after the five minutes that the queue gives it."""
    key, url = await in_service(site, http)
    await switch_off(site, http, url, key)
    for number in range(4):
        headers = bearer(key, f"k-{number}", Prefer="respond-async")
        assert (await http.post(f"{url}/certify", json=invoice(f"F-{number}"), headers=headers)).status_code == 202
    await asyncio.to_thread(site.relays[0].stop)
    await asyncio.to_thread(site.relays[1].start)
    await asyncio.to_thread(site.shop.start_daemon)
    await until_true(lambda: asyncio.sleep(0, len(set(ledger_codes(site.shop.ledger))) == 4), deadline=200)
    assert site.shop.machines[0].counters[1] == 4


async def test_a_box_that_does_not_answer_delays_no_sales_of_another(tmp_path: Path, http: httpx.AsyncClient) -> None:
    """One box stands still with a sale; the other's is certified within seconds, and later each of the first once."""
    async with running(tmp_path, two=True) as site, stored_calls(site) as later:
        other = site.other
        assert other is not None
        keys = {NIM: site.key(), OTHER: site.key(shop=other)}
        for nim, key in keys.items():  # the relay knows both boxes
            url = f"{site.relays[0].base}/v1/mcf/{nim}/info"
            assert (await until_answered(http, "GET", url, headers=bearer(key))).status_code == 200

        os.kill(site.shop.pid, signal.SIGSTOP)
        try:
            for number in range(3):
                await store_sale(later, NIM, f"k-{number}", keys[NIM])
            await asyncio.sleep(2)  # the relay has fetched them
            await store_sale(later, OTHER, "o-1", keys[OTHER])
            await until_true(lambda: asyncio.sleep(0, len(ledger_codes(other.ledger)) == 1), deadline=20)
        finally:
            os.kill(site.shop.pid, signal.SIGCONT)
        await until_true(lambda: asyncio.sleep(0, len(set(ledger_codes(site.shop.ledger))) == 3), deadline=PATIENCE)
        assert site.shop.machines[0].counters[1] == 3


async def test_a_key_that_is_revoked_meanwhile(tmp_path: Path, http: httpx.AsyncClient) -> None:
    """A request at the machine ends, and is answered; a sale that waits for the box is not certified, and the relay's log says so."""
    async with running(tmp_path, first=STILL, per_machine=STANDING) as site:
        key, other = site.key(), site.key("seller")
        url = await answering(site, http, key)
        machine = site.shop.machines[0]
        machine.order("pause-at", next=6, when="before", direction="in")
        sending = asyncio.create_task(http.post(f"{url}/certify", json=invoice("F-1"), headers=bearer(key, "k-1")))
        await until_true(machine.is_stopped)
        await asyncio.to_thread(revoke_first_relay_key, site)
        assert (await http.get(f"{url}/requests/k-1", headers=bearer(key))).status_code == 401
        machine.order("resume")
        first = await asyncio.wait_for(sending, 60)
        assert first.status_code == 200, first.text
        site.shop.kill_daemon()
        await until(lambda: http.get(f"{url}/info", headers=bearer(other)), 503)
        later = bearer(other, "k-2", Prefer="respond-async")
        assert (await http.post(f"{url}/certify", json=invoice("F-2"), headers=later)).status_code == 202
        await asyncio.to_thread(revoke_first_relay_key, site)
        site.key()  # without any the box does not listen
        await asyncio.to_thread(site.shop.start_daemon)
        await until_true(lambda: '"event":"later.not_accepted"' in site.relays[0].log)
        assert await waiting(site) == 0
        check_once(site.shop, {"k-1": first.json()})


def revoke_first_relay_key(site: RelaySite) -> None:
    listed = json.loads(site.shop.mcfd("keys", "list", "--json", check=True).stdout)
    first = next(row["id"] for row in listed if row["via"] == "relay")
    site.shop.mcfd("keys", "revoke", str(first), check=True)


async def test_the_certificate_of_the_servers(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Renewed: no connection ends. Ended: it is trusted no more until it is renewed, and the closure that waited goes through."""
    key, url = await in_service(site, http)

    def present(pem: Path) -> None:
        for name in ("server.pem", "server.key"):
            shutil.copy(pem, site.nats.directory / "tls" / name)

    present(site.nats.authority.issue())
    os.kill(site.server.pid, signal.SIGHUP)
    for _ in range(20):  # a reload of nats-server may lose one that is under way
        assert (await until_answered(http, "GET", f"{url}/info", headers=bearer(key))).status_code == 200
    assert '"event":"nats.lost"' not in site.relays[0].log
    present(site.nats.authority.issue(expired=True))
    site.server.kill()
    site.server.start()
    await until(lambda: http.get(f"{url}/info", headers=bearer(key)), 503)
    await asyncio.to_thread(site.shop.certify, invoice("F-1"))
    await asyncio.to_thread(site.shop.close_period)
    await until_true(lambda: "certificate has expired" in site.relays[0].log)
    await until_true(lambda: site.shop.events("closure.postponed"))
    present(site.nats.authority.issue())
    os.kill(site.server.pid, signal.SIGHUP)
    assert (await until_answered(http, "GET", f"{url}/info", headers=bearer(key))).status_code == 200
    await until_true(lambda: site.shop.events("closure.delivered"), deadline=120)


async def test_a_sale_sealed_for_an_earlier_key(site: RelaySite, http: httpx.AsyncClient) -> None:
    """The box has joined anew since: it says that it cannot open that sale, which is given up, and the one behind it is certified at once."""
    key = site.key()
    await answering(site, http, key)
    async with stored_calls(site) as later:
        public = decode(PrivateKey(b"1" * 32).public.removeprefix(PUBLIC))
        now = int(datetime.now(UTC).timestamp() * 1000)
        call = RelayedCall("sealed", now + 600_000, now, "POST", f"/v1/mcf/{NIM}/certify")
        content = encode(LaterCall(now + 600_000, seal(encode(call), public)))
        await later._connection.client.request(f"mcf.{NIM}.later", content, 10)
        await store_sale(later, NIM, "k-1", key)
        await until_true(lambda: asyncio.sleep(0, len(ledger_codes(site.shop.ledger)) == 1), deadline=20)
    assert '"event":"later.not_accepted"' in site.relays[0].log

    async def is_empty() -> bool:
        return await waiting(site) == 0

    await until_true(is_empty)


async def store_sale(later: LaterCalls, nim: str, name: str, key: str) -> None:
    body = json.dumps(invoice(f"F-{name}")).encode()
    once = (("idempotency-key", name), ("prefer", "respond-async"))
    headers = (("authorization", f"Bearer {key}"), ("content-type", "application/json"), *once)
    call = RelayedCall("relay", 0, 0, "POST", f"/v1/mcf/{nim}/certify", headers, body)
    until = int(datetime.now(UTC).timestamp() * 1000) + 600_000
    await later.store(nim, call, key_id_of(dict(headers)), name, until)


@contextlib.asynccontextmanager
async def stored_calls(site: RelaySite) -> AsyncIterator[LaterCalls]:
    """Of a relay in this process that only stores."""
    servers = NatsServers(url=site.server.url, credentials_file=site.nats.relay, tls_ca=site.nats.authority.path)
    connection = Connection(servers)
    running_it = asyncio.create_task(connection.run())
    try:
        await connection.opened()
        yield LaterCalls(connection, Boxes(connection))
    finally:
        await ended(running_it)


async def waiting(site: RelaySite) -> int:
    """Sales in the stream CALLS."""
    client = await site.nats.connect(site.server.url)
    try:
        return (await client.jetstream().stream_info("CALLS")).state.messages
    finally:
        await client.close()


async def last_presence(site: RelaySite) -> Msg:
    client = await site.nats.connect(site.server.url)
    try:
        return await client.request(f"$JS.API.DIRECT.GET.{PRESENCE_STREAM}.mcf.{NIM}.{PRESENCE}", b"", timeout=10)
    finally:
        await client.close()


async def lane_keys(site: RelaySite) -> set[str]:
    """Those that the last presence names."""
    word = LaneHeader.read(((await last_presence(site)).headers or {}).get(LANE, ""))
    return set(word.key_ids) if word else set()


async def test_keys_that_are_made_and_revoked_while_the_box_is_connected(
    site: RelaySite, http: httpx.AsyncClient
) -> None:
    """The relay knows of them within seconds: once the box is off it takes a sale of the new key for later, and none of the one that was revoked."""
    first, url = await in_service(site, http)
    second = site.key("seller")
    listed = json.loads((await asyncio.to_thread(site.shop.mcfd, "keys", "list", "--json", check=True)).stdout)
    first_row, second_row = (row["id"] for row in listed if row["via"] == "relay")
    ids = [hashlib.sha256(key.encode()).hexdigest()[:16] for key in (first, second)]

    async def names(*wanted: str) -> bool:
        return await lane_keys(site) == set(wanted)

    await until_true(lambda: names(*ids))
    await asyncio.to_thread(site.shop.mcfd, "keys", "revoke", str(first_row), check=True)
    await until_true(lambda: names(ids[1]))
    site.shop.kill_daemon()
    sale = {"json": invoice("F-1")}
    refused = await http.post(f"{url}/certify", **sale, headers=bearer(first, "k-1", Prefer="respond-async"))
    assert (refused.status_code, refused.json()["code"]) == (503, "BRIDGE_OFFLINE")
    taken = await http.post(f"{url}/certify", **sale, headers=bearer(second, "k-2", Prefer="respond-async"))
    assert taken.status_code == 202, taken.text
    await asyncio.to_thread(site.shop.start_daemon)
    await asyncio.to_thread(site.shop.mcfd, "keys", "revoke", str(second_row), check=True)
    await until_true(names)


async def test_signed_requests(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Limit or `expires` over is 410, `created` by a clock ahead is taken, a limit left out is 401."""
    key, plain = site.key(signed=True), site.key()
    url = f"{await answering(site, http, plain)}/info"
    now, day, soon = datetime.now(UTC), timedelta(days=1), in_seconds(60)
    for limit, times, status in (
        (soon, {}, 200),
        (in_seconds(-5), {}, 410),
        (soon, {"expires": now - day}, 410),
        (soon, {"expires": now + day}, 200),
        (soon, {"created": now + day}, 200),
    ):
        answer = await http.get(url, headers=signed(key, "GET", url, {"mcfd-not-after": limit}, **times))
        assert answer.status_code == status, (limit, times, answer.text)
    uncovered = signed(key, "GET", url, {"mcfd-not-after": soon}, leave_out=("mcfd-not-after",))
    assert (await http.get(url, headers=uncovered)).status_code == 401


async def test_a_line_that_drops_and_stalls(tmp_path: Path, http: httpx.AsyncClient) -> None:
    """Between the box and nats-server a line that is cut, and stands still, again and again: each key is certified once, and each client hears of it."""
    site = RelaySite(tmp_path)
    draw = random.Random(46)
    with LossyLine(site.server.port) as line:
        site.shop = site.box(tmp_path / "box", NIM, site.nats.shop, f"tls://127.0.0.1:{line.port}")
        try:
            await site.up()
            keys = [site.key(), site.key()]
            await answering(site, http, keys[0])
            selling = True

            async def trouble() -> None:
                while selling:
                    await asyncio.sleep(draw.uniform(0.05, 0.6))
                    line.stall = draw.random() < 0.4
                    if draw.random() < 0.3:
                        line.cut()
                line.stall = False

            troubling = asyncio.create_task(trouble())
            first, second = await asyncio.gather(*(sell(site, http, key, at, 10) for at, key in enumerate(keys)))
            receipts = first | second
            selling = False
            await troubling
            assert len(receipts) == 20
            check_once(site.shop, receipts)
        finally:
            site.down()
