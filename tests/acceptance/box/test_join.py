"""A box joins a headquarters by a code: `mcfd upstream join` and the box's page, beside a running daemon and without one, over a line that loses
answers, and after what may happen to a box: a power cut, a restore, a revocation."""

import asyncio
import hashlib
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.browser import create_users, session_of
from support.hq.running import RunningHq
from support.http_answers import Answer, Request, answering, passed_on
from support.receivers.authority import Authority
from support.shop import NIM, Shop, wait_for

from common.wire.joining import new_code
from common.wire.keys import signing_key
from daemon.app.outward import joining
from daemon.core.errors import JoinFailed
from daemon.settings import load
from daemon.whole_box.sealed import new_identity

FILES = ("joined.json", "box.key")


@pytest.fixture
def hq(tmp_path: Path) -> Iterator[RunningHq]:
    hq = RunningHq(tmp_path / "hq", f"sqlite:///{tmp_path}/hq.sqlite3")
    hq.start()
    yield hq
    hq.kill()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Its machine is there, its daemon is not."""
    (tmp_path / "shop").mkdir()
    with Shop(tmp_path / "shop") as shop:
        shop._write_config()
        yield shop


def home(shop: Shop) -> Path:
    return shop.folder / "headquarters"


def public_key(shop: Shop) -> str:
    return signing_key((home(shop) / "box.key").read_text().strip()).public


def code_of(hq: RunningHq, *options: str) -> str:
    return hq.cli("boxes", "code", NIM, *options)


def join(shop: Shop, hq: RunningHq, code: str = "", base: str = ""):
    return shop.mcfd("upstream", "join", code or code_of(hq), "--url", base or hq.base)


def output_of(done) -> str:
    assert (done.returncode, done.stdout) == (1, ""), done.stdout + done.stderr
    return done.stderr


def closures(hq: RunningHq) -> list[int]:
    return [row["z_number"] for row in hq.get("/v1/closures", hq.key()).json()["closures"]]


def test_the_day_of_a_new_shop(hq, shop):
    """Beside a running daemon: the closure that waits is delivered, and those after it; who did it is in the audit log. Headquarters knows the box by
    the label of the code. What is secret is its owner's alone. Left again, the next closure waits."""
    shop.start()
    assert shop.closed()["z_number"] == 1
    done = join(shop, hq, code_of(hq, "--label", "Ouaga Centre"))
    assert done.stdout == f"joined {hq.base}; closures go to it from now on (https)\n", done.stderr
    wait_for(lambda: closures(hq) == [1], "the closure")
    assert "Ouaga Centre" in hq.cli("boxes", "list")
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in home(shop).iterdir()} == dict.fromkeys(
        FILES, "0o600"
    )
    assert shop.mcfd("upstream", "test").returncode == 0
    assert shop.mcfd("config", "check").returncode == 0
    assert shop.mcfd("upstream", "leave").returncode == 0
    wait_for(lambda: shop.events("reload.done")[1:], "the reload")
    assert shop.closed()["z_number"] == 2
    actions = [entry["action"] for entry in json.loads(shop.mcfd("audit", "--json").stdout)["entries"]]
    assert {"upstream.joined", "upstream.left"} <= set(actions)
    assert closures(hq) == [1]
    assert "joined no headquarters" in output_of(shop.mcfd("upstream", "leave"))


