"""`POST /join` as anybody may send it."""

import json
import re
import socket

import httpx
import pytest
from support.hq.in_process import BASE, log_in, pages
from support.hq.paper_box import PaperBox

from common.language import translate
from common.login_guard import LoginLimits
from common.wire.joining import JoinLink, new_code, read_code, read_link
from common.wire.signing import sign
from daemon.core.errors import JoinFailed
from daemon.upstream.joining import ask_to_join
from headquarters.intake import joining

NIM = "EL02000015-1"
SOON = 4_102_444_800_000
OWN = {"origin": BASE, "sec-fetch-site": "same-origin"}
LINK = "https://hq.example/join/K7QF-92XM-4HTR"


@pytest.fixture
async def client(store, monkeypatch):
    """Budgets of guesses stand still."""
    monkeypatch.setattr(joining, "LoginLimits", lambda rules, _: LoginLimits(rules, lambda: 0.0))
    async with pages(store) as client:
        yield client


def code_for(store, *nims):
    return store.joining.make_code(nims, now=1, ends_at=SOON, by="awa")


async def post_join(client, value, nims=(NIM,), **changes) -> httpx.Response:
    """By default at the beginning of 1970: a new box does not know the date."""
    key = PaperBox().key
    body = json.dumps({"type": "bf.mcfd.join.v1", "code": value, "key": key.public, "nims": nims} | changes).encode()
    return await client.post("/join", content=body, headers=sign([key], "x", 0, body))


async def test_joined(client, store):
    """The answer says where closures go, and the same again is answered the same."""
    store.joining.make_code([NIM], now=1, ends_at=SOON, by="awa", label="Ouaga Centre")
    code = store.joining.make_code([NIM], now=2, ends_at=SOON, by="awa", label="Ouaga Centre")
    answer = await post_join(client, code)
    assert answer.status_code == 200
    assert answer.json() == {"kind": "https", "url": "closures", "jwt": "", "ca": "", "label": "Ouaga Centre"}
    assert (await post_join(client, code)).json() == answer.json()


async def test_as_people_type(client, store):
    """Small letters, no dashes, O for 0 and I for 1."""
    code = code_for(store, NIM).replace("0", "o").replace("1", "i").lower()
    assert (await post_join(client, f" {code[:5]} {code[5:]}")).status_code == 200


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"nims": ["EL02000017-1"]}, 422, "OTHER_MACHINES"),
        ({"nims": []}, 400, "BAD_REQUEST"),
        ({"nims": [NIM] * 65}, 400, "BAD_REQUEST"),
        ({"key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, 400, "BAD_REQUEST"),
        ({"key": PaperBox(seed="another").key.public}, 401, "UNAUTHENTICATED"),
        ({"code": "?"}, 400, "BAD_REQUEST"),
        ({"type": "bf.mcfd.presence.v1"}, 400, "BAD_REQUEST"),
    ],
)
async def test_refused(client, store, changes, status, code):
    """Each with a code of its own, also where the key's private half did not sign; no box has joined, and the code is as good as before."""
    right = code_for(store, NIM)
    answer = await post_join(client, right, **changes)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert store.register.boxes() == []
    assert (await post_join(client, right)).status_code == 200


async def test_guesses(client, store):
    """Ten from one address, then none for a while; a right code that comes from another address is taken, and costs no budget."""
    revision = store.register.revision()
    client.headers["x-forwarded-for"] = "192.0.2.66"
    for _ in range(10):
        assert (await post_join(client, new_code())).json()["code"] == "CODE_UNKNOWN"
    assert store.register.revision() == revision
    answer = await post_join(client, code_for(store, NIM))
    assert (answer.status_code, answer.json()["code"]) == (429, "TOO_MANY_REQUESTS")
    assert 0 < int(answer.headers["retry-after"]) <= 30
    client.headers["x-forwarded-for"] = "192.0.2.7"
    code = code_for(store, NIM)
    assert {(await post_join(client, code)).status_code for _ in range(30)} == {200}


@pytest.mark.long
async def test_guesses_from_everywhere(client):
    """However many addresses guess: together they have six hundred tries, then ten a second."""
    for tries in range(601):
        client.headers["x-forwarded-for"] = f"2001:db8:{tries:x}::1"
        answer = await post_join(client, new_code())
        if answer.status_code == 429:
            break
        assert answer.json()["code"] == "CODE_UNKNOWN"
    assert (answer.status_code, tries) == (429, 600)


async def test_too_large(client):
    assert (await client.post("/join", content=b"x" * 5000)).status_code == 413


