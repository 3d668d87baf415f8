"""SIGHUP to a running daemon: what changes at once, what is said to need a restart, and what a bad file does: nothing."""

import json
import os
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.receivers.authority import Authority
from support.receivers.headquarters import HttpHeadquarters, started, upstream_section, z_numbers
from support.shop import NIM, Shop, invoice, running_shop, wait_for

OK = httpx.codes.OK
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105  anybody's


class Reloaded:
    """A shop whose configuration is edited as an operator would, and reloaded."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def edit(self, old: str, new: str) -> None:
        text = self.shop.config_file.read_text()
        assert old in text
        self.shop.config_file.write_text(text.replace(old, new))

    def append(self, text: str) -> None:
        self.shop.config_file.write_text(self.shop.config_file.read_text() + "\n" + text + "\n")

    def hup(self, event: str) -> dict[str, Any]:
        """What the daemon says of it."""
        before = len(self.shop.events(event))
        os.kill(self.shop.pid, signal.SIGHUP)
        return wait_for(lambda: self.shop.events(event)[before:], event)[0]


@pytest.fixture
def reloaded(shop: Shop) -> Iterator[Reloaded]:
    """The shop of the module; what the test made of its configuration is taken back."""
    text = shop.config_file.read_text()
    reloaded = Reloaded(shop)
    yield reloaded
    shop.config_file.write_text(text)
    reloaded.hup("reload.done")


async def test_closures_find_a_headquarters_that_was_not_there(reloaded: Reloaded, tmp_path: Path) -> None:
    """`[upstream]` added: the closure from before is delivered. Another secret in the same file counts too. Taken out
    again: the next closure stays in the outbox."""
    shop, file = reloaded.shop, reloaded.shop.config_file.read_text()
    async with started(HttpHeadquarters(tmp_path)) as headquarters:
        first = close(shop)
        reloaded.append(upstream_section(headquarters, retry_max=1))
        assert reloaded.hup("reload.done")["changed"] == ["upstream"]
        wait_for(lambda: z_numbers(arrived(headquarters), NIM)[-1:] == [first], "the closure upstream")
        wait_for(lambda: '"waiting": 0' in shop.mcfd("upstream", "status", "--json").stdout, "that the box knows it")
        assert reloaded.hup("reload.done")["taken_up"] == []  # all as it was: what is on its way is left alone
        headquarters.keys.file.write_text(SECRET)
        assert "upstream" in reloaded.hup("reload.done")["taken_up"]
        shop.config_file.write_text(file)
        assert reloaded.hup("reload.done")["changed"] == ["upstream"]
        assert shop.close_period().status_code == httpx.codes.CREATED
        assert '"waiting": 1' in shop.mcfd("upstream", "status", "--json").stdout
        assert z_numbers(arrived(headquarters), NIM)[-1:] == [first]


async def test_what_headquarters_and_a_webhook_refused_is_offered_again_by_a_reload_without_a_change(
    reloaded: Reloaded, tmp_path: Path
) -> None:
    """A closure that both refused (422) is parked; it was put right over there, and `systemctl reload mcfd` is enough. What runs goes on."""
    for name in ("headquarters", "till"):
        (tmp_path / name).mkdir()
    shop = reloaded.shop
    async with (
        started(HttpHeadquarters(tmp_path / "headquarters")) as headquarters,
        started(HttpHeadquarters(tmp_path / "till")) as till,
    ):
        webhook = f'[[webhook]]\nurl = "{till.url}"\nsecret_file = "{till.keys.file}"\nevents = ["closure.created"]\nretry_max = 1'
        reloaded.append(upstream_section(headquarters, retry_max=1) + "\n" + webhook)
        reloaded.hup("reload.done")
        close(shop)
        for receiver in (headquarters, till):
            wait_for(lambda receiver=receiver: arrived(receiver), "a first closure")
            await receiver.script({"status": 422, "body": "unknown shop"})
        close(shop)
        for subject in ("closure", "event"):
            wait_for(lambda subject=subject: shop.events(f"{subject}.parked"), f"a parked {subject}")
        assert reloaded.hup("reload.done")["taken_up"] == []
        for receiver in (headquarters, till):
            (refused,) = [attempt["id"] for attempt in receiver.attempts() if attempt["status"] == 422]
            wait_for(lambda it=receiver, event=refused: event in stored_ids(it), "what was refused")
        assert '"parked": 0' in shop.mcfd("upstream", "status", "--json").stdout


def close(shop: Shop) -> int:
    """The number of the Z."""
    answer = shop.close_period()
    assert answer.status_code == httpx.codes.CREATED, answer.text
    return answer.json()["z_number"]


def stored_ids(receiver: HttpHeadquarters) -> set[str]:
    return {attempt["id"] for attempt in receiver.attempts() if attempt["kept"]}


def arrived(headquarters: HttpHeadquarters) -> list[dict[str, Any]]:
    """What it has kept; a try that it refused is another matter."""
    return [json.loads(attempt["body"]) for attempt in headquarters.attempts() if attempt["kept"]]


def test_the_log_speaks_as_loud_as_asked(reloaded: Reloaded) -> None:
    """`logs.level` counts at once."""
    reloaded.append('[logs]\nlevel = "warning"')
    os.kill(reloaded.shop.pid, signal.SIGHUP)

    def is_quiet() -> bool:
        before = len(reloaded.shop.events("request.answered"))
        for _ in range(2):  # a line is written just after its answer: at the second, the first one's is there
            reloaded.shop.http.get("/health/live")
        return len(reloaded.shop.events("request.answered")) == before

    wait_for(is_quiet, "a quiet log")
    reloaded.edit('level = "warning"', 'level = "info"')
    assert reloaded.hup("reload.done")["changed"] == ["logs.level"]


def test_what_needs_a_restart_is_named_each_time(reloaded: Reloaded) -> None:
    """A new port and a new till of the machine do not count yet; what counts is served as before."""
    shop = reloaded.shop
    reloaded.edit(f"port = {shop.port}", "port = 1")
    reloaded.append('operator_name = "Caisse 9"')
    for _ in range(2):
        event = reloaded.hup("reload.needs_restart")
        assert event["keys"] == ["server.port", "machine[0].operator_name"]
    assert shop.http.get("/health/ready").status_code == OK


def test_a_bad_file_is_one_line_and_changes_nothing(reloaded: Reloaded, tmp_path: Path) -> None:
    """A misspelt key, a section that cannot be, a secret that is none: refused with the reason; selling goes on."""
    shop, good = reloaded.shop, reloaded.shop.config_file.read_text()
    taken_before = len(shop.events("reload.done"))
    bad_secret = tmp_path / "secret"
    bad_secret.write_text("whsec_%%%\n")
    upstream = f'[upstream]\nkind = "https"\nurl = "https://hq.example"\nsecret_file = "{bad_secret}"\n'
    for text, reason in (
        ("[logs]\nlevle = 1\n", "logs.levle: "),
        (f'[logs]\nlevel = "error"\n{upstream}', str(bad_secret)),
        ("[[machine]\n", "TOML"),
    ):
        shop.config_file.write_text(good + text)
        event = reloaded.hup("reload.refused")
        assert reason in event["reason"]
        assert "%%%" not in event["reason"]
    shop.config_file.unlink()
    assert str(shop.config_file) in reloaded.hup("reload.refused")["reason"]
    assert len(shop.events("reload.done")) == taken_before
    assert shop.certify(invoice("R-1")).status_code == OK


def test_a_certificate_is_read_again(tmp_path: Path) -> None:
    """A renewed pair of files is shown from the next connection on; one that does not fit is refused, and the old goes on."""
    authority = Authority(tmp_path)
    cert, key = tmp_path / "box.pem", tmp_path / "box.key"
    config = {"server": {"tls_cert": str(cert), "tls_key": str(key)}}
    first = authority.issue()
    shutil.copy(first, cert)
    shutil.copy(first, key)
    with Shop(tmp_path, config=config) as shop:
        shop.http.close()
        context = ssl.create_default_context(cafile=authority.path)
        shop.http = httpx.Client(base_url=f"https://127.0.0.1:{shop.port}", verify=context, timeout=60)
        reloaded = Reloaded(shop.start())
        before = screen_text(shop)
        shutil.copy(authority.issue(), cert)
        assert "KEY_VALUES_MISMATCH" in reloaded.hup("reload.refused")["reason"]
        assert screen_text(shop) == before
        shutil.copy(cert, key)
        reloaded.hup("reload.done")
        assert screen_text(shop) != before
        assert shop.http.get("/health/ready").status_code == OK


def screen_text(shop: Shop) -> str:
    """The certificate that a new connection gets."""
    return ssl.get_server_certificate(("127.0.0.1", shop.port))


def test_systemd_is_told(tmp_path: Path) -> None:
    """READY once it serves, a status with address and machine, RELOADING until it is done, STOPPING at the end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "LC_ALL": "en_GB.UTF-8"}
        messages: list[str] = []

        def hear(wanted: str) -> str:
            while not messages or wanted not in messages[-1]:
                messages.append(manager.recv(4096).decode())
            return messages[-1]

        with running_shop(tmp_path, environ=environ) as shop:
            hear("READY=1")
            assert hear(f"{NIM}: certifies").startswith(f"STATUS=http://127.0.0.1:{shop.port}; ")
            os.kill(shop.pid, signal.SIGHUP)
            assert hear("RELOADING=1").startswith("RELOADING=1\nMONOTONIC_USEC=")
            hear("READY=1")
            shop.machines[0].order("unplug")
            assert "offline" in hear(f"{NIM}: offline")
            assert shop.stop_daemon() == 0
            hear("STOPPING=1")
