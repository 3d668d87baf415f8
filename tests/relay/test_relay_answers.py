"""What a client gets through the relay is what it would get on the shop's network, to the byte; what does not pass, and who may not."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from support.receivers.headquarters import until
from support.receivers.nats_server import NIM, SECOND
from support.relay_site import RelaySite, answering, bearer, in_seconds, in_service, mistyped, until_answered
from support.shop import invoice

from common.wire.call import RelayedCall
from common.wire.closure import read_closure
from common.wire.presence import read_presence
from relay.api import RelayParts, create_relay
from relay.problems import BoxOffline

SAME = ("date", "x-request-id")
AFTER_ACTIVATION = f"{NIM[:-1]}2"


@pytest.mark.long
async def test_the_same_answers(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Certified once through the relay; the answers of every reading, and those of every mistake, are those of the shop's network."""
    lane, lan = site.key(), site.shop.key()
    base = await answering(site, http, lane)
    first = await http.post(f"{base}/certify", json=invoice("F-1"), headers=bearer(lane, "k-1"))
    assert first.status_code == 200, first.text
    again = await http.post(f"{base}/certify", json=invoice("F-1"), headers=bearer(lane, "k-1"))
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    code = first.json()["codeSecef"]
    await asyncio.to_thread(site.shop.x_with, 1)
    readings = [
        *(
            "reports",
            "reports/x?from=2026-01-01&to=2026-01-02",
            "requests/k-1",
            "requests/none",
            "certifications?invoiceNumber=F-1",
        ),
        *(f"certifications/{code}", f"certifications/{code}/ticket?width=42", f"certifications/{code}/qr.svg"),
        *("cash?from=2026-01-01&to=2026-01-02", "certifications?limit=x", "reports/z/99", "nowhere", "reports/month"),
    ]
    for reading in readings:
        ours = await http.get(
            f"{base}/{reading}", headers=bearer(lane, **{"Accept-Language": "fr", "X-Request-ID": "r"})
        )
        theirs = site.shop.http.get(
            f"/v1/mcf/{NIM}/{reading}", headers=bearer(lan, **{"Accept-Language": "fr", "X-Request-ID": "r"})
        )
        assert (ours.status_code, ours.content) == (theirs.status_code, theirs.content), reading
        assert {n: v for n, v in ours.headers.items() if n not in SAME} == {
            n: v for n, v in theirs.headers.items() if n not in SAME
        }
    for body in (b"{", b'{"invoiceNumber":"F-2"}', json.dumps(invoice("F-1")).encode()):
        headers = {"Content-Type": "application/json", "X-Request-ID": "r"}
        ours = await http.post(f"{base}/certify", content=body, headers=bearer(lane, "k-2", **headers))
        theirs = site.shop.http.post(f"/v1/mcf/{NIM}/certify", content=body, headers=bearer(lan, "k-3", **headers))
        assert (ours.status_code, ours.content) == (theirs.status_code, theirs.content)
    me = (await http.get(f"{base}/me", headers=bearer(lane))).json()
    assert (me["nim"], me["label"]) == (NIM, "ERP manager")
    z = await http.post(f"{base}/reports/z", headers=bearer(lane, "z-1"))
    assert (z.status_code, z.json()["certs_count"]) == (201, 1)
    assert site.shop.machines[0].counters == (1, 1, 0)