async def test_on_the_page(client, store):
    """An admin makes a code, which is shown once and lets the box in; what is no NIM is said. Then the box is revoked with one button."""
    log_in(client, store, "admin")
    wrong = await client.post("/ui/join", data={"nims": "EL02 x"}, headers=OWN)
    assert (wrong.status_code, store.joining.waiting(1)) == (422, [])
    answer = await client.post(
        "/ui/join", data={"nims": f" {NIM.lower()}, EL02000016-1", "label": "<b>Ouaga"}, headers=OWN
    )
    (code,) = set(re.findall(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}", answer.text))
    assert "<b>" not in answer.text
    again = await client.get("/ui/join")
    assert code not in again.text
    assert "&lt;b&gt;Ouaga" in again.text
    assert (await post_join(client, code)).status_code == 200
    assert (await client.get("/ui/join")).text.count("<code") == 0
    assert 'data-testid="revoke"' in (await client.get(f"/ui/shops/{NIM}")).text
    assert (await client.post(f"/ui/shops/{NIM}/revoke", headers=OWN)).status_code == 303
    assert 'data-testid="revoke"' not in (await client.get(f"/ui/shops/{NIM}")).text
    assert (await post_join(client, code)).json()["code"] == "KEY_REVOKED"


@pytest.mark.parametrize("path", ["/ui/join", f"/ui/shops/{NIM}/revoke"])
async def test_who_may(client, store, path):
    """An admin alone, and from headquarters' own page."""
    store.joining.join(code_for(store, NIM), PaperBox().key.public, [NIM], 2)
    log_in(client, store, "accountant")
    assert (await client.post(path, data={"nims": NIM}, headers=OWN)).status_code == 403
    log_in(client, store, "admin")
    assert (await client.post(path, data={"nims": NIM}, headers={"sec-fetch-site": "cross-site"})).status_code == 403
    assert [key.revoked_at for key in store.register.keys(NIM.partition("-")[0])] == [None]
    assert store.joining.waiting(3) == []


def test_links():
    """What is shown can be read again, whatever of it somebody has copied."""
    pin = "0a" * 32
    for link in (JoinLink("K7QF92XM4HTR"), read_link(LINK), read_link(f"{LINK}#{pin}")):
        assert read_link(str(link)) == link
    assert read_link("http://127.0.0.1:8490/chain/join/k7qf 92xm 4htr").url == "http://127.0.0.1:8490/chain"
    assert read_link(f"{LINK}#{pin}").pin == pin


@pytest.mark.parametrize(
    "text", ["", "K7QF", "K7QF-92XM-4HTU", f"{LINK}?x=1", f"{LINK}#x", "https://hq.example/", "ftp://hq.example/join/K7QF92XM4HTR", "https://a@hq.example/join/K7QF92XM4HTR"]
)  # fmt: skip
def test_no_link(text):
    with pytest.raises(ValueError, match=r"."):
        read_link(text)


def test_codes_differ():
    """60 bits each, in letters that are not mistaken for others."""
    codes = {new_code() for _ in range(1000)}
    assert len(codes) == 1000
    assert not set("".join(codes)) & set("ILOU")
    assert all(read_code(code) == code for code in codes)


@pytest.mark.parametrize("host", ["h:99999", "h:x", "a\x7fb", "é..é", "...:1", "127.0.0.1:1/" + "p" * 70_000])
@pytest.mark.parametrize("pin", ["", "#" + "a" * 64])
async def test_an_address_that_nobody_has(host, pin, monkeypatch):
    """Typed at a box, in the page or on the command line: the error says so."""
    monkeypatch.setattr("daemon.upstream.joining.TRIES", 1)
    link = read_link(f"https://{host}/join/K7QF-92XM-4HTR{pin}")
    with pytest.raises(JoinFailed):
        await ask_to_join(link, b"x" * 32, (NIM,), "1", None)


@pytest.mark.parametrize("pin", ["", "ab" * 32])
async def test_an_address_that_does_not_answer(pin, monkeypatch):
    """A firewall that drops what is sent: it is said in French too, in no word of a library."""
    monkeypatch.setattr("daemon.upstream.joining.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("daemon.upstream.joining.TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        link = JoinLink(code="K7QF92XM4HTR", url=f"https://127.0.0.1:{silent.getsockname()[1]}", pin=pin)
        with pytest.raises(JoinFailed) as failed:
            await ask_to_join(link, bytes(32), (NIM,), "1", None)
    assert "(cette adresse ne répond pas)" in str(translate(failed.value, "fr"))


async def test_a_shop_with_another_name(client, store):
    """An admin gives it, and its region, on the shop's page; empty takes them away. Neither keys nor codes change; what cannot be seen is no name."""
    await post_join(
        client, store.joining.make_code([NIM], now=1, ends_at=SOON, by="awa", label="Ouaga", region="Centre")
    )
    (key,) = store.register.keys(NIM[:10])
    log_in(client, store, "admin")
    page = f"/ui/shops/{NIM}"
    assert 'value="Ouaga"' in (await client.get(page)).text
    wrong = await client.post(page, data={"label": "Bobo\u200b", "region": "Hauts"}, headers=OWN)
    assert (wrong.status_code, 'value="Hauts"' in wrong.text) == (422, True)
    assert (await client.post(page, data={"label": " Bobo ", "region": ""}, headers=OWN)).status_code == 303
    box = store.register.box(NIM[:10])
    assert (box.label, box.region, store.register.keys(NIM[:10])) == ("Bobo", "", [key])
    unknown = await client.post("/ui/shops/EL99999999-1", data={"label": "Bobo"}, headers=OWN)
    assert unknown.status_code == 404
