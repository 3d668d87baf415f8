"""`mcfd setup` as a technician and a script run it, against machines in every state and lines with everything else on them."""

import io
import json
import os
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import segno
from support.box.mounts import read_only, small_disk
from support.cli.command import Command, terminal_output
from support.line.states import chatty_line, locked_line, silent_line
from support.shop import BIN, IFU, NIM, Machine, Shop, invoice
from support.tools import folder_for_all

from common.passwords import fault_of_password
from daemon.core.keys import inspect

pytestmark = pytest.mark.long

OTHER = "EL02000016-1"
UNPRIVILEGED_UID = 65534


class Box(Command):
    """A box without a configuration; setup gets its ports, so that it leaves those of the real box alone."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.config.unlink()

    def arguments(self, *ports: Path) -> list[str]:
        return ["setup", "--ledger", str(self.ledger), *(word for port in ports for word in ("--port", str(port)))]

    def setup(self, *ports: Path, more: tuple[str, ...] = (), person: bool = False) -> subprocess.CompletedProcess[str]:
        """Without a `person` no one is made who may log in: the hash of a password takes longer than all the rest."""
        return self.run(*self.arguments(*ports), "--yes", *more, *(() if person else ("--person", "")))

    def setup_json(
        self, *ports: Path, more: tuple[str, ...] = (), code: int = 0, person: bool = False
    ) -> dict[str, Any]:
        done = self.setup(*ports, more=("--json", *more), person=person)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)


class AsItWasSetUp(Shop):
    def _write_config(self) -> None:
        """The one that setup wrote."""


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path, OTHER).start()
    yield machine
    machine.kill()


def test_one_machine_unattended(box: Box, machine: Machine) -> None:
    """From nothing to a certified invoice: the configuration that was written, the key that was shown."""
    shop = AsItWasSetUp(box.folder, machines=(machine,))
    result = box.setup_json(machine.link, more=("--operator-name", 'Caisse "1"', "--http-port", str(shop.port)))
    (found,) = result["machines"]
    assert (found["nim"], found["ifu"], found["trade_name"]) == (NIM, IFU, "MAISON FASO")
    assert (result["config"], result["kept"], found["address"]) == (
        str(box.config),
        None,
        f"http://127.0.0.1:{shop.port}",
    )
    assert stat.S_IMODE(box.config.stat().st_mode) == 0o640
    assert box.json("config", "check") == {"ok": True, "file": str(box.config), "machines": [NIM]}
    with shop:
        shop.start_daemon()
        headers = {"Authorization": f"Bearer {found['key']}"}
        answer = shop.http.post(f"/v1/mcf/{NIM}/certify", json=invoice("S-1"), headers=headers)
        assert answer.status_code == httpx.codes.OK, answer.text
        shop.verify()


def test_the_first_person(box: Box, machine: Machine) -> None:
    """One technician with a password that was made, shown once, which opens the page; a second setup makes none; an empty name is none."""
    assert box.setup_json(machine.link)["person"] is None
    shop = AsItWasSetUp(box.folder, machines=(machine,))
    login = box.setup_json(machine.link, more=("--force", "--http-port", str(shop.port)), person=True)["person"]
    assert (login["name"], fault_of_password(login["password"], login["name"])) == ("admin", None)
    (person,) = box.json("users", "list")
    assert (person["name"], person["role"]) == ("admin", "technician")
    assert login["password"] not in box.ledger.read_bytes().decode("latin-1")
    assert box.setup_json(machine.link, more=("--force", "--http-port", str(shop.port)), person=True)["person"] is None
    with shop:
        shop.start_daemon()
        for password, lets_in in (("not this one", False), (login["password"], True)):
            entered = shop.http.post(
                "/ui/login",
                data={"name": "admin", "password": password},
                headers={"Origin": f"http://127.0.0.1:{shop.port}"},
            )
            assert ("set-cookie" in entered.headers) is lets_in, entered.text


def test_two_machines(box: Box, machine: Machine, other: Machine) -> None:
    """Both are set up, each with a key of its own; `--nim` picks one; one that has not answered is no reason to write."""
    result = box.setup_json(machine.link, other.link)
    assert [found["nim"] for found in result["machines"]] == [NIM, OTHER]
    assert len({found["key"] for found in result["machines"]}) == 2
    assert box.json("config", "check")["machines"] == [NIM, OTHER]
    result = box.setup_json(machine.link, other.link, more=("--force", "--nim", OTHER, "--no-key"))
    assert [(found["nim"], found["key"]) for found in result["machines"]] == [(OTHER, None)]
    before = box.config.read_text()
    done = box.setup(machine.link, more=("--force", "--nim", OTHER))
    assert (done.returncode, f"{OTHER} has answered on no port" in done.stderr) == (1, True)
    assert box.config.read_text() == before


def test_what_is_on_a_line_without_a_machine(box: Box, machine: Machine, tmp_path: Path) -> None:
    """No answer, another device, a program that has it open, no port at all: each has its own words, in bounded time; the
    machine among them is found."""
    locked, paths = tmp_path / "held", (tmp_path / "silent", tmp_path / "chatty")
    with silent_line(paths[0]), chatty_line(paths[1]), silent_line(locked), locked_line(locked) as pid:
        result = box.setup_json(*paths, locked, tmp_path / "missing", machine.link)
    assert [port["why"] for port in result["ports"]] == ["silent", "stranger", "busy", "missing", None]
    assert f"sleep ({pid})" in result["ports"][2]["reason"]
    assert [found["nim"] for found in result["machines"]] == [NIM]


def test_no_machine_at_all(box: Box, tmp_path: Path) -> None:
    """Exit 1, what is on each port and what to do; nothing is written, neither configuration nor ledger."""
    with silent_line(tmp_path / "silent") as line:
        done = box.setup(line, tmp_path / "missing")
    assert done.returncode == 1
    assert "no answer" in done.stdout
    assert done.stdout.count(str(tmp_path / "missing")) == 1
    assert "  there is no such device" in done.stdout
    assert "no machine has answered. Is it switched on" in done.stderr
    assert not box.config.exists()
    assert not box.ledger.exists()


def test_a_clock_that_is_off_is_told(box: Box, machine: Machine) -> None:
    """More than two minutes between box and machine."""
    machine.order("clock", offset=7200)
    assert " h off the machine's: set it" in box.setup(machine.link).stderr


def test_a_folder_that_is_read_only(box: Box, machine: Machine, tmp_path: Path) -> None:
    """Root is not sent to `sudo`: what is wrong is the disk."""
    with small_disk(tmp_path / "etc", 1) as disk, read_only(disk):
        done = box.setup(machine.link, more=("--config", str(disk / "mcfd.toml")))
    assert (done.returncode, "can only be read" in done.stderr, "sudo" in done.stderr) == (1, True, False)


def test_a_configuration_is_not_lost(box: Box, machine: Machine) -> None:
    """Without `--force` the one that exists stays, and no port is asked; with it, it is kept beside the new one."""
    box.config.write_text("[server]\n# by hand\n")
    done = box.setup(machine.link)
    assert (done.returncode, "--force replaces it" in done.stderr, done.stdout) == (1, True, "")
    result = box.setup_json(machine.link, more=("--force",))
    assert Path(result["kept"]).read_text() == "[server]\n# by hand\n"
    assert Path(result["kept"]).parent == box.config.parent
    assert f'nim = "{NIM}"' in box.config.read_text()


def test_who_may_reach_it_stays(box: Box, machine: Machine) -> None:
    """`--force` alone leaves tills on the network, encrypted, at the address that was configured; what takes them off says so in words."""
    box.setup(machine.link, more=("--network", "https", "--host", "127.0.0.7"))
    for more in (("--force",), ("--force", "--isf", "ISF-2")):
        done = box.setup(machine.link, more=more)
        assert (done.returncode, "every till" in done.stderr) == (0, False), done.stderr
        text = box.config.read_text()
        assert ('tls = "internal"' in text, 'host = "127.0.0.7"' in text) == (True, True), text
    done = box.setup(machine.link, more=("--force", "--network", "local"))
    assert "this takes every till off the network" in done.stderr
    assert "tls" not in box.config.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_nobody_was_asked_about_stays(box: Box, machine: Machine) -> None:
    """`--force` keeps upstream, company, printer, the machine's habits and its ISF, says what changes, and names the keys of before."""
    box.setup(machine.link)
    text = box.config.read_text().replace('isf = "1"', 'isf = "ISF-77"\nrecording_mb = 4')
    text += """
[reports]
aggregation_delay = 1.5
payment_labels = { C = "Carte", B = "Chèque" }

[company]
regime = "RNI"
accounts = ["BF074 01001", "BF074 01002"]

[[webhook]]
url = "https://caisse.example/events"
secret_file = "caisse.secret"
events = ["cert.issued"]
"""
    box.config.write_text(text)
    before = tomllib.loads(text)
    done = box.setup(machine.link, more=("--force", "--network", "plain", "--no-key"))
    assert done.returncode == 0, done.stdout + done.stderr
    after = tomllib.loads(box.config.read_text())
    assert after.pop("server") == {"host": "0.0.0.0", "port": 8480, "allow_plain_lan": True}  # noqa: S104  asked for
    assert before.pop("server")
    assert after == before
    assert "server.host: 127.0.0.1 → 0.0.0.0" in done.stdout
    assert "company" not in done.stdout
    assert "1 (setup)" in done.stdout


