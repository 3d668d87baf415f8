"""What anybody may send over HTTP that is no text, no number of 64 bits, no form and no address: refused, and no fault of headquarters."""

import errno
from zoneinfo import ZoneInfo

import pytest
from support.hq.in_process import log_in, pages
from support.hq.store import take

TOWER = b'{"note":' + b"[" * 7000
BAD_TEXT = b'{"note":"\xff"}'
PART = b'--x\r\nContent-Disposition: form-data; name="name"\r\n%s\r\n%s\r\n--x--\r\n'
FORMS = (PART % (b"", b"\xff\xfe"), PART % (b"Content-Type: text/plain; charset=nope\r\n", b"a"))
SCREENS = ("/ui/login", "/ui/findings/1/solve", "/ui/join", "/ui/people", "/ui/shops/EL02000015/ledger")
OWN = {"sec-fetch-site": "same-origin"}


@pytest.mark.parametrize("body", [TOWER, BAD_TEXT, b"", b"[]", b'{"note":1}'])
async def test_a_body_that_is_none(store, box, body):
    """Of a note by a program with a key, and by a stranger as a closure."""
    async with pages(store, role="accountant") as client:
        solved = await client.post("/v1/findings/1/solve", content=body)
        stranger = await client.post("/v1/findings/1/solve", content=body, headers={"authorization": ""})
        assert (solved.status_code, solved.json()["code"]) == (400, "BAD_REQUEST")
        assert (stranger.status_code, stranger.json()["code"]) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("number", [-(2**63) - 1, -1, 0, 2**31, 2**63, 10**40])
async def test_a_number_that_no_finding_has(store, number):
    async with pages(store, role="accountant") as client:
        for path in (f"/v1/findings/{number}/seen", f"/v1/findings/{number}/solve"):
            answer = await client.post(path, json={"note": ""})
            assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("form", FORMS, ids=("bytes", "encoding"))
@pytest.mark.parametrize("path", SCREENS)
async def test_a_form_that_is_none(store, box, path, form):
    async with pages(store, role="admin") as client:
        headers = OWN | {"content-type": "multipart/form-data; boundary=x"}
        assert (await client.post(path, content=form, headers=headers)).status_code == 400


async def test_an_address_that_is_none(store):
    """Of another site that a browser names; of the screen that is to be shown after the login."""
    async with pages(store) as client:
        for path in ("/ui/login", "/ui/logout"):
            assert (await client.post(path, headers={"origin": "http://[::1"})).status_code == 403
        answer = await client.get("/ui/", headers={"hx-request": "true", "hx-current-url": "http://[::1"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui/login")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/closures", 401),
        ("GET", "/v1/nothing", 404),
        ("DELETE", "/v1/closures", 405),
        ("POST", "/join", 400),
    ],
)
async def test_a_problem_is_as_decision_11_has_it(store, method, path, status):
    """The request's own id, or one that is made up, stands in the problem and on every answer."""
    async with pages(store) as client:
        answer = await client.request(method, path, headers={"x-request-id": "till-7"})
        problem, detail = answer.json(), answer.json()["detail"]
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
        assert problem["type"] == "urn:mcfd:problem:" + problem["code"].lower().replace("_", "-")
        assert (problem["status"], problem["error"], problem["request_id"]) == (status, detail, "till-7")
        assert answer.headers["x-request-id"] == "till-7"
        other = await client.request(method, path, headers={"x-request-id": "\x01"})
        assert other.json()["request_id"] == other.headers["x-request-id"] != "\x01"
        assert "x-request-id" in (await client.get("/ui/login")).headers


@pytest.mark.parametrize(
    ("zone", "at"),
    [
        ("Africa/Ouagadougou", "0001-01-01T00:00:00.000Z"),
        ("Asia/Tokyo", "9999-12-31T23:59:59.999Z"),
    ],
)
async def test_a_period_at_the_end_of_time(store, box, zone, at):
    """Of one shop: its screens are shown, and the month's file of all shops."""
    closure = box.close(period_start=at, period_end=at)
    take(store, box, closure)
    async with pages(store, ZoneInfo(zone)) as client:
        log_in(client, store)
        for screen in (f"shops/{box.nim}?month=2025-12", f"closures/EL02000015/{closure.report_id}"):
            assert (await client.get(f"/ui/{screen}")).status_code == 200
        file = (await client.get("/ui/exports/closures.csv?month=2025-12")).text
        assert closure.report_id in file


@pytest.mark.parametrize("name", ["a/b", "..", "a?b#c", "a%2fb", "é ü"])
async def test_whoever_has_such_a_name_is_disabled(store, name):
    """By the button beside the name."""
    store.people.create(name, "no password", "reader", 1)
    async with pages(store, role="admin") as client:
        assert f'value="{name}"' in (await client.get("/ui/people")).text
        assert (await client.post("/ui/people/disable", data={"name": name}, headers=OWN)).status_code == 303
    assert [person.disabled for person in store.people.listed() if person.name == name] == [True]


async def test_a_file_for_which_there_is_no_room(store, monkeypatch):
    """A program gets the code of decision 11, a person a page; neither is a fault of headquarters."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("headquarters.page.totals.write_month", full)
    async with pages(store, role="accountant") as client:
        assert (await client.get("/ui/exports/closures.csv")).status_code == 507
