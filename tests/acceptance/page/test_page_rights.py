"""Who may see and do what, also by requests made by hand, and what another site can make a browser do."""

import hashlib
import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import httpx
import pytest
from support.browser import PASSWORD, Visitor, create_in_passing, session_of
from support.shop import NIM, Shop, invoice

from daemon.api.service import PAGE_ROUTES
from daemon.core.people import ROLES, may
from daemon.operations import CreateKey
from daemon.store.tables.keys import list_keys

BecomeRole = Callable[[str], None]


@pytest.fixture
def client(shop: Shop):
    with Visitor(shop, language="en") as client:
        yield client


@pytest.fixture
def as_role(client: httpx.Client, shop: Shop, sessions: dict[str, dict[str, str]]) -> BecomeRole:
    """Makes the client somebody who logged in, once for all of these tests: it is the hash of a password that takes long."""

    def become(role: str) -> None:
        if role not in sessions:
            sessions[role] = session_of(shop, role)
        client.cookies.clear()
        client.cookies.update(sessions[role])

    return become


def log_in(client: httpx.Client, name: str) -> httpx.Response:
    return client.post("/ui/login", data={"name": name, "password": PASSWORD})


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
NEEDED = {
    "/ui/account": "look",
    ("POST", "/ui/account/password"): "look",
    **dict.fromkeys(
        [
            "/ui",
            "/ui/today",
            "/ui/state",
            "/ui/journal",
            "/ui/journal/{seq:int}",
            "/ui/cash",
            "/ui/live",
            "/ui/waiting",
        ],
        "look",
    ),
    "/ui/paper/{what:str}/{name:str}": "look",
    "/ui/poster/{size:str}": "look",
    **dict.fromkeys(
        ["/ui/x", "/ui/a", "/ui/closures", "/ui/closures/{z:int}", "/ui/files", "/ui/files/jobs", "/ui/outages"],
        "report",
    ),
    **dict.fromkeys(["/ui/files/a/{form:str}", "/ui/files/closures/{form:str}"], "report"),
    "/ui/files/made/{name:str}": "report",
    **dict.fromkeys(["/ui/vat", "/ui/vat/{form:str}"], "report"),
    **dict.fromkeys(
        ["/ui/sale", "/ui/journal/{seq:int}/credit", ("POST", "/ui/sale"), ("POST", "/ui/journal/{seq:int}/credit")],
        "certify",
    ),
    ("POST", "/ui/journal/{seq:int}/share"): "look",
    "/ui/z": "close",
    **dict.fromkeys(["/ui/attention", "/ui/box", "/ui/box/findings", "/ui/box/jobs", "/ui/box/probe"], "administer"),
    **dict.fromkeys([f"/ui/box/{each}" for each in ("keys", "people", "backups", "history", "update")], "administer"),
    **dict.fromkeys(["/ui/log", "/ui/welcome", "/ui/box/backup/{name:str}"], "administer"),
    "/ui/box/backup/{name:str}/restore": "administer",
    ("POST", "/ui/box/backup/{name:str}/restore"): "administer",
    ("POST", "/ui/cash"): "certify",
    ("POST", "/ui/files"): "report",
    ("POST", "/ui/z"): "close",
    ("POST", "/ui/waiting/{sale:int}"): "close",
    ("POST", "/ui/outages/{outage:int}"): "close",
    **dict.fromkeys(
        ["/ui/spare", ("POST", "/ui/spare"), ("POST", "/ui/box/join"), ("POST", "/ui/box/leave")], "administer"
    ),
    **dict.fromkeys([("POST", "/ui/attention"), ("POST", "/ui/box/backup"), ("POST", "/ui/box/key")], "administer"),
    **dict.fromkeys([("POST", "/ui/box/key/card"), ("POST", "/ui/box/join"), ("POST", "/ui/box/leave")], "administer"),
    ("POST", "/ui/box/key/{key:int}/revoke"): "administer",
    ("POST", "/ui/paper/{what:str}/{name:str}"): "look",
    ("POST", "/ui/box/person"): "administer",
    ("POST", "/ui/box/person/{name:str}/disable"): "administer",
    ("POST", "/ui/box/person/{name:str}/password"): "administer",
    **dict.fromkeys([("POST", f"/ui/box/{deed}") for deed in ("send-again", "test-invoice", "verify")], "administer"),
}
"""What each screen and each change needs; a path alone is a GET."""
PUBLIC_ROUTES = {
    *("/", "/ui/login", "/ui/language/{code:str}", "/ui/static/{name:str}", "/ui/authority.pem"),
    "/ui/shared/{token:str}",
    *(("POST", "/ui/login"), ("POST", "/ui/logout")),
}


