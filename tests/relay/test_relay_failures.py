"""Each row of the table of failures (docs/anywhere.md), on a real nats-server, with processes that are killed."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from support.line.network import Relay as LossyLine
from support.receivers.headquarters import until as until_true
from support.receivers.nats_server import NIM
from support.relay_site import RelaySite, bearer, check_once, in_seconds
from support.shop import invoice
from support.signing_client import signed

from common.wire.call import RelayedCall, encode, read_reply
from common.wire.nats_client import Client
from daemon.app.outward.calls import TILLS_FIRST_SECONDS

pytestmark = pytest.mark.long

PATIENCE = 60.0
TRY_SECONDS = 20.0


async def until_answered(http: httpx.AsyncClient, method: str, url: str, **request) -> httpx.Response:
    """The first answer that is neither 503 nor 504; the same request with the same key each time."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                answer = await http.request(method, url, timeout=TRY_SECONDS, **request)
            except httpx.TransportError:
                await asyncio.sleep(0.05)
                continue
            if answer.status_code not in (503, 504):
                return answer
            await asyncio.sleep(0.1)


def base(site: RelaySite, relay: int = 0) -> str:
    return f"{site.relays[relay].base}/v1/mcf/{NIM}"


async def answering(site: RelaySite, http: httpx.AsyncClient, key: str) -> str:
    assert (await until_answered(http, "GET", f"{base(site)}/info", headers=bearer(key))).status_code == 200
    return base(site)


async def test_a_box_that_is_off(site: RelaySite, http: httpx.AsyncClient) -> None:
    """503 BRIDGE_OFFLINE with Retry-After, at once; after its start it answers again, and what was certified before is replayed."""
    key = site.key()
    url = await answering(site, http, key)
    sale = {"json": invoice("F-1"), "headers": bearer(key, "k-1")}
    first = await http.post(f"{url}/certify", **sale)
    site.shop.kill_daemon()
    began = asyncio.get_running_loop().time()
    answer = await until(lambda: http.get(f"{url}/info", headers=bearer(key)), 503)
    assert answer.json()["code"] == "BRIDGE_OFFLINE"
    assert int(answer.headers["retry-after"]) > 0
    assert asyncio.get_running_loop().time() - began < 20
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


