from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import httpx
import pytest
from support.api import INVOICE, LIVE_KEY, LOST_KEY, NIM, TEST_KEY, Ring, Serve, Served, UseCases
from support.processor import within

from daemon.api.access.context import RequestContext
from daemon.api.access.throttle import WrongKeys
from daemon.core import keys
from daemon.core.audit import Actor
from daemon.core.errors import NotFound
from daemon.core.keys import ApiKey


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, "an API key is needed"),
        ({"authorization": "Basic YTpi"}, "not of the form Bearer"),
        ({"authorization": "Bearer"}, "not of the form Bearer"),
        ({"authorization": "Bearer abc"}, "mistyped"),
        ({"authorization": "Bearer " + LIVE_KEY[:-1] + ("a" if LIVE_KEY[-1] != "a" else "b")}, "mistyped"),
        ({"authorization": "Bearer " + LIVE_KEY + " x"}, "mistyped"),
        ({"authorization": "Bearer ak_live_\xe9"}, "mistyped"),
        ({"authorization": "Bearer " + keys.generate("live")}, "unknown or was revoked"),
    ],
)
async def test_without_a_key_of_ours_nobody_comes_in(
    served: Served, usecases: UseCases, sent: dict[str, str], expected: str
) -> None:
    """401 with a challenge; the detail tells a mistyped key from an unknown one, and nothing was asked of the machine."""
    headers = {name: value.encode("latin-1") for name, value in sent.items()}
    answer = await served.client.post(f"/v1/mcf/{NIM}/certify", json=INVOICE, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["code"] == "UNAUTHENTICATED"
    assert expected in answer.json()["detail"]
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert usecases.calls == []


async def test_two_authorization_headers_are_none(served: Served) -> None:
    """Nobody guesses which one is meant."""
    headers = [("authorization", f"Bearer {LIVE_KEY}")] * 2
    assert (await served.client.get("/v1/me", headers=headers)).status_code == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_has_no_case(served: Served, scheme: str) -> None:
    """RFC 9110."""
    assert (await served.client.get("/v1/me", headers={"authorization": f"{scheme} {LIVE_KEY}"})).status_code == 200


@pytest.mark.parametrize("nim", ["EL02000016-1", "EL02000015-", "el02000015-1", "EL02000015-1%20", "EL09999999-1", "x"])
async def test_a_key_for_another_nim_is_refused_alike(served: Served, nim: str) -> None:
    """Decision 12: 403 whether that NIM exists or not, and the answer tells nothing of it."""
    answer = await served.client.get(f"/v1/mcf/{nim}/info", headers={"authorization": f"Bearer {LIVE_KEY}"})
    assert answer.status_code == 403
    assert {name: answer.json()[name] for name in ("code", "detail")} == {
        "code": "NIM_NOT_IN_SCOPE",
        "detail": "this key is not for the NIM in the path",
    }


@pytest.mark.parametrize("nim", ["EL02000015", "EL02000015-1", "EL02000015-27"])
async def test_the_activation_counter_of_the_path_is_no_reason_for_403(served: Served, nim: str) -> None:
    """Decision 26: compared up to the dash."""
    answer = await served.client.get(f"/v1/mcf/{nim}/reports/x", headers={"authorization": f"Bearer {LIVE_KEY}"})
    assert answer.status_code != 403


async def test_a_nim_may_come_percent_encoded(served: Served) -> None:
    """As `quote(nim, safe="")` writes it."""
    answer = await served.client.get("/v1/mcf/%45L02000015%2D1/info", headers={"authorization": f"Bearer {LIVE_KEY}"})
    assert answer.status_code == 200


async def test_a_key_for_a_machine_that_was_taken_away(served: Served) -> None:
    """The key stays valid; there is nothing behind it."""
    answer = await served.client.post(
        "/v1/mcf/EL09999999-1/certify", json=INVOICE, headers={"authorization": f"Bearer {LOST_KEY}"}
    )
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert (await served.get("/v1/me", key=LOST_KEY)).json()["connected"] is False


async def test_a_key_says_what_it_is_for(served: Served) -> None:
    """GET /v1/me: the live and the test key of one NIM."""
    live, test = await served.get("/v1/me"), await served.get("/v1/me", key=TEST_KEY)
    assert live.json() == {
        "id": "1",
        "label": "Caisse 1",
        "mode": "live",
        "nim": NIM,
        "connected": False,
        "role": "manager",
        "expiresAt": None,
    }
    assert (test.json()["mode"], test.json()["nim"]) == ("test", NIM)


async def test_the_eleventh_wrong_key_of_a_minute_waits(served: Served) -> None:
    """429 with Retry-After, while a till with its key, behind the same address, goes on."""
    wrong = [await served.get("/v1/me", key=keys.generate("live")) for _ in range(11)]
    assert [answer.status_code for answer in wrong] == [401] * 10 + [429]
    assert wrong[-1].json()["code"] == "TOO_MANY_REQUESTS"
    assert 0 < int(wrong[-1].headers["retry-after"]) <= 60
    assert (await served.client.get("/v1/me")).status_code == 429
    assert (await served.get("/v1/me")).status_code == 200


async def test_a_request_without_a_key_is_no_guess(served: Served) -> None:
    """It is refused each time, and does not shut the address out."""
    for _ in range(15):
        assert (await served.client.get("/v1/me")).status_code == 401
    assert (await served.get("/v1/me", key=keys.generate("live"))).status_code == 401


async def test_a_wrong_key_is_answered_before_the_body(served: Served) -> None:
    """The body never has to arrive: the refusal is there while it is still awaited."""
    head = (
        f"POST /v1/mcf/{NIM}/certify HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {keys.generate('live')}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    for expected in [b"401"] * 10 + [b"429"]:
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(head.encode())
        with within(2):
            assert (await reader.readline()).split()[1] == expected
    writer.close()


async def test_a_revoked_key_is_out_at_once(serve: Serve) -> None:
    """The key ring is asked for every request, on a connection that is open as well."""

    owners = dict(Ring.owners)

    class Revocable:
        def find(self, text: str) -> object:
            return owners.get(text)

    served = await serve(keyring=Revocable())
    assert (await served.get("/v1/me")).status_code == 200
    owners.clear()
    assert (await served.get("/v1/me")).status_code == 401


def test_the_memory_of_wrong_keys_is_bounded() -> None:
    """A million addresses do not fill the box; the ones heard last are kept."""
    wrong = WrongKeys(limit=1, capacity=100)
    for number in range(1000):
        wrong.note(f"10.0.{number // 256}.{number % 256}")
    assert wrong.wait("10.0.3.231") > 0
    assert wrong.wait("10.0.0.1") == 0


async def test_the_proxy_is_told_of_live_keys(serve: Serve) -> None:
    """HAProxy gives the address of a till with a live key the larger limits; a sandbox key, a wrong one and a request without HAProxy do
    not show."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "s"
        served = await serve(config={"behind": place})
        transport = httpx.AsyncHTTPTransport(uds=str(place))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as proxy:
            rows = [
                "mcfd-known" in (await proxy.get("/v1/me", headers={"authorization": f"Bearer {key}"})).headers
                for key in (LIVE_KEY, TEST_KEY, LIVE_KEY[:-1])
            ]
        await served.server.stop()
    assert rows == [True, False, False]
    alone = await serve()
    assert "mcfd-known" not in (await alone.get("/v1/me")).headers


def test_what_is_done_with_a_key_has_a_name_and_an_address() -> None:
    """For the audit log; and a key whose machine is not at this box has no book to work on."""
    key = ApiKey(7, NIM, "live", "till", 0, 0)
    request = RequestContext(key, None, "192.168.1.7")
    assert request.actor == Actor("key:7", "192.168.1.7")
    with pytest.raises(NotFound, match="no machine for this key"):
        _ = request.worker


def test_the_window_slides() -> None:
    """Ten failures stay counted for their own minute each."""
    clock = iter((0.0, 10.0, 20.0, 20.0, 60.0, 60.0, 60.0))
    wrong = WrongKeys(limit=3, window=60, clock=lambda: next(clock))
    for _ in range(3):
        assert wrong.wait("a") == 0
        wrong.note("a")
    assert wrong.wait("a") == 40
    assert wrong.wait("b") == 0
    assert wrong.wait("a") == 0
    wrong.note("a")
    assert wrong.wait("a") == 10