def test_the_table_names_every_path_of_the_page() -> None:
    """A new screen gets its line, and is tried with every role below."""
    found = {
        path if method == "GET" else (method, path)
        for handler in PAGE_ROUTES
        for method in handler.http_methods - {"HEAD", "OPTIONS"}
        for path in handler.paths
    }
    assert found == set(NEEDED) | PUBLIC_ROUTES


def filled(path: str) -> str:
    # Of papers, an invoice that was closed is for who may see reports, one that is not there for who looks.
    path = path.replace("{what:str}", "invoice").replace("{seq:int}", "999999")
    return re.sub(r"\{\w+:(\w+)\}", lambda found: {"int": "1", "str": "x"}[found[1]], path)


@pytest.mark.parametrize("role", [*ROLES, "", "another site"])
def test_every_path_with_every_role(client: httpx.Client, as_role: BecomeRole, role: str) -> None:
    """403 for who may not, the login without a session; a change that another site asks for with a technician's cookie is refused too.
    What somebody may is not refused."""
    if role:
        as_role("technician" if role == "another site" else role)
    if role == "another site":
        client.headers["Origin"] = "http://evil.example"
    wrong = {}
    for way, right in NEEDED.items():
        method, path = ("GET", way) if isinstance(way, str) else way
        permitted = role in ROLES and may(role, right)
        if (method == "POST" and permitted) or (method == "GET" and role == "another site"):
            continue
        with client.stream(method, filled(path)) as answer:
            refused = answer.status_code == 403 or answer.headers.get("location", "").startswith("/ui/login")
            if refused is permitted or (answer.status_code == 303) > (not role):
                wrong[way] = answer.status_code
    assert wrong == {}
    if role == "seller":
        assert {client.get(f"/ui/paper/{each}").status_code for each in ("x/x", "z/1")} == {403}


def test_a_name_with_a_capital_letter_logs_in(client: httpx.Client) -> None:
    """As a phone's keyboard begins each word, and with the blank that it adds; no name has one, and the answer was that name or password is wrong."""
    assert log_in(client, "Reader ").status_code == 303


def test_a_form_whose_session_has_ended_says_that_nothing_was_done(client: httpx.Client, shop: Shop) -> None:
    """At the login to which it leads: else a person cannot know whether the money was noted."""
    headers = {"Accept-Language": "fr"}
    before = shop.get("cash").json()["count"]
    answer = client.post("/ui/cash", data={"kind": "deposit", "amount": "1000", "reason": "fond"}, headers=headers)
    screen = client.get(answer.headers["location"], headers=headers).text
    assert "Votre session avait pris fin" in screen
    assert "Votre session avait pris fin" not in client.get("/ui/login", headers=headers).text
    assert shop.get("cash").json()["count"] == before


@pytest.mark.parametrize("way", [way for way in NEEDED if ":int}" in (way if isinstance(way, str) else way[1])])
def test_a_number_in_a_path_that_no_row_has(
    client: httpx.Client, as_role: BecomeRole, way: str | tuple[str, str]
) -> None:
    """A page that says so, also beyond 64 bits."""
    as_role("technician")
    method, path = ("GET", way) if isinstance(way, str) else way
    path = re.sub(r"\{\w+:int\}", "9" * 30, path)
    assert client.request(method, path).status_code == 404, path


@pytest.mark.parametrize("chunked", [False, True])
def test_a_stranger_sends_a_name_and_a_password_and_no_more(client: httpx.Client, shop: Shop, chunked: bool) -> None:
    """Without a login it may have 8 KiB: 250 of them with a megabyte each had the daemon killed for its memory."""
    body = b"name=technician&password=" + b"x" * 9_000
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/ui/login", content=iter([body]) if chunked else body, headers=headers)
    assert answer.status_code == 413
    assert not shop.events("page.failed")