async def test_who_may_not(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Keys of the other lane, foreign and mistyped ones, a role too low, and what does not pass: each refused by its code."""
    lane = site.key()
    seller = site.key("seller")
    base = await answering(site, http, lane)
    refused = [
        ("info", site.shop.key(), 403, "WRONG_LANE"),
        ("info", mistyped(lane), 401, "UNAUTHENTICATED"),
        ("reports/x", seller, 403, "ROLE_NOT_ALLOWED"),
        ("events", lane, 404, "NOT_FOUND"),
        ("certifications?format=csv", lane, 404, "NOT_FOUND"),
    ]
    for path, key, status, code in refused:
        answer = await http.get(f"{base}/{path}", headers=bearer(key))
        assert (answer.status_code, answer.json()["code"]) == (status, code), path
    assert site.shop.http.get(f"/v1/mcf/{NIM}/info", headers=bearer(lane)).json()["code"] == "WRONG_LANE"
    for path in ("cancel-pending", "test/clock", f"certifications/{'A' * 24}/print"):
        answer = await http.post(f"{base}/{path}", json={}, headers=bearer(lane, "p-1"))
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), path
    for path in ("/ui/", "/metrics/x", "/v1/me", "/f/abc", "/v1/mcf/x/info", "/openapi.json"):
        assert (await http.get(f"{site.relays[0].base}{path}", headers=bearer(lane))).status_code == 404, path
    unknown = await http.get(f"{site.relays[0].base}/v1/mcf/EL02000099-1/info", headers=bearer(lane))
    assert (unknown.status_code, unknown.json()["code"]) == (503, "BRIDGE_OFFLINE")
    assert int(unknown.headers["retry-after"]) > 0


async def test_a_post_without_a_key(site: RelaySite, http: httpx.AsyncClient) -> None:
    """400 for each POST without an Idempotency-Key, a dry run included; nothing is made up, and nothing certified."""
    lane, base = await in_service(site, http)
    for path in ("certify", "credit-note", "certify?dry_run=true", "reports/z", "cash"):
        answer = await http.post(f"{base}/{path}", json=invoice("F-1"), headers=bearer(lane))
        assert (answer.status_code, answer.json()["code"]) == (400, "IDEMPOTENCY_KEY_REQUIRED"), path
    assert site.shop.machines[0].counters == (0, 0, 0)


async def test_a_relay_whose_clock_is_wrong(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Its limit is a duration: neither its requests nor those of the other relay are too late, which would be 410 for all."""
    site.relays[1].start()
    lane = site.key()
    right, wrong = (f"{relay.base}/v1/mcf/{NIM}" for relay in (site.relays[1], site.relays[0]))
    await answering(site, http, lane)
    (site.directory / "ahead").touch()
    for number, url in enumerate((wrong, right, wrong)):
        answer = await http.post(f"{url}/certify", json=invoice(f"F-{number}"), headers=bearer(lane, f"k-{number}"))
        assert answer.status_code == 200, answer.text


async def test_too_late(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Past its time: 410 before the machine is touched, and may be sent again; a limit that is none is 422, a large body 413."""
    lane, base = await in_service(site, http)
    late = bearer(lane, "k-1", **{"Mcfd-Not-After": in_seconds(-1)})
    answer = await http.post(f"{base}/certify", json=invoice("F-1"), headers=late)
    assert (answer.status_code, answer.json()["code"]) == (410, "REQUEST_EXPIRED")
    assert (
        f"{late['Mcfd-Not-After'][:-1]}.000Z: it is {in_seconds(0)[:15]}" in answer.json()["detail"]
    )  # to compare the clocks by
    assert site.shop.machines[0].counters == (0, 0, 0)
    nonsense = bearer(lane, "k-1", **{"Mcfd-Not-After": "tomorrow"})
    assert (await http.post(f"{base}/certify", json=invoice("F-1"), headers=nonsense)).status_code == 422
    again = bearer(lane, "k-1", **{"Mcfd-Not-After": in_seconds(60)})
    assert (await http.post(f"{base}/certify", json=invoice("F-1"), headers=again)).status_code == 200
    large = await http.post(f"{base}/certify", content=b" " * (256 * 1024 + 1), headers=bearer(lane, "k-2"))
    assert (large.status_code, large.json()["code"]) == (413, "TOO_LARGE")
    address = httpx.URL(base)
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(f"POST {address.path}/certify HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n".encode())
    async with asyncio.timeout(10):  # long before the time that a body has
        assert b" 413 " in await reader.readline()
    writer.close()
    assert site.shop.machines[0].counters == (1, 1, 0)


async def test_whole_urls(site: RelaySite, http: httpx.AsyncClient) -> None:
    """A request line with a whole URL (RFC 9112, 3.2.2) is the same request, at the relay and on the shop's network, where the URL's host counts."""
    lane = site.key()
    relay = httpx.URL(await answering(site, http, lane))
    box = ("127.0.0.1", site.shop.port, site.shop.key())
    path = relay.path
    requests = [
        (*box, f"HTTP://127.0.0.1:{site.shop.port}{path}/info", b"200"),
        (*box, f"http://evil.example{path}/info", b"421"),
        (relay.host, relay.port, lane, f"https://relay.example{path}/certifications?limit=1", b"200"),
        (relay.host, relay.port, lane, "https://relay.example", b"404"),
        (relay.host, relay.port, lane, "ftp://relay.example/v1/mcf/x", b"404"),
    ]
    for host, port, key, url, status in requests:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"GET {url} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        async with asyncio.timeout(20):
            assert (await reader.readline()).split()[1] == status, url
        writer.transport.abort()


async def test_http_of_any_kind(site: RelaySite, http: httpx.AsyncClient) -> None:
    """Other methods are 405; chunks and Java's Upgrade are the same sale; two keys, a large head, no HTTP are refused."""
    lane = site.key()
    base = httpx.URL(await answering(site, http, lane))
    for method in ("HEAD", "OPTIONS", "PUT", "PATCH"):
        answer = await http.request(method, f"{base}/certify", headers=bearer(lane))
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST, DELETE"), method
    alive = await http.post(f"{site.relays[0].base}/health/live")
    assert (alive.status_code, alive.headers["allow"]) == (405, "GET, OPTIONS")
    body = json.dumps(invoice("F-1")).encode()
    length = b"Content-Length: %d" % len(body)
    sends = [
        (b"200", b"k-1", length, body),
        (b"200", b"k-1", b"Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)),
        (b"200", b"k-1", b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n" + length, body),
        (b"422", b"k-2\r\nIdempotency-Key: k-3", length, body),
        (b"400", b"k-2", length + b"\r\nPrefer: " + b"x" * 9000, body),
        (b"400", b"k-2", length + b"\r\nPrefer: a\0b", body),
    ]
    for status, key, head, content in sends:
        reader, writer = await asyncio.open_connection(base.host, base.port)
        first = b"POST %s/certify HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n" % (base.raw_path, lane.encode())
        rest = b"Content-Type: application/json\r\nIdempotency-Key: %s\r\n%s\r\n\r\n%s" % (key, head, content)
        writer.write(first + rest)
        async with asyncio.timeout(20):
            assert (await reader.readline()).split()[1] == status, head
        writer.transport.abort()
    assert site.shop.machines[0].counters == (1, 1, 0)


@pytest.mark.long
async def test_a_box_with_two_machines(tmp_path: Path, http: httpx.AsyncClient) -> None:
    """One key and number at each is two sales; the key of one is 403 at the other. A name in percent-encoding is the same name; in small letters none."""
    site = RelaySite(tmp_path)
    site.shop = site.box(tmp_path / "two", NIM, site.nats.shop, more=(SECOND,))
    try:
        await site.up()
        lanes = {nim: site.key(machine=at) for at, nim in enumerate((NIM, SECOND))}
        relay = (await answering(site, http, lanes[NIM])).removesuffix(NIM)
        for nim, other in ((NIM, SECOND), (SECOND, NIM)):
            sale = {"json": invoice("F-1"), "headers": bearer(lanes[nim], "k-1")}
            sold = await until_answered(http, "POST", f"{relay}{nim}/certify", **sale)
            assert (sold.status_code, sold.json()["nim"]) == (200, nim)
            refused = await http.post(f"{relay}{other}/certify", **sale)
            assert (refused.status_code, refused.json()["code"]) == (403, "NIM_NOT_IN_SCOPE")
            encoded = await http.get(f"{relay}%45{nim[1:-2]}%2D1/info", headers=bearer(lanes[nim]))
            assert (encoded.status_code, encoded.json()["nim"]) == (200, nim)
        assert [machine.counters for machine in site.shop.machines] == [(1, 1, 0), (1, 1, 0)]
        for path in (f"{NIM.lower()}/info", f"{NIM}%2Finfo/x", f"{NIM}%0A/info", "%2A/info"):
            assert (await http.get(f"{relay}{path}", headers=bearer(lanes[NIM]))).status_code == 404, path
    finally:
        site.down()


@pytest.mark.long
async def test_the_largest_requests_and_answers(site: RelaySite, http: httpx.AsyncClient) -> None:
    """256 KB pass to the byte; an answer too large to pass on is 413, and has its effect once."""
    lane, lan = site.key(), site.shop.key()
    base = await answering(site, http, lane)
    for number in range(7):
        items = [
            {"name": f"{number}-{at} ".ljust(60, "R"), "taxGroup": "B", "unitPrice": 1, "quantity": 1}
            for at in range(1000)
        ]
        sale = {**invoice(f"F-{number}"), "items": items, "payments": [{"method": "E", "amount": 1000}]}
        body = json.dumps(sale).encode().ljust(256 * 1024)
        headers = bearer(lane, f"k-{number}", **{"Content-Type": "application/json"})
        sold = await until_answered(http, "POST", f"{base}/certify", content=body, headers=headers)
        assert sold.status_code == 200, sold.text
    theirs = site.shop.http.get(f"/v1/mcf/{NIM}/reports/articles", headers=bearer(lan))
    assert (theirs.status_code, len(theirs.content) > 1024 * 1024) == (200, True)
    tries = [("GET", "", "plus petite")] + [("POST", "a-1", "a été fait")] * 2
    for method, once, words in tries:
        headers = bearer(lane, once, **{"Accept-Language": "fr", "X-Request-ID": "r-1"})
        large = await http.request(method, f"{base}/reports/articles", headers=headers)
        problem = large.json()
        assert (large.status_code, problem["code"], problem["request_id"]) == (413, "TOO_LARGE", "r-1")
        assert words in problem["detail"]
    closed = [site.shop.http.get(f"/v1/mcf/{NIM}/reports/articles/{at}", headers=bearer(lan)) for at in (1, 2)]
    assert [answer.status_code for answer in closed] == [200, 404]


async def test_what_the_relay_itself_refuses_is_in_french_too() -> None:
    """A body beyond its limit, and for a box that is off a time that is none."""

    async def ask(nim: str, call: RelayedCall) -> None:
        raise BoxOffline

    boxes = SimpleNamespace(limit=lambda: 0, millis=lambda: 0, ask=ask)
    app = create_relay(RelayParts(None, boxes, None))  # type: ignore[arg-type]  # no more is needed
    headers = {"Accept-Language": "fr", "Idempotency-Key": "k", "Prefer": "respond-async", "Mcfd-Not-After": "demain"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://relay", headers=headers
    ) as client:
        large = await client.post(f"/v1/mcf/{NIM}/certify", content=b"x" * (256 * 1024 + 1))
        timed = await client.post(f"/v1/mcf/{NIM}/certify", json=invoice("F-1"))
    assert (large.status_code, large.json()["detail"]) == (413, "le corps dépasse 262144 octets")
    fault = {"field": "Mcfd-Not-After", "message": "doit être une heure UTC, comme 2026-11-25T10:00:00Z"}
    assert (timed.status_code, timed.json()["errors"]) == (422, [fault])
    assert timed.json()["detail"].endswith(fault["message"])


async def test_a_fault_of_the_relay() -> None:
    """500 INTERNAL_ERROR, as the box would write it."""
    faulty = create_relay(RelayParts(None, None, None))  # type: ignore[arg-type]  # nothing works
    async with httpx.AsyncClient(transport=httpx.ASGITransport(faulty), base_url="http://relay") as client:
        answer = await client.get(f"/v1/mcf/{NIM}/info", headers={"X-Request-ID": "r-1"})
    assert (answer.status_code, answer.json()["code"], answer.json()["request_id"]) == (500, "INTERNAL_ERROR", "r-1")


@pytest.mark.long
async def test_after_an_activation(site: RelaySite, http: httpx.AsyncClient) -> None:
    """The machine has another suffix, the credentials stay: it answers, its closure and last word are where they belong."""
    lane, base = await in_service(site, http)
    machine = site.shop.machines[0]
    for order in ({"what": "silence"}, {"what": "counters", "tc": 0, "fvc": 0, "frc": 0}):
        machine.order(order.pop("what"), **order)
    machine.order("reboot", seconds=0.1, nim=AFTER_ACTIVATION)
    await until(lambda: asyncio.to_thread(site.shop.events, "machine.activated"))
    sold = await until_answered(http, "POST", f"{base}/certify", json=invoice("F-2"), headers=bearer(lane, "k-2"))
    assert (sold.status_code, sold.json()["nim"]) == (200, AFTER_ACTIVATION)
    assert (await http.post(f"{base}/reports/z", headers=bearer(lane, "z-1"))).status_code == 201
    site.shop.kill_daemon()
    await asyncio.to_thread(site.shop.start_daemon)
    site.relays[1].start()
    other = await until_answered(http, "GET", f"{site.relays[1].base}/v1/mcf/{NIM}/info", headers=bearer(lane))
    assert other.status_code == 200, other.text
    client = await site.nats.connect(site.server.url)
    try:
        stream = client.jetstream()
        closure = await stream.get_last_msg("CLOSURES", f"mcf.{NIM}.closure", direct=True)
        presence = await stream.get_last_msg("PRESENCE", f"mcf.{NIM}.presence", direct=True)
    finally:
        await client.close()
    assert read_closure(closure.data).nim == AFTER_ACTIVATION
    assert read_presence(presence.data).nim == AFTER_ACTIVATION
