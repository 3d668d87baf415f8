import asyncio
import tempfile
from pathlib import Path

import httpx
import pytest
from support.api import INVOICE, LIVE_KEY, LOST_KEY, NIM, ROLE_KEYS, TEST_KEY, Serve, Served, UseCases, api_key
from support.processor import within

from daemon.api.access.context import RequestContext
from daemon.api.access.throttle import WrongKeys
from daemon.core import keys
from daemon.core.audit import Actor
from daemon.core.errors import NotFound


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ([], "an API key is needed"),
        (["Basic YTpi"], "not of the form Bearer"),
        (["Bearer"], "not of the form Bearer"),
        ([f"Bearer {LIVE_KEY}"] * 2, ""),
        (["Bearer abc"], "mistyped"),
        (["Bearer " + LIVE_KEY[:-1] + ("a" if LIVE_KEY[-1] != "a" else "b")], "mistyped"),
        (["Bearer " + LIVE_KEY + " x"], "mistyped"),
        (["Bearer ak_live_\xe9"], "mistyped"),
        (["Bearer " + keys.generate("live")], "unknown or was revoked"),
    ],
)
async def test_without_a_key_of_ours_nobody_comes_in(
    served: Served, usecases: UseCases, sent: list[str], expected: str
) -> None:
    """401 with a challenge (RFC 6750, 3.1) that tells mistyped from unknown; two headers are none; no machine is asked."""
    headers = [(b"authorization", value.encode("latin-1")) for value in sent]
    answer = await served.client.post(f"/v1/mcf/{NIM}/certify", json=INVOICE, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")
    assert expected in answer.json()["detail"]
    assert answer.headers["www-authenticate"] == 'Bearer realm="mcfd"' + (', error="invalid_token"' if sent else "")
    assert usecases.calls == []


@pytest.mark.parametrize(
    ("scheme", "nim", "is_let_in"),
    [
        *(("Bearer", nim, True) for nim in (NIM, "EL02000015", "EL02000015-27", "%45L02000015%2D1")),
        *(("bearer", NIM, True), ("BEARER", NIM, True)),
        *(("Bearer", nim, False) for nim in ("EL02000016-1", "EL02000015-", "el02000015-1", "EL02000015-1%20", "x")),
        ("Bearer", "EL09999999-1", False),
    ],
)
async def test_a_key_is_for_its_nim(served: Served, scheme: str, nim: str, is_let_in: bool) -> None:
    """Compared up to the dash, percent-encoded too (12, 26); 403 whether another NIM exists or not. The scheme has no case."""
    answer = await served.client.get(f"/v1/mcf/{nim}/info", headers={"authorization": f"{scheme} {LIVE_KEY}"})
    assert answer.status_code == (200 if is_let_in else 403)
    if not is_let_in:
        assert answer.json()["code"] == "NIM_NOT_IN_SCOPE"
        assert answer.json()["detail"] == "this key is not for the NIM in the path"


async def test_a_key_for_a_machine_that_was_taken_away(served: Served) -> None:
    """The key stays valid; there is nothing behind it."""
    answer = await served.client.post(
        "/v1/mcf/EL09999999-1/certify", json=INVOICE, headers={"authorization": f"Bearer {LOST_KEY}"}
    )
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert (await served.get("/v1/me", key=LOST_KEY)).json()["connected"] is False


async def test_a_key_says_what_it_is_for(served: Served) -> None:
    """GET /v1/me: machine, mode and role."""
    expected = {"id": "1", "label": "Caisse 1", "mode": "live", "nim": NIM, "connected": False, "role": "manager"}
    assert (await served.get("/v1/me")).json() == {**expected, "expiresAt": None}
    test, reader = [(await served.get("/v1/me", key=key)).json() for key in (TEST_KEY, ROLE_KEYS["reader"])]
    assert (test["mode"], test["nim"], reader["role"]) == ("test", NIM, "reader")


async def test_the_eleventh_wrong_key_of_a_minute_waits(served: Served) -> None:
    """429 with Retry-After, while a till with its key, behind the same address, goes on. A request without a key is no guess."""
    missing = [await served.client.get("/v1/me") for _ in range(15)]
    wrong = [await served.get("/v1/me", key=keys.generate("live")) for _ in range(11)]
    assert [answer.status_code for answer in [*missing, *wrong]] == [401] * 25 + [429]
    assert wrong[-1].json()["code"] == "TOO_MANY_REQUESTS"
    assert 0 < int(wrong[-1].headers["retry-after"]) <= 60
    assert (await served.client.get("/v1/me")).status_code == 429
    assert (await served.get("/v1/me")).status_code == 200


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


def test_the_memory_of_wrong_keys_is_bounded() -> None:
    """A million addresses do not fill the box; the ones heard last are kept."""
    wrong = WrongKeys(limit=1, capacity=100)
    for number in range(1000):
        wrong.note(f"10.0.{number // 256}.{number % 256}")
    assert wrong.wait("10.0.3.231") > 0
    assert wrong.wait("10.0.0.1") == 0


async def test_the_proxy_is_told_of_live_keys(serve: Serve) -> None:
    """HAProxy gives a till with a live key larger limits; a sandbox key, a wrong one and a request without it do not show."""
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
    key = api_key(7, NIM, label="till")
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


@pytest.mark.parametrize(
    ("path", "field", "near"),
    [
        ("reports/a?From=2020-11-01", "From", "from"),
        ("reports/x?from=2020-11-01&untill=2020-11-02", "untill", ""),
        ("reports?limits=5", "limits", "limit"),
        ("reports/articles?start_date=2020-11-01", "start_date", "from"),
        ("certifications?until=2020-11-01", "until", "to"),
        ("certifications?after=3", "after", "cursor"),
        ("certifications?number=F-1", "number", "invoiceNumber"),
        ("reports?page=2", "page", "after"),
        ("reports?count=5", "count", "limit"),
        ("reports/a/ticket?from=2020-11-01&format=text&width=48&lang=fr&kopie=1", "kopie", ""),
        ("info?x=%ff", "x", ""),
        ("certifications?from=2020-11-01&limit=1&format=json", "", ""),
        ("reports/x/ticket?from=2020-11-01&to=2020-11-02&format=text&width=48&lang=fr&copy=duplicate", "", ""),
    ],
)
async def test_a_misspelt_parameter_is_refused_and_any_unknown_one_of_a_strict_request(
    served: Served, path: str, field: str, near: str
) -> None:
    """Decision 27, of what stands behind the question mark: a report of another range than was meant looks like any other."""
    headers = {"authorization": f"Bearer {LIVE_KEY}"}
    url = f"/v1/mcf/{NIM}/{path}"
    lax = await served.client.get(url, headers=headers)
    strict = await served.client.get(url, headers=headers | {"mcfd-strict": "true"})
    if near:
        assert lax.json()["errors"] == strict.json()["errors"]
    else:
        assert lax.status_code != 422  # the use cases are not at work here
    if not field:
        assert strict.status_code == lax.status_code
        return
    assert strict.status_code == 422
    message = f"is not a known field{f'; did you mean {near}?' if near else ''}"
    assert strict.json()["errors"] == [{"field": field, "message": message}]