def test_a_seller_sees_the_cash_of_the_open_period_alone(client: httpx.Client, as_role: BecomeRole, shop: Shop) -> None:
    """What was moved before the last Z is for who may see reports; what is typed wrong is refused and not half understood. What was done
    stands at the box with all that is known of it."""
    as_role("seller")
    typed = {"kind": "withdrawal", "amount": "1 000", "reason": "before the Z"}
    assert client.post("/ui/cash", data=typed).status_code == 303
    assert "before the Z" in client.get("/ui/cash").text
    for amount in ("", "0", "-5", "1.00", "1.0000", "12,5", "1e3", "９"):
        assert client.post("/ui/cash", data={**typed, "amount": amount}).status_code == 422, amount
    assert shop.get("reports/x").json()["cash"]["withdrawals"] == 1000
    assert shop.close_period().status_code == 201
    assert "before the Z" not in client.get("/ui/cash").text
    as_role("reader")
    assert "before the Z" in client.get("/ui/cash").text
    as_role("technician")
    done = " ".join(client.get("/ui/box/history").text.split())
    assert "Amount: 1 000 F CFA · Movement: taken out · Reason: before the Z" in done


def test_a_seller_is_told_why_an_invoice_is_not_shown(client: httpx.Client, as_role: BecomeRole, shop: Shop) -> None:
    """One of the open period is; one that was closed since says so, with the menu of what a seller may see, as every refusal has it."""
    as_role("seller")
    assert shop.certify(invoice("FV-CLOSED")).status_code == 200
    newest = re.search(r"/ui/journal/(\d+)", client.get("/ui/journal").text)
    assert newest
    assert client.get(newest[0]).status_code == 200
    assert "FV-CLOSED" in client.get("/ui/").text
    assert shop.close_period().status_code == 201
    assert "FV-CLOSED" not in client.get("/ui/").text
    refused = client.get(newest[0])
    assert (refused.status_code, "of a period that is closed" in refused.text) == (403, True)
    for answer in (refused, client.get("/ui/closures")):
        assert 'aria-label="Menu"' in answer.text
        assert 'href="/ui/journal' in answer.text


def test_what_another_window_has_ended_is_ended(client: httpx.Client, as_role: BecomeRole, shop: Shop) -> None:
    """The same key revoked, the same person disabled in a second window that still shows them: as in the first, not an address
    at which nothing is. A new password for that person is refused with the reason."""
    as_role("technician")
    shop.change(CreateKey(NIM, "live", "second window"))
    keys = shop.with_store(lambda store: store.ledger.read(list_keys))
    (key,) = (each.id for each in keys if each.label == "second window")
    create_in_passing(shop, "fati", "seller")
    for path in (f"/ui/box/key/{key}/revoke", "/ui/box/person/fati/disable"):
        first, second = (client.post(path) for _ in range(2))
        assert (first.status_code, second.status_code) == (303, 303)
        assert first.headers["location"] == second.headers["location"]
    form = {"password": "jaune-vert-4242"}
    refused = client.post("/ui/box/person/fati/password", data=form)
    assert refused.status_code == 422
    assert "fati" in refused.text


def test_a_key_ends_when_it_was_said_or_is_not_made(client: httpx.Client, as_role: BecomeRole, shop: Shop) -> None:
    """A day that is over, and what is no day of this century, are refused by name and make no key; without a day it has no end."""
    as_role("technician")

    def ends() -> list[object]:
        return [key["expires_at"] for key in json.loads(shop.mcfd("keys", "list", "--json", check=True).stdout)]

    before = ends()
    for until, text in (
        ("2001-01-01", "is over already"),
        ("9999-12-31", "has to be a date"),
        ("soon", "has to be a date"),
    ):
        refused = client.post("/ui/box/key", data={"label": "till 9", "role": "seller", "until": until})
        assert (refused.status_code, f"Until: {text}" in refused.text) == (422, True), until
    for label in ("", "x" * 61, "till\n9"):
        refused = client.post("/ui/box/key", data={"label": label, "role": "seller"})
        assert (refused.status_code, "Till: must " in refused.text) == (422, True), label
    assert ends() == before
    for until in ("2099-12-31", ""):
        answer = client.post("/ui/box/key", data={"label": "till 9", "role": "seller", "until": until})
        assert answer.status_code == 200, answer.text
    found = ends()[len(before) :]
    assert [bool(end) for end in found] == [True, False]
    assert str(found[0]).startswith(("2099-12-31", "2100-01-01"))