async def test_a_relay_that_dies(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Killed while the box is at the machine: the connection breaks, the sale is certified, and the retry through another relay is replayed."""
    key = site.key()
    url = await answering(site, http, key)
    site.relays[1].start()
    machine = site.shop.machines[0]
    machine.order("pause-at", next=1, when="before", direction="in")
    sale = {"json": invoice("F-1"), "headers": bearer(key, "k-1")}
    sending = asyncio.create_task(http.post(f"{url}/certify", **sale))
    await until_true(lambda: has_begun(site, "k-1"))
    site.relays[0].kill()
    with pytest.raises(httpx.TransportError):
        await sending
    machine.order("resume")
    again = await until_answered(http, "POST", f"{base(site, 1)}/certify", **sale)
    assert again.status_code == 200, again.text
    check_once(site.shop, {"k-1": again.json()})


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


@pytest.mark.parametrize("victim", ["box", "nats"])
async def test_kills_at_any_moment(site: RelaySite, http: httpx.AsyncClient, victim: str) -> None:
    """Sales of two clients while the box, or nats-server, is killed and started again: each key is certified once, each answer is its ledger's."""
    keys = [site.key(), site.key()]
    await answering(site, http, keys[0])

    async def kill() -> None:
        for _ in range(3):
            await asyncio.sleep(0.3)
            if victim == "box":
                site.shop.kill_daemon()
                await asyncio.to_thread(site.shop.start_daemon)
            else:
                site.server.kill()
                await site.server.up()

    first, second, _ = await asyncio.gather(*(sell(site, http, key, at, 8) for at, key in enumerate(keys)), kill())
    receipts = first | second
    assert len(receipts) == 16
    check_once(site.shop, receipts)


async def test_two_boxes_with_one_identity(site: RelaySite, http: httpx.AsyncClient, tmp_path: Path) -> None:
    """A copied card: none is asked (BOX_AMBIGUOUS), and nothing certified, until the copy is off."""
    key = site.key()
    await answering(site, http, key)
    copy = site.box(tmp_path / "copy", NIM, site.nats.shop)
    copy.start()
    try:
        from daemon.core.keys import KeyTerms  # noqa: PLC0415
        from daemon.operations import CreateKey  # noqa: PLC0415

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


async def test_a_box_restored_between_two_tries(site: RelaySite, http: httpx.AsyncClient, tmp_path: Path) -> None:
    """The ledger that was put back does not know of the sale: 503 MACHINE_ATTENTION until a person has decided, then 409 with the receipt of
    what the machine had certified; it is certified once."""
    key = site.key()
    url = await answering(site, http, key)
    saved = tmp_path / "saved"
    await asyncio.to_thread(site.shop.mcfd, "backup", str(saved), check=True)
    sale = {"json": invoice("F-1"), "headers": bearer(key, "k-1")}
    first = await http.post(f"{url}/certify", **sale)
    assert first.status_code == 200, first.text
    site.shop.kill_daemon()
    await asyncio.to_thread(site.shop.mcfd, "restore", str(saved), "--yes", check=True)
    await asyncio.to_thread(site.shop.start_daemon, ready=False)
    async with asyncio.timeout(PATIENCE):
        while (again := await http.post(f"{url}/certify", **sale)).json()["code"] != "MACHINE_ATTENTION":
            assert again.status_code in (503, 504), again.text
            await asyncio.sleep(0.1)
    settle = ("machine", "settle", NIM, "--decision", "adopt", "--reason", "put back")
    await asyncio.to_thread(site.shop.mcfd, *settle, check=True)
    again = await until_answered(http, "POST", f"{url}/certify", **sale)
    assert (again.status_code, again.json()["code"]) == (409, "DUPLICATE_INVOICE")
    assert again.json()["certification"]["codeSecef"] == first.json()["codeSecef"]
    check_once(site.shop, {"k-1": first.json()})


async def test_too_many_at_once(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Two requests of a key are carried out at a time; the third is 503 MACHINE_BUSY at once, and nothing was sent for it."""
    key = site.key()
    url = await answering(site, http, key)
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


async def test_strangers_lock_nobody_out(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Strangers who guess keys, while a till of the shop is at the machine: each is refused at once, soon with 429, and holds no place of those
    who have a key, which are answered all the while; not even by the id of a key that signs."""
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
        async with asyncio.timeout(TILLS_FIRST_SECONDS / 2):
            for _ in range(10):
                answer = await until_answered(http, "GET", f"{url}/reports", headers=bearer(key))
                assert answer.status_code == 200, answer.text
            refused = await asyncio.gather(*guessing)
        machine.order("resume")
        assert [till.result().status_code for till in tills] == [200, 200]
    statuses = Counter(answer.status_code for answer in refused)
    assert statuses.keys() <= {401, 429, 503}
    assert 0 < statuses[401] <= 10
    last = await http.get(f"{url}/info", headers=bearer(f"{key[:-1]}x"))
    assert (last.status_code, last.json()["code"]) == (429, "TOO_MANY_REQUESTS")
    assert machine.counters == (2, 2, 0)


async def test_a_sale_for_a_box_that_is_off(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Prefer: respond-async: 202, once for each key; handed to the box when it is back, and certified once; other types and strangers' keys are
    503; nothing of the sale is readable on the server's disk."""
    key = site.key()
    url = await answering(site, http, key)
    site.shop.stop_daemon(signal.SIGTERM)
    body = invoice("F-1", customer={"clientType": "CC", "name": "OUEDRAOGO AWA"})
    later = bearer(key, "k-1", Prefer="respond-async")
    await until(lambda: http.get(f"{url}/info", headers=bearer(key)), 503)
    for _ in range(2):
        answer = await http.post(f"{url}/certify", json=body, headers=later)
        assert (answer.status_code, answer.json()) == (202, {"status": "waiting"}), answer.text
        assert answer.headers["location"] == f"/v1/mcf/{NIM}/requests/k-1"
    other = await http.post(f"{url}/certify", json=invoice("F-2"), headers=later)
    assert (other.status_code, other.json()["code"]) == (409, "IDEMPOTENCY_KEY_REUSED")
    stranger = await http.post(f"{url}/certify", json=body, headers={**later, "Authorization": f"Bearer {key[:-1]}x"})
    assert stranger.json()["code"] == "BRIDGE_OFFLINE"
    without = await http.post(f"{url}/certify", json=body, headers=bearer(key, "k-3"))
    assert without.json()["code"] == "BRIDGE_OFFLINE"
    export = await http.post(
        f"{url}/certify", json={**body, "invoiceType": "EV"}, headers=bearer(key, "k-4", Prefer="respond-async")
    )
    assert export.json()["code"] == "BRIDGE_OFFLINE"
    expired = await http.post(f"{url}/certify", json=body, headers={**later, "Mcfd-Not-After": in_seconds(-5)})
    assert expired.json()["code"] == "REQUEST_EXPIRED"
    kept = b"".join(f.read_bytes() for f in (site.directory / "nats").rglob("*") if f.is_file())
    assert b"mcf.EL02000015-1.later" in kept
    assert b"OUEDRAOGO" not in kept
    site.shop.start_daemon()
    async with asyncio.timeout(PATIENCE + 40):
        while True:
            found = await http.get(f"{url}/requests/k-1", headers=bearer(key))
            if found.status_code == 200 and found.json()["status"] == "certified":
                break
            await asyncio.sleep(0.2)
    check_once(site.shop, {"k-1": found.json()["receipt"]})


async def test_signed_requests(site: RelaySite, http: httpx.AsyncClient) -> None:
    """A request that is signed is taken; whatever a relay would change of it is 401; the same once more is answered from the ledger."""
    key, plain = site.key(signed=True), site.key()
    url = await answering(site, http, plain)
    body = b'{"invoiceNumber":"F-1","invoiceType":"FV","items":[{"name":"A","taxGroup":"B","unitPrice":100,"quantity":1}],"payments":[{"method":"E","amount":100}]}'
    limit = {"mcfd-not-after": in_seconds(60)}
    reading = signed(key, "GET", f"{url}/certifications?invoiceNumber=F-1", limit)
    assert (await http.get(f"{url}/certifications?invoiceNumber=F-1", headers=reading)).status_code == 200
    headers = signed(
        key, "POST", f"{url}/certify", {**limit, "idempotency-key": "k-1", "content-type": "application/json"}, body
    )
    changed = [
        ("POST", "/certify", headers, body.replace(b"100", b"999")),
        ("POST", "/certify", {**headers, "idempotency-key": "k-2"}, body),
        ("POST", "/certify", {**headers, "mcfd-not-after": in_seconds(3600)}, body),
        ("POST", "/certify", {**headers, "prefer": "respond-async"}, body),
        ("POST", "/certify", {**headers, "mcfd-strict": "false"}, body),
        ("POST", "/certify?dry_run=true", headers, body),
        ("POST", "/credit-note", headers, body),
        ("POST", "/certify", {n: v for n, v in headers.items() if n != "content-digest"}, body),
        ("GET", "/certifications?invoiceNumber=F-2", reading, b""),
        ("GET", "/certifications", reading, b""),
        ("POST", "/certify", signed(key, "POST", f"{url}/certify", {**limit, "idempotency-key": "k-1"}, body, leave_out=("mcfd-not-after",)), body),
    ]  # fmt: skip
    for method, path, sent, content in changed:
        answer = await http.request(method, f"{url}{path}", headers=sent, content=content)
        assert answer.status_code in (401, 429), (path, answer.text)
    assert site.shop.machines[0].counters == (0, 0, 0)
    first = await http.post(f"{url}/certify", headers=headers, content=body)
    assert first.status_code == 200, first.text
    again = await http.post(f"{url}/certify", headers=headers, content=body)
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    late = signed(key, "GET", f"{url}/info", {"mcfd-not-after": in_seconds(-5)})
    assert (await http.get(f"{url}/info", headers=late)).json()["code"] == "REQUEST_EXPIRED"
    check_once(site.shop, {"k-1": first.json()})


async def test_a_relay_in_wrong_hands(site: RelaySite, http: httpx.AsyncClient) -> None:
    """With the relay's own credentials: a call for another boot, one that is no call, an old one, one with a technician's wishes: nothing is certified,
    and the box goes on."""
    key = site.key()
    url = await answering(site, http, key)
    client = await relay_client(site)
    boot = read_reply((await client.request(f"mcf.{NIM}.call", b"", 5)).data).boot
    now = int(datetime.now(UTC).timestamp() * 1000)
    body = b'{"invoiceNumber":"F-1","invoiceType":"FV","items":[{"name":"A","taxGroup":"B","unitPrice":100,"quantity":1}],"payments":[{"method":"E","amount":100}]}'
    head = (("authorization", f"Bearer {key}"), ("content-type", "application/json"), ("idempotency-key", "k"))
    sale = RelayedCall(
        boot=boot,
        not_after=now + 60_000,
        sent_at=now,
        method="POST",
        path=f"/v1/mcf/{NIM}/certify",
        headers=head,
        body=body,
    )
    for call, status in (
        (structs(sale, boot="other"), 0),
        (structs(sale, not_after=now - 1), 410),
        (structs(sale, headers=head[1:]), 401),
        (structs(sale, headers=head[:2]), 400),
        (structs(sale, path=f"/v1/mcf/{NIM}/cancel-pending"), 404),
        (structs(sale, path="/v1/mcf/EL02000017-1/certify"), 403),
        (structs(sale, method="GET", path=f"/v1/mcf/{NIM}/events"), 404),
    ):
        reply = read_reply((await client.request(f"mcf.{NIM}.call", encode(call), 10)).data)
        assert reply.status == status, (call.path, reply)
    for junk in (b"\xff" * 100, encode(structs(sale, path="/ui/box")), encode(structs(sale, sealed=b"x" * 50))):
        client.publish(f"mcf.{NIM}.call", junk, reply=client.new_inbox())
    for subject in ("closure", "presence", "ask"):
        client.publish(f"mcf.{NIM}.{subject}", b"{}")
    await client.ping()
    await client.close()
    assert site.shop.machines[0].counters == (0, 0, 0)
    answer = await http.post(f"{url}/certify", json=invoice("F-1"), headers=bearer(key, "k"))
    assert answer.status_code == 200, answer.text


def structs(call: RelayedCall, **changes) -> RelayedCall:
    import msgspec  # noqa: PLC0415

    return msgspec.structs.replace(call, **changes)


async def relay_client(site: RelaySite) -> Client:
    from common.wire.nats_pull import NatsOptions, connected  # noqa: PLC0415

    options = NatsOptions(url=site.server.url, credentials_file=site.nats.relay, tls_ca=site.nats.authority.path)
    return await connected(options, "taken over")


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