def test_the_spare_of_a_machine_that_does_not_answer_has_a_way_out(box: Box, machine: Machine) -> None:
    """`--force` with a dead machine and its spare: exit 2, the configuration stays, and what a person can do is said; after either of both it is written."""
    assert box.setup(machine.link).returncode == 0
    dead = f'\n[[machine]]\nnim = "{OTHER}"\nport = "/dev/mcf-dead"\n'
    text = box.config.read_text().replace(f'nim = "{NIM}"', f'nim = "{NIM}"\nspare_for = "{OTHER}"') + dead
    box.config.write_text(text)
    done = box.setup(machine.link, more=("--force", "--no-key"))
    assert done.returncode == 2, done.stdout + done.stderr
    for words in (f"mcfd machine take-over {OTHER}", "spare_for", str(NIM)):
        assert words in done.stderr
    assert box.config.read_text() == text
    box.config.write_text(text.replace(f'spare_for = "{OTHER}"\n', ""))
    done = box.setup(machine.link, more=("--force", "--no-key"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each["nim"] for each in tomllib.loads(box.config.read_text())["machine"]] == [NIM]


def test_what_root_writes_the_daemon_can_use(box: Box, machine: Machine) -> None:
    """`sudo mcfd setup`: the configuration is root's and the group's of its folder, ledger and authority the folder's owner's."""
    with folder_for_all() as folder:
        etc, state = folder / "etc", folder / "state"
        for each, owner in ((etc, 0), (state, UNPRIVILEGED_UID)):
            each.mkdir()
            os.chown(each, owner, UNPRIVILEGED_UID)
        box.config, box.ledger = etc / "mcfd.toml", state / "mcfd.sqlite3"
        assert box.setup(machine.link, more=("--network", "https")).returncode == 0
        status = box.config.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (0, UNPRIVILEGED_UID, 0o640)
        paths = [box.ledger, *(state / "tls").iterdir(), state / "tls"]
        assert len(paths) == 5
        assert {path.stat().st_uid for path in paths} == {UNPRIVILEGED_UID}


def test_what_a_start_would_refuse_is_not_written(box: Box, machine: Machine) -> None:
    """Reachable from the network without encryption, without a word that this is meant: exit 2, nothing written."""
    done = box.setup(machine.link, more=("--host", "0.0.0.0"))  # noqa: S104  to be refused
    assert (done.returncode, "server.host" in done.stderr) == (2, True)
    assert not box.config.exists()
    assert not box.ledger.exists()
    assert box.setup(machine.link, more=("--network", "plain")).returncode == 0
    assert "allow_plain_lan = true" in box.config.read_text()


def test_a_technician_at_a_terminal(box: Box, machine: Machine) -> None:
    """Asked in French what only a person knows, then the key, once, and the QR code that carries address, NIM and key."""
    environ = box.environ(LC_ALL="fr_FR.UTF-8", PYTHONIOENCODING="utf-8")
    code, words = terminal_output(
        [BIN / "mcfd", *box.arguments(machine.link)], environ, ["", "", "Caisse 7", "awa", ""]
    )
    assert code == 0, words
    for question in ("Qui s'en sert", "ISF", "Nom de la caisse", f"Écrire {box.config}"):
        assert question in words
    (key,) = [word for word in words.split() if word.startswith("ak_live_")]
    assert inspect(key) == "live"
    text = json.dumps({"url": "http://127.0.0.1:8480", "nim": NIM, "key": key}, separators=(",", ":"))
    expected = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(expected, compact=True)
    assert expected.getvalue().strip() in words
    assert 'operator_name = "Caisse 7"' in box.config.read_text()
    assert [(person["name"], person["role"]) for person in box.json("users", "list")] == [("awa", "technician")]