def test_a_download_ends_with_its_session(client: httpx.Client, shop: Shop) -> None:
    """A copy of the ledger that is read slowly is broken off by the logout, and cannot pass for the whole."""
    copy = shop.folder / "backups" / "mcfd-20200101T000000Z.sqlite3"
    copy.parent.mkdir(exist_ok=True)
    with copy.open("wb") as file:
        file.truncate(100_000_000)
    log_in(client, "technician")
    try:
        with client.stream("GET", f"/ui/box/backup/{copy.name}") as answer:
            assert answer.status_code == 200
            assert client.post("/ui/logout").status_code == 303
            with pytest.raises(httpx.RemoteProtocolError):
                for _ in answer.iter_raw():
                    pass
    finally:
        copy.unlink()


def test_the_policy_allows_no_inline_script(client: httpx.Client, as_role: BecomeRole) -> None:
    """CSP of `'self'`, without `unsafe-*`, on every screen."""
    as_role("technician")
    screens = ("/ui/login", "/ui/", "/ui/journal", "/ui/cash", "/ui/box", "/ui/box/backup/x/restore")
    response = client.post("/ui/box/key", data={"label": "policy", "role": "reader"})
    assert "new-key" in response.text
    for answer in (*map(client.get, screens), response):
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy


def test_the_vendored_files_are_those_of_the_table() -> None:
    """What daemon/api/page/static/README.md names is what lies there, byte for byte."""
    folder = Path(str(files("daemon.api.page"))) / "static"
    named = re.findall(r"^\| (\S+\.js) \| ([0-9a-f]{64}) \|$", (folder / "README.md").read_text(), re.MULTILINE)
    assert {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name, _ in named} == dict(named)
    assert len(named) == 2


def test_what_a_browser_keeps_of_the_page_is_of_this_version(client: httpx.Client) -> None:
    """Styles and scripts have a hash of their content in their address, and are fetched once; at an address without it, or with another version's, and
    at those of the API's page, they are compared each time."""
    found = re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', client.get("/ui/login").text)
    assert len(found) == 6
    for address in found:
        plain, _, of_content = address.partition("?")
        stored = client.get(address, headers={"Accept-Encoding": "identity"})
        assert of_content == hashlib.sha256(stored.content).hexdigest()[:16]
        assert stored.headers["cache-control"] == "max-age=31536000, immutable"
        for other in (plain, f"{plain}?0123456789abcdef"):
            compared = client.get(other)
            assert compared.headers["cache-control"] == "no-cache"
            assert client.get(other, headers={"If-None-Match": compared.headers["etag"]}).status_code == 304
    assert client.get("/schema").headers["cache-control"] == "no-cache"


def test_what_is_not_there_is_told_on_a_page(client: httpx.Client) -> None:
    """An address that was mistyped, an invoice that there is none of: in the person's language, with the menu; without a session, the login. A
    program that asks for JSON gets it in JSON."""
    assert client.get("/ui/reports", headers=BROWSER).headers["location"] == "/ui/login"
    log_in(client, "reader")
    mistyped = (
        "/ui/closures/abc",
        "/ui/journal/1.5",
        "/ui/static/none.css",
        "/ui/language/de",
        "/ui/box/key",
        "/ui/a/b/c",
    )
    for path in ("/ui/reports", "/ui/journal/999999", "/ui/closures/999999", *mistyped):
        answer = client.get(path, headers={"Accept-Language": "fr", **BROWSER})
        assert answer.status_code == 404, path
        assert "Introuvable</h1>" in answer.text
        assert 'href="/ui/closures' in answer.text
    for path in mistyped:
        answer = client.get(path, headers={"Accept": "application/json"})
        assert answer.json()["code"] == ("METHOD_NOT_ALLOWED" if path == "/ui/box/key" else "NOT_FOUND"), path


def test_what_doctor_finds_reads_without_a_script(client: httpx.Client) -> None:
    """Followed as a link it is a screen of its own; the box's screen gets it as a part of itself."""
    log_in(client, "technician")
    alone, part = (client.get("/ui/box/findings", headers=entry).text for entry in ({}, {"HX-Request": "true"}))
    assert ("<html" in alone, "<html" in part) == (True, False)
    assert alone.count('class="finding ') == part.count('class="finding ') > 0
