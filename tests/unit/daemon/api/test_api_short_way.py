"""What a till sends past the router is answered as the router would."""

from __future__ import annotations

import pytest
from support.api import LIVE_KEY, NIM, Serve, UseCases

from daemon.api import short_way

GOOD = b'{"invoiceNumber": "F-1"}'


def request(
    method: str = "POST",
    path: str = f"/v1/mcf/{NIM}/certify",
    *,
    host: str = "localhost",
    key: str = LIVE_KEY,
    kind: str = "application/json",
    body: bytes = GOOD,
) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nX-Request-ID: me\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


ASKED = {
    "a sale": request(),
    "a credit note": request(path=f"/v1/mcf/{NIM}/credit-note"),
    "escaped": request(path=f"/v1/mcf/{NIM}/certif%79"),
    "a slash more": request(path=f"/v1/mcf/{NIM}/certify/"),
    "two slashes": request(path=f"/v1//mcf/{NIM}/certify"),
    "a query": request(path=f"/v1/mcf/{NIM}/certify?a=b"),
    "no such path": request(path=f"/v1/mcf/{NIM}/certified"),
    "another method": request("PUT"),
    "GET": request("GET", body=b""),
    "OPTIONS": request("OPTIONS", body=b""),
    "a wrong key": request(key="ak_live_x"),
    "another machine": request(path="/v1/mcf/EL99000099-1/certify"),
    "another content": request(kind="text/plain"),
    "no JSON": request(body=b"{"),
    "a strange host": request(host="[::1]"),
    "no host at all": request(host="local host"),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
async def test_both_ways_give_the_same_answer(
    serve: Serve, usecases: UseCases, monkeypatch: pytest.MonkeyPatch, asked: bytes
) -> None:
    """Status, headers and body; and the use case is asked the same."""
    served = await serve()
    short = await served.send(asked)
    calls, usecases.calls = usecases.calls, []
    monkeypatch.setattr(short_way, "_is_plain", lambda _: False)
    assert await served.send(asked) == short
    assert [(name, told[0], told[2]) for name, told in usecases.calls] == [
        (name, told[0], told[2]) for name, told in calls
    ]


async def test_a_sale_takes_the_short_way(serve: Serve, usecases: UseCases, monkeypatch: pytest.MonkeyPatch) -> None:
    """The router is not asked."""
    served = await serve()

    def broken(*_: object) -> bool:
        raise AssertionError("asked the router")

    monkeypatch.setattr("litestar._asgi.asgi_router.ASGIRouter.__call__", broken)
    assert (await served.send(ASKED["a sale"])).startswith(b"HTTP/1.1 200")
    assert [name for name, _ in usecases.calls] == ["certify"]
