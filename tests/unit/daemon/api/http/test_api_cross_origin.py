"""Pages of other origins: what the answers say of them, over a real socket."""

import httpx
import pytest
from support.api import INVOICE, NIM, Serve, Served, UseCases

from daemon.api.http.middleware import CrossOrigin

ORIGIN = "https://till.example"
OTHERS = [
    "https://evil.example",
    "http://till.example",
    "https://till.example:8443",
    "https://till.example.evil.example",
    "HTTPS://TILL.EXAMPLE",
    "https://till.example/",
    "null",
    "",
]
CERTIFY = f"/v1/mcf/{NIM}/certify"
PREFLIGHT_HEADERS = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}
LISTED = "Authorization, Content-Type, Idempotency-Key, X-Request-ID, Mcfd-Strict, Mcfd-Test, Prefer, Last-Event-ID, Accept-Language"
READABLE = "X-Request-ID, Idempotency-Replayed, Retry-After, Location, Preference-Applied"


@pytest.fixture
async def allowing(serve: Serve) -> Served:
    return await serve(cross_origin=CrossOrigin((ORIGIN, "http://127.0.0.1:5173")))


def cors_headers(answer: httpx.Response) -> dict[str, str]:
    """What an answer says of origins."""
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


async def preflight(served: Served, origin: str, path: str = CERTIFY, **more: str) -> httpx.Response:
    return await served.client.request("OPTIONS", path, headers={"Origin": origin, **PREFLIGHT_HEADERS, **more})


async def test_a_browser_is_told_what_it_may_send_before_a_key_is_asked_for(
    allowing: Served, usecases: UseCases
) -> None:
    """204 with a till's methods and headers, and no cookies; private network access where asked. Another Host stays 421."""
    answer = await preflight(allowing, ORIGIN)
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-length" not in answer.headers
    expected = {
        "access-control-allow-origin": ORIGIN,
        "access-control-allow-methods": "GET, POST, DELETE",
        "access-control-allow-headers": LISTED,
        "access-control-expose-headers": READABLE,
        "access-control-max-age": "7200",
    }
    assert cors_headers(answer) == expected
    assert answer.headers["vary"] == "Origin"
    private = await preflight(allowing, ORIGIN, **{"Access-Control-Request-Private-Network": "true"})
    assert cors_headers(private) == {**expected, "access-control-allow-private-network": "true"}
    assert (await preflight(allowing, ORIGIN, Host="evil.example")).status_code == 421
    for method, headers in (("OPTIONS", {}), ("GET", PREFLIGHT_HEADERS)):  # neither is a preflight
        plain = await allowing.client.request(method, CERTIFY, headers={"Origin": ORIGIN, **headers})
        assert "access-control-allow-methods" not in plain.headers
    assert usecases.calls == []


@pytest.mark.parametrize("origin", [*OTHERS, None])
async def test_another_origin_is_told_nothing(serve: Serve, usecases: UseCases, origin: str | None) -> None:
    """Its preflight is a request without a key, and no header lets it read; so is every origin's where none is configured."""
    served = await serve(cross_origin=CrossOrigin((ORIGIN,))) if origin is not None else await serve()
    refused = await preflight(served, ORIGIN if origin is None else origin)
    answer = await served.get("/v1/me", headers={"Origin": ORIGIN if origin is None else origin})
    assert (refused.status_code, cors_headers(refused)) == (401, {})
    assert (answer.status_code, cors_headers(answer)) == (200, {})
    assert refused.headers.get("vary") == answer.headers.get("vary") == (None if origin is None else "Origin")
    assert usecases.calls == []


async def test_answers_may_be_read_by_the_page_that_asked(allowing: Served) -> None:
    """Each origin is named alone, with the headers that a till reads; nothing but the API is for other origins."""
    for origin in (ORIGIN, "http://127.0.0.1:5173"):
        answer = await allowing.post(json=INVOICE, headers={"Origin": origin})
        assert answer.status_code == 200
        assert cors_headers(answer) == {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": READABLE,
        }
        assert answer.headers["vary"] == "Origin"
    for path in ("/", "/ui/", "/ui/login", "/ui/static/page.css", "/metrics", "/nowhere"):
        answer = await allowing.client.get(path, headers={"Origin": ORIGIN})
        assert (cors_headers(answer), cors_headers(await preflight(allowing, ORIGIN, path))) == ({}, {}), path
        assert "vary" not in answer.headers
