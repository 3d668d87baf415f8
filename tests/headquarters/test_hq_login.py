"""Logging in at headquarters: who guesses, who is let in, and what browsers and older versions bring along."""

import base64
import hashlib
import time

import pytest
from support.hq.in_process import BASE, pages

from common.passwords import hash_password, is_of_today

PASSWORD = "un mot de passe"  # noqa: S105  # of a test


@pytest.fixture
def store_with_people(store, monkeypatch):
    """What a hash costs is a fact of its own."""
    monkeypatch.setattr("common.passwords._N", 2)
    monkeypatch.setattr("common.passwords._P", 1)
    monkeypatch.setattr("common.login_guard.DUMMY_HASH", hash_password("nobody has it"))
    for name in ("Awa", "Issa"):
        store.people.create(name, hash_password(PASSWORD), "admin", 1)
    return store


async def tried(client, name, password, address, **headers):
    """The status of a login through the web server in front, which says that it comes from that address."""
    sent = {"x-forwarded-for": f"6.6.6.6, {address}", **headers}
    return (await client.post("/ui/login", data={"name": name, "password": password}, headers=sent)).status_code


async def test_guessing_keeps_nobody_out(store_with_people):
    """Five tries at an account from anywhere; its person comes in from a known place or browser, others from those addresses."""
    async with pages(store_with_people) as client:
        assert await tried(client, "Awa", PASSWORD, "41.0.0.1") == 303
        device = client.cookies["hq_device"]
        client.cookies.clear()
        statuses = [await tried(client, "Awa", "wrong password", f"10.0.0.{number}") for number in range(40)]
        assert (statuses[:5], set(statuses[5:])) == ([401] * 5, {429})
        assert await tried(client, "Awa", PASSWORD, "10.0.0.99") == 429
        assert await tried(client, "Awa", PASSWORD, "41.0.0.1") == 303
        assert await tried(client, "Issa", PASSWORD, "10.0.0.1") == 303
        client.cookies.clear()
        client.cookies.set("hq_device", device)
        assert await tried(client, "Awa", PASSWORD, "10.0.0.98") == 303


async def test_a_name_as_a_phone_writes_it_logs_in(store_with_people):
    """With another first letter, and a blank behind it; where two names differ by that alone, each as it is. A refused one stays as typed."""
    store_with_people.people.create("awa", hash_password("un autre mot"), "reader", 1)
    async with pages(store_with_people) as client:
        for typed in ("Issa", "issa", "ISSA ", "Awa ", "Awa"):
            assert await tried(client, typed, PASSWORD, "41.0.0.1") == 303
        assert await tried(client, "awa", PASSWORD, "41.0.0.1") == 401
        assert await tried(client, "AWA", PASSWORD, "41.0.0.1") == 401
        refused = await client.post("/ui/login", data={"name": "issa", "password": "x"})
        assert 'value="issa"' in refused.text


@pytest.mark.parametrize("real", ["10.0.0.1:{port}", "[2001:db8::1]:{port}", "2001:db8::{port}"])
async def test_the_word_of_the_web_server_counts(store_with_people, real):
    """Also in a line of its own, or with a port: who guesses is one address, and no known place of somebody."""
    async with pages(store_with_people) as client:
        assert await tried(client, "Awa", PASSWORD, "41.0.0.1") == 303
        client.cookies.clear()
        statuses = []
        for number in range(25):
            lines = [
                ("x-forwarded-for", f"41.0.0.{1 + number % 2}"),
                ("x-forwarded-for", real.format(port=4000 + number)),
            ]
            form = {"name": f"name {number}", "password": "wrong password"}
            statuses.append((await client.post("/ui/login", data=form, headers=lines)).status_code)
        assert statuses == [401] * 20 + [429] * 5


async def test_an_address_that_guesses_waits_alone(store_with_people):
    """It tries at many names; the answer says when it may go on, and the others are not concerned."""
    async with pages(store_with_people) as client:
        statuses = [await tried(client, f"name {number}", "wrong password", "10.0.0.1") for number in range(22)]
        assert statuses == [401] * 20 + [429] * 2
        answer = await client.post(
            "/ui/login", data={"name": "Awa", "password": "x"}, headers={"x-forwarded-for": "10.0.0.1"}
        )
        assert 0 < int(answer.headers["retry-after"]) <= 12
        assert await tried(client, "Awa", PASSWORD, "10.0.0.2") == 303


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"sec-fetch-site": "same-origin"}, 303),
        ({"origin": "https://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": BASE}, 403),
    ],
)
async def test_a_form_of_another_site(store_with_people, headers, status):
    """A browser that does not say where a form stands says of which site it is: that one is looked at."""
    async with pages(store_with_people) as client:
        assert await tried(client, "Awa", PASSWORD, "10.0.0.1", **headers) == status