@pytest.mark.long
def test_on_the_page(hq, shop):
    """A technician types the code; a wrong one is explained, and changes nothing. No other role may."""
    shop.start()
    create_users(shop, ("technician", "manager"))
    cookies = {name: session_of(shop, name) for name in ("technician", "manager")}

    def post(name: str, path: str = "join", **form: str) -> httpx.Response:
        own = {"origin": str(shop.http.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
        shop.http.cookies.update(cookies[name])
        return shop.http.post(f"/ui/box/{path}", data=form, headers=own)

    code = code_of(hq)
    assert post("manager", code=code, url=hq.base).status_code == 403
    wrong = post("technician", code=new_code(), url=hq.base)
    assert (wrong.status_code, "aucun code" in wrong.text or "no such code" in wrong.text) == (409, True)
    assert not (home(shop) / "joined.json").exists()
    assert post("technician", code=code, url=hq.base).status_code == 303
    assert hq.base in shop.http.get("/ui/box").text
    shop.closed()
    wait_for(lambda: closures(hq) == [1], "the closure")
    assert post("technician", "leave").status_code == 303
    assert hq.base not in shop.http.get("/ui/box").text


def test_what_is_refused(hq, shop, tmp_path):
    """A code of another box, one for other machines, an invented one, no code at all, no address: each in words of its own, and nothing is
    joined. A code that was refused for its machines lets in the box that it is for."""
    (tmp_path / "other").mkdir()
    with Shop(tmp_path / "other") as other:
        other._write_config()
        code = code_of(hq)
        assert join(other, hq, code).returncode == 0
        assert "another box has joined with this code" in output_of(join(shop, hq, code))
    theirs = hq.cli("boxes", "code", "EL02000017-1")
    assert f"the code is for EL02000017-1; the machines of this box are {NIM}" in output_of(join(shop, hq, theirs))
    assert "has given no such code" in output_of(join(shop, hq, new_code()))
    assert "neither a code" in output_of(join(shop, hq, "K7QF"))
    assert "its address is needed" in output_of(shop.mcfd("upstream", "join", new_code()))
    assert "over https:// alone" in output_of(shop.mcfd("upstream", "join", new_code(), "--url", "http://192.0.2.1"))
    assert "does not answer" in output_of(join(shop, hq, base="http://127.0.0.1:9"))
    assert not (home(shop) / "joined.json").exists()


@pytest.mark.long
def test_a_configured_headquarters_goes_first(hq, shop):
    """A box with a section [upstream] does not join beside it: somebody takes that out first."""
    text = shop.config_file.read_text()
    section = '[upstream]\nkind = "https"\nurl = "https://hq.example/closures"\nsecret_file = "s"\n'
    shop.config_file.write_text(section + text)
    assert "[upstream]" in output_of(join(shop, hq))
    shop.config_file.write_text(text)
    assert join(shop, hq).returncode == 0


class LossyLine:
    """In front of headquarters: it hands on each request, and loses so many of the answers, or says that it is not there."""

    def __init__(self, hq: RunningHq, lost: int = 0, away: int = 0) -> None:
        self._base, self._lost, self._away = hq.base, lost, away
        self.seen: list[dict[str, object]] = []

    def __call__(self, request: Request) -> Answer | None:
        self.seen.append(json.loads(request.body))
        if len(self.seen) <= self._away:
            return Answer(502, b"")
        found = passed_on(request, self._base)
        return None if len(self.seen) <= self._lost else found


@pytest.fixture
def pauses(monkeypatch):
    """Between two tries, none."""
    monkeypatch.setattr("daemon.upstream.joining.PAUSE_SECONDS", 0)


@pytest.mark.long
@pytest.mark.parametrize("trouble", [{"lost": 1}, {"lost": 2}, {"away": 2}])
async def test_a_lost_answer(hq, shop, trouble, pauses):
    """It asks again with the same code and the same key, and is in."""
    line = LossyLine(hq, **trouble)
    settings = await asyncio.to_thread(load, shop.config_file)
    with answering(line) as base:
        await joining.join(settings, await asyncio.to_thread(code_of, hq), base)
    assert len({(request["code"], request["key"]) for request in line.seen}) == 1
    assert len(line.seen) > 1
    assert public_key(shop) == line.seen[0]["key"]


@pytest.mark.long
async def test_no_answer_for_long(hq, shop, pauses):
    """It gives up, and the same code typed again hours later is answered: the key was kept."""
    settings, code = await asyncio.to_thread(load, shop.config_file), await asyncio.to_thread(code_of, hq)
    line = LossyLine(hq, lost=3)
    with answering(line) as base, pytest.raises(JoinFailed):
        await joining.join(settings, code, base)
    assert not (home(shop) / "joined.json").exists()
    await joining.join(settings, code, hq.base)
    assert public_key(shop) == line.seen[0]["key"]
    assert not (home(shop) / "next.key").exists()


@pytest.mark.parametrize("name", ["box.key", "joined.json"])
async def test_a_power_cut_at_each_file(hq, shop, name, monkeypatch):
    """Before it was written: the same code again finishes it. Nothing half joined is ever read."""
    settings, code = await asyncio.to_thread(load, shop.config_file), await asyncio.to_thread(code_of, hq)
    write = joining.write_whole

    def dying(path: Path, *rest: object) -> None:
        if path.name == name:
            raise OSError(5, "power cut")
        write(path, *rest)

    monkeypatch.setattr(joining, "write_whole", dying)
    with pytest.raises(OSError, match="power cut"):
        await joining.join(settings, code, hq.base)
    assert load(shop.config_file).upstream is None
    monkeypatch.undo()
    await joining.join(settings, code, hq.base)
    assert load(shop.config_file).upstream is not None
    listed = await asyncio.to_thread(hq.cli, "boxes", "list")
    assert len(listed.split("\t")[3].split()) == 1


@pytest.mark.long
def test_a_whole_box_put_back(hq, shop, tmp_path):
    """From its backup, on a new disk: it is the same box to headquarters. Where its key was revoked after the backup, it joins by a new code."""
    assert join(shop, hq).returncode == 0
    identity, copy = tmp_path / "identity", tmp_path / "box.age"
    secret, recipient = new_identity()
    identity.write_text(secret)
    shop.config_file.write_text(f'[backup]\nrecipients = ["{recipient}"]\n' + shop.config_file.read_text())
    done = shop.mcfd("backup", "--all", str(copy))
    assert done.returncode == 0, done.stderr
    for name in FILES:
        (home(shop) / name).unlink()
    assert shop.mcfd("upstream", "test").returncode == 1
    done = shop.mcfd("restore", "--all", str(copy), "--identity", str(identity), "--yes")
    assert done.returncode == 0, done.stderr
    assert shop.mcfd("upstream", "test").returncode == 0
    hq.cli("boxes", "revoke", NIM)
    assert shop.mcfd("upstream", "test").returncode == 1
    assert join(shop, hq).returncode == 0
    assert shop.mcfd("upstream", "test").returncode == 0


@pytest.mark.long
def test_by_an_address_with_a_private_certificate(tmp_path, shop):
    """The code names the certificate that headquarters shows, and the box learns the authority of its own from the answer. A server that shows another one
    gets no data."""
    authority = Authority(tmp_path)
    pem = authority.issue()
    server = f"tls_cert = {json.dumps(str(pem))}\ntls_key = {json.dumps(str(pem))}\n"
    hq = RunningHq(tmp_path / "hq", f"sqlite:///{tmp_path}/hq.sqlite3", server=server)
    try:
        hq.start()
        text = f"[boxes]\nurl = {json.dumps(hq.base)}\ntls_ca = {json.dumps(str(authority.path))}\n"
        hq.config.write_text(hq.config.read_text() + text)
        hq.stop()
        port = hq.base.rpartition(":")[2]
        hq.config.write_text(hq.config.read_text().replace("port = 0", f"port = {port}"))
        hq.start()
        link = code_of(hq)
        pin = hashlib.sha256(
            ssl.PEM_cert_to_DER_cert(
                pem.read_text().partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----"
            )
        )
        assert link.endswith(pin.hexdigest())
        assert "another certificate" in output_of(shop.mcfd("upstream", "join", link[:-64] + "0" * 64))
        assert shop.mcfd("upstream", "join", link).returncode == 0
        assert (home(shop) / "ca.pem").read_text() == authority.path.read_text()
        assert shop.mcfd("upstream", "test").returncode == 0
    finally:
        hq.kill()
