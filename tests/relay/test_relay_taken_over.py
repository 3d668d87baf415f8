"""A relay in wrong hands: all that it has is its credentials, and what clients have sent through it."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from support.receivers.nats_server import NIM, OTHER
from support.relay_site import RelaySite, answering, bearer, check_once, in_seconds, running
from support.shop import invoice
from support.signing_client import signed

from common.wire.call import LaterCall, RelayedCall, RelayedReply, encode, read_later, read_reply
from common.wire.errors import NatsError, NoAnswer
from common.wire.keys import NotSealed, read_credentials, unseal
from common.wire.nats_client import Client
from common.wire.nats_pull import NatsOptions, connected

pytestmark = pytest.mark.long

BODY = msgspec.json.encode(invoice("F-1"))


class TakenOver:
    """`boots` are those that the boxes answer with to any question; `key` that of an honest client."""

    def __init__(self, client: Client, boots: dict[str, str], key: str) -> None:
        self.client = client
        self.key = key
        self._boots = boots

    async def reply(self, call: RelayedCall, nim: str = NIM, seconds: float = 10) -> RelayedReply:
        """The box's, to `call` as the relay would send it now: its boot, a limit and a time of sending where it names none."""
        now = time.time_ns() // 1_000_000
        times = {"not_after": call.not_after or now + 90_000, "sent_at": call.sent_at or now}
        content = encode(changed(call, boot=call.boot if call.boot != "-" else self._boots[nim], **times))
        return read_reply((await self.client.request(f"mcf.{nim}.call", content, seconds)).data)


def changed(call: RelayedCall, **changes: Any) -> RelayedCall:
    return msgspec.structs.replace(call, **changes)


def with_headers(call: RelayedCall, **changes: str | None) -> RelayedCall:
    headers = dict(call.headers) | {name.replace("_", "-"): value for name, value in changes.items()}
    return changed(call, headers=tuple((name, value) for name, value in headers.items() if value is not None))


def captured(
    key: str, method: str, path: str, body: bytes = b"", *, once: str = "", seconds: float = 60
) -> RelayedCall:
    """What a client has signed, as the relay passes it on."""
    path = f"/v1/mcf/{NIM}/{path}"
    headers = {"mcfd-not-after": in_seconds(seconds)}
    if once:
        headers |= {"idempotency-key": once, "content-type": "application/json"}
    sent = signed(key, method, f"https://relay.example{path}", headers, body)
    return RelayedCall("-", 0, 0, method, path, tuple(sent.items()), body)  # type: ignore[arg-type]  # a method


def other_inputs(text: str) -> list[str]:
    """What a signature says of itself, changed: its algorithm, when it was made, what it covers, and one more beside it."""
    changes = [('"ed25519"', '"none"'), ('"ed25519"', '"hmac-sha256"'), (';alg="ed25519"', ""), ("created=1", "created=9"), (' "mcfd-not-after"', ""), (' "content-digest"', "")]  # fmt: skip
    return [*(text.replace(*change) for change in changes), f"{text}, x=()", ""]


def unsigned(key: str, method: str, path: str, once: str = "") -> RelayedCall:
    headers = (("authorization", f"Bearer {key}"), ("content-type", "application/json"))
    body = BODY if method == "POST" else b""
    more = (("idempotency-key", once),) if once else ()
    return RelayedCall("-", 0, 0, method, path, (*headers, *more), body)  # type: ignore[arg-type]  # a method


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[RelaySite]:
    async with running(tmp_path, two=True) as created:
        yield created


@pytest.fixture
async def taken(site: RelaySite, http: httpx.AsyncClient) -> AsyncIterator[TakenOver]:
    options = NatsOptions(url=site.server.url, credentials_file=site.nats.relay, tls_ca=site.nats.authority.path)
    client = await connected(options, "taken over")
    try:
        site.key(shop=site.other)
        key = site.key()
        await answering(site, http, key)
        boots: dict[str, str] = {}
        async with asyncio.timeout(60):
            while len(boots) < 2:
                for nim in {NIM, OTHER} - boots.keys():
                    try:
                        boots[nim] = read_reply((await client.request(f"mcf.{nim}.call", b"", 5)).data).boot
                    except NatsError:  # it does not listen yet
                        await asyncio.sleep(0.1)
        yield TakenOver(client, boots, key)
    finally:
        await client.close()