async def test_a_hash_of_an_older_version(store):
    """It is taken, and the password is hashed at today's cost from then on; the session and what else there is of the person stay."""
    salt = bytes(range(16))
    derived = hashlib.scrypt(b"8 letters", salt=salt, n=2**14, r=8, p=1, maxmem=2**26, dklen=32)
    old = "$".join(("scrypt", "16384", "8", "1", *(base64.b64encode(part).decode() for part in (salt, derived))))
    store.people.create("Awa", old, "admin", 1)
    token = store.people.begin("Awa", time.time_ns() // 1_000_000)
    async with pages(store) as client:
        assert await tried(client, "Awa", "9 letters", "10.0.0.1") == 401
        assert store.people.password("Awa") == old
        assert await tried(client, "Awa", "8 letters", "10.0.0.1") == 303
        hashed = store.people.password("Awa")
        assert hashed != old
        assert is_of_today(hashed)
        assert await tried(client, "Awa", "8 letters", "10.0.0.1") == 303
    assert store.people.of_session(token, time.time_ns() // 1_000_000) is not None


async def test_where_headquarters_speaks_tls(store_with_people):
    """Its cookies have the prefix with which a browser takes them from this host alone; the same session without it does not count."""
    async with pages(store_with_people, is_secure=True) as client:
        data = {"name": "Awa", "password": PASSWORD}
        answer = await client.post("/ui/login", data=data)
        set_ = [text for name, text in answer.headers.multi_items() if name == "set-cookie" and "Max-Age=0" not in text]
        assert {text.partition("=")[0] for text in set_} == {"__Host-hq_session", "__Host-hq_device"}
        assert all({"Secure", "Path=/", "HttpOnly"} <= set(text.split("; ")) for text in set_)
        token = client.cookies["__Host-hq_session"]
        client.cookies.clear()
        for name, status in (("hq_session", 303), ("__Host-hq_session", 200)):
            view = await client.get("/ui/people", headers={"cookie": f"{name}={token}"})
            assert view.status_code == status


async def test_passwords_that_are_none(store_with_people):
    """The admin reads why, and no person is added."""
    async with pages(store_with_people) as client:
        await tried(client, "Awa", PASSWORD, "10.0.0.1")
        for password, text in (("short", "10 à 200"), ("aaaaaaaaaaaa", "trop facile"), ("Fatou-2026!", "trop facile")):
            data = {"name": "Fatou", "password": password, "role": "reader"}
            answer = await client.post("/ui/people", data=data, headers={"sec-fetch-site": "same-origin"})
            assert (answer.status_code, text in answer.text) == (422, True)
        assert [person.name for person in store_with_people.people.listed()] == ["Awa", "Issa"]


async def test_a_nul_is_the_askers_fault(store_with_people):
    """Not one of the database, which would be tried again: in a name, an address and a note."""
    key = {"authorization": f"Bearer {store_with_people.people.create_key('admin', '', 1)}"}
    async with pages(store_with_people) as client:
        for name in ("A\0b", "Awa\0"):
            assert await tried(client, name, "wrong password", "10.0.0.1") in (400, 401)
        assert await tried(client, "Awa", PASSWORD, "10.0.0.2") == 303
        assert (await client.get("/ui/shops/%00")).status_code in (400, 404)
        answer = await client.post("/v1/findings/1/solve", json={"note": "\0"}, headers=key)
        assert answer.status_code in (400, 404)


def test_a_session_of_a_clock_that_was_ahead(store):
    """By a year, for a moment: the session ends with the wrong time, and does not begin again a year later."""
    day = 86_400_000
    store.people.create("Awa", "no password", "admin", 1)
    token = store.people.begin("Awa", 400 * day)
    assert store.people.of_session(token, 400 * day) is not None
    assert store.people.of_session(token, 30 * day) is None
    store.people.begin("Awa", 30 * day)
    assert store.people.of_session(token, 400 * day) is None


def test_a_session_has_a_longest_age(store):
    """However often it is used, it ends after thirty days."""
    hour, now = 3_600_000, 1_800_000_000_000
    store.people.create("Awa", "no password", "admin", 1)
    token = store.people.begin("Awa", now)
    used = [store.people.of_session(token, now + hours * hour) is not None for hours in range(0, 31 * 24, 8)]
    assert used == [True] * 90 + [False] * 3


def test_a_disabled_person_comes_back_by_being_made_again(store):
    """With the new password and role, as at the box; one who may log in stays as they are, and no session from before goes on."""
    store.people.create("Awa", "first", "admin", 1)
    token = store.people.begin("Awa", 2)
    assert not store.people.create("Awa", "second", "reader", 3)
    assert store.people.change("Awa", 4, disabled=True)
    assert store.people.create("Awa", "second", "reader", 5)
    assert store.people.password("Awa") == "second"
    assert store.people.listed() == [("Awa", "reader", False)]
    assert store.people.of_session(token, 6) is None


async def test_a_form_whose_session_had_ended_is_not_carried_out(store_with_people):
    """It leads to the login, which says so, and from there back to its screen."""
    form = {"name": "Fatou & fils", "password": "another secret", "role": "accountant"}
    own = {"sec-fetch-site": "same-origin", "referer": f"{BASE}/ui/people"}
    async with pages(store_with_people) as client:
        answer = await client.post("/ui/people", data=form, headers=own)
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui/login?ended=1")
        assert "Votre session avait pris fin" in (await client.get("/ui/login?ended=1")).text
        login = await client.post("/ui/login", data={"name": "Awa", "password": PASSWORD})
        assert login.headers["location"] == "/ui/people"
    assert [person.name for person in store_with_people.people.listed()] == ["Awa", "Issa"]
