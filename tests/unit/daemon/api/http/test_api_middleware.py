import asyncio
import time
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from support.api import INVOICE, LIVE_KEY, NIM, Serve, Served, UseCases, until
from support.wire import REQUEST

SAFE = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
PATHS = ["/health/live", "/health/ready", "/v1/me", "/nowhere", "/schema/openapi.json", f"/v1/mcf/{NIM}/reports/x"]


@pytest.fixture
def lines() -> Iterator[list]:
    with capture_logs() as captured:
        yield captured


@pytest.mark.parametrize("path", PATHS)
async def test_every_answer_carries_the_request_id_and_the_safety_headers(served: Served, path: str) -> None:
    """Decision 7, also where nothing is, and where no key was sent."""
    answer = await served.client.get(path, headers={"x-request-id": "till 4/77"})
    assert answer.headers["x-request-id"] == "till 4/77"
    assert {name: answer.headers[name] for name in SAFE} == SAFE
    assert "server" not in answer.headers


@pytest.mark.parametrize("path", PATHS)
async def test_a_head_is_a_get_without_its_body(served: Served, path: str) -> None:
    """As load balancers and monitors look whether a server is there (RFC 9110, 9.3.2)."""
    get, head = [await served.client.request(method, path) for method in ("GET", "HEAD")]
    for answer in (get, head):
        del answer.headers["x-request-id"], answer.headers["date"]
    assert (head.status_code, head.content, head.headers) == (get.status_code, b"", get.headers)


async def test_one_line_for_each_request(served: Served, lines: list) -> None:
    """Id, method, route, status, duration, address, NIM; never key, values, customer or the path's own words."""
    body = {**INVOICE, "customer": {"clientType": "PP", "name": "Awa Sawadogo"}}
    began = time.monotonic()
    answer = await served.post(json=body, headers={"x-request-id": "r-6", "idempotency-key": "k-secret"})
    most = (time.monotonic() - began) * 1000 + 1
    assert answer.status_code == 200
    await served.get("reports/a?from=2026-01-01&to=2026-01-02")
    await served.client.get("/v1/mcf/STRANGE/info")
    await served.client.get("/STRANGE")
    first, *others = [line for line in lines if line["event"] == "request.answered"]
    assert 0 < first.pop("duration_ms") <= most
    assert first == {
        "event": "request.answered",
        "log_level": "info",
        "request_id": "r-6",
        "method": "POST",
        "route": "/v1/mcf/{nim}/certify",
        "status": 200,
        "address": "127.0.0.1",
        "nim": NIM,
        "mode": "live",
        "key_id": 1,
    }
    assert [line["route"] for line in others] == ["/v1/mcf/{nim}/reports/a", "/v1/mcf/{nim}/info", "(none)"]
    assert [line["status"] for line in others[1:]] == [401, 404]
    for secret in (LIVE_KEY, "k-secret", "Sawadogo", "2026-01-01", "STRANGE"):
        assert secret not in repr(lines)


async def test_an_unforeseen_error_is_a_500_and_in_the_log(served: Served, usecases: UseCases, lines: list) -> None:
    """The same id leads from the answer to the traceback."""
    usecases.trouble = RuntimeError("secret")
    answer = await served.post(json=INVOICE, headers={"x-request-id": "r-7"})
    assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL_ERROR")
    assert "secret" not in answer.text
    failed = [line for line in lines if line["event"] == "request.failed"]
    assert [line["request_id"] for line in failed] == ["r-7"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8480", 200),
        ("127.0.0.1:8480", 200),
        ("192.168.1.50", 200),
        ("[::1]:8480", 200),
        ("caisse.shop.lan", 200),
        ("Caisse.Shop.Lan.:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("caisse.shop.lan@evil.example", 421),
        ("[evil]", 421),
        ("", 421),
        ("[", 421),
        ("[::1", 421),
        ("[::1]evil", 421),
    ],
)
async def test_a_foreign_host_is_refused(serve: Serve, host: str, status: int) -> None:
    """A page on the internet that made its name lead here (DNS rebinding) gets nothing, with or without a key."""
    served = await serve(allowed_hosts=("caisse.shop.lan",))
    raw = await served.send(f"GET /health/live HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert int(raw.split()[1]) == status
    if status == 421:
        assert b"MISDIRECTED_REQUEST" in raw


async def test_a_till_that_hangs_up_has_its_line(served: Served, usecases: UseCases, lines: list) -> None:
    """The certification goes on; what would have been its answer is in the log."""
    usecases.gate = asyncio.Event()
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(REQUEST + b"Content-Length: 2\r\n\r\n{}")
    await until(lambda: usecases.calls)
    writer.close()
    await writer.wait_closed()
    usecases.gate.set()
    await until(lambda: [line for line in lines if line["event"] == "request.answered"])