async def test_a_signed_request_can_be_repeated_and_nothing_else(site: RelaySite, taken: TakenOver) -> None:
    """Whatever is changed is refused; the request itself is certified once, and then answered from the ledger."""
    key = site.key(signed=True)
    sale = captured(key, "POST", "certify", BODY, once="k-1")
    info = captured(key, "GET", "certifications?invoiceNumber=F-1")
    attacks = [
        changed(sale, body=BODY.replace(b"15000", b"15")),
        changed(sale, path=sale.path.replace("certify", "credit-note")),
        changed(sale, path=f"{sale.path}?dry_run=true"),
        changed(sale, path=sale.path.replace(NIM, OTHER)),
        changed(sale, method="GET"),
        with_headers(sale, idempotency_key="k-2"),
        with_headers(sale, idempotency_key=None),
        with_headers(sale, mcfd_not_after=in_seconds(3600)),
        with_headers(sale, mcfd_not_after=None),
        with_headers(sale, prefer="respond-async"),
        with_headers(sale, mcfd_strict="false"),
        with_headers(sale, content_type="text/plain"),
        with_headers(sale, content_digest=None),
        with_headers(sale, signature=None, signature_input=None),
        *(with_headers(sale, signature_input=other) for other in other_inputs(dict(sale.headers)["signature-input"])),
        changed(info, path=info.path.replace("F-1", "F-2")),
        changed(sale, headers=info.headers),
    ]
    for at, attack in enumerate(attacks):
        reply = await taken.reply(attack)
        assert reply.status in (400, 401, 403, 405, 429), (at, reply)
    assert (await taken.reply(changed(sale, path=sale.path.replace(NIM, OTHER)), OTHER)).status == 401
    assert (await taken.reply(sale, OTHER)).status in (401, 403)
    assert site.shop.machines[0].counters == (0, 0, 0)
    assert site.other.machines[0].counters == (0, 0, 0)
    first = await taken.reply(sale)
    assert first.status == 200, first
    for _ in range(3):
        again = await taken.reply(sale)
        assert (again.body, dict(again.headers)["idempotency-replayed"]) == (first.body, "true")
    check_once(site.shop, {"k-1": msgspec.json.decode(first.body)})


async def test_a_request_is_one_whatever_a_signature_leaves_open(site: RelaySite, taken: TakenOver) -> None:
    """Blanks around the key, a body added, headers reordered: nothing counts twice; no limit outlives the box's memory."""
    key = site.key(signed=True)
    cash = captured(key, "POST", "cash", b'{"kind":"deposit","amount":5000,"reason":"fond"}', once="c-1")
    first, z = await taken.reply(cash), captured(key, "POST", "reports/z", once="z-1")
    assert (first.status, (await taken.reply(z)).status) == (201, 201)
    for call in (cash, z):
        once = dict(call.headers)["idempotency-key"]
        for other in (f" {once}", f"{once} ", f"\t{once}"):
            with pytest.raises(NoAnswer):
                await taken.reply(with_headers(call, idempotency_key=other), seconds=0.5)
    assert (await taken.reply(changed(z, body=b'{"counted":1}'))).status == 401
    assert (await taken.reply(changed(cash, headers=cash.headers[::-1]))).body == first.body
    late = await taken.reply(captured(key, "POST", "reports/z", once="z-2", seconds=8 * 86_400))
    assert (late.status, b"Mcfd-Not-After" in late.body) == (422, True)
    moved = await taken.reply(captured(key, "GET", "cash"))
    assert [row["amount"] for row in msgspec.json.decode(moved.body)["movements"]] == [5000]
    assert (await asyncio.to_thread(site.shop.get, "reports/z/2")).status_code == 404


async def test_a_request_that_was_dropped_is_never_carried_out_later(site: RelaySite, taken: TakenOver) -> None:
    """Signed for a minute, months ago: 410 from a box that has heard of the time since, whatever the relay says."""
    old = captured(site.key(signed=True), "POST", "certify", BODY, once="k-1", seconds=-90 * 86_400)
    then = time.time_ns() // 1_000_000 - 90 * 86_400_000
    for call in (old, changed(old, sent_at=then), changed(old, sent_at=then, not_after=then + 90_000)):
        reply = await taken.reply(call)
        assert (reply.status, msgspec.json.decode(reply.body)["code"]) == (410, "REQUEST_EXPIRED")
    assert site.shop.machines[0].counters == (0, 0, 0)


async def test_a_key_that_was_sent(site: RelaySite, taken: TakenOver, http: httpx.AsyncClient) -> None:
    """The relay's until it is revoked, as far as its role reaches, by this lane and for its machine alone."""
    key = site.key("seller")
    path = f"/v1/mcf/{NIM}"
    refused = [
        (unsigned(key, "GET", f"{path}/reports/x"), 403),
        (unsigned(key, "POST", f"{path}/cancel-pending", "k"), 403),
        (unsigned(key, "POST", f"{path}/certify"), 400),
        (unsigned(taken.key, "GET", f"{path}/events"), 404),
        (unsigned(key, "POST", f"/v1/mcf/{OTHER}/certify", "k"), 403),
        (changed(unsigned(key, "POST", f"{path}/certify", "k"), boot="other"), 0),
        (changed(unsigned(key, "POST", f"{path}/certify", "k"), not_after=1), 410),
    ]
    for call, status in refused:
        assert (await taken.reply(call)).status == status, call.path
    lan = site.shop.http.post(f"{path}/certify", json=invoice("F-1"), headers=bearer(key, "k"))
    assert (lan.status_code, lan.json()["code"]) == (403, "WRONG_LANE")
    for junk in (b"\xff" * 100, encode(unsigned(key, "GET", "/ui/box")), encode(RelayedCall("-", 1, 1, sealed=b"x"))):
        taken.client.publish(f"mcf.{NIM}.call", junk, reply=taken.client.new_inbox())
    await taken.client.ping()
    assert site.shop.machines[0].counters == (0, 0, 0)
    url = f"{site.relays[0].base}{path}"
    assert (await http.post(f"{url}/certify", json=invoice("F-1"), headers=bearer(key, "k"))).status_code == 200


async def test_what_nats_lets_it_hear_and_say(site: RelaySite, taken: TakenOver, http: httpx.AsyncClient) -> None:
    """Its own answers and nothing else; it changes no stream, and cannot read what waits for a box."""
    heard: list[str] = []
    subjects = (
        ">",
        "mcf.>",
        f"mcf.{NIM}.call",
        "mcf.*.call",
        "mcf.*.presence",
        "mcf.*.closure",
        "_INBOX.>",
        "$JS.>",
        "$SYS.>",
    )
    for subject in subjects:
        taken.client.subscribe(subject, lambda msg: heard.append(msg.subject))
    await taken.client.ping()
    key = taken.key
    url = f"{site.relays[0].base}/v1/mcf/{NIM}"
    assert (await http.post(f"{url}/certify", json=invoice("F-1"), headers=bearer(key, "k"))).status_code == 200
    assert (await http.post(f"{url}/reports/z", headers=bearer(key, "z"))).status_code == 201
    denied = [
        *(f"mcf.{NIM}.{what}" for what in ("closure", "presence", "ask")),
        *(
            "$JS.API.STREAM.PURGE.CALLS",
            "$JS.API.STREAM.DELETE.CALLS",
            "$JS.API.STREAM.UPDATE.CALLS",
            "$JS.API.STREAM.LIST",
        ),
        *("$JS.API.STREAM.MSG.GET.CALLS", "$JS.API.STREAM.MSG.DELETE.CALLS", "$JS.API.STREAM.MSG.GET.CLOSURES"),
        *("$JS.API.DIRECT.GET.CLOSURES", "$JS.API.CONSUMER.CREATE.CALLS", "$JS.API.CONSUMER.DELETE.CALLS.relay"),
        *("$JS.API.CONSUMER.MSG.NEXT.CLOSURES.headquarters", "$JS.API.CONSUMER.CREATE.PRESENCE"),
    ]
    for subject in denied:
        with pytest.raises(NatsError, match="permissions violation"):
            await taken.client.request(subject, b"{}", 10)
    body = invoice("F-2", customer={"clientType": "CC", "name": "OUEDRAOGO AWA"})
    site.shop.kill_daemon()
    waiting = bearer(key, "k-2", Prefer="respond-async")
    async with asyncio.timeout(60):
        while True:
            answer = await http.post(f"{url}/certify", json=body, headers=waiting)
            if answer.status_code == 202:
                break
            await asyncio.sleep(0.1)
    assert answer.json() == {"status": "waiting"}
    stored = await taken.client.request("$JS.API.DIRECT.GET.CALLS", b'{"seq":1}', 10)
    sealed = read_later(stored.data)
    assert isinstance(sealed, LaterCall)
    assert b"OUEDRAOGO" not in stored.data
    with pytest.raises(NotSealed):
        unseal(sealed.sealed, read_credentials(site.nats.relay, "").seed)
    assert heard == []
