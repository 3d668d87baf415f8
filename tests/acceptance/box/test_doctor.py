"""`mcfd doctor`: each thing that goes wrong in the field is found, named, and comes with what to do."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from support.cli.command import CONFIG, NIM, Command
from support.http_answers import Answer, answering
from support.ledgers.ledger import Till, opened
from support.line.states import chatty_line, locked_line, silent_line
from support.shop import Machine, Shop, invoice, wait_for

from daemon.cli.commands.doctor import examine
from daemon.doctor.wording import NAMES

pytestmark = pytest.mark.usefixtures("in_english")

OTHER = "EL02000016-1"
UNPRIVILEGED_UID = 65534


def by_name(checks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each check by name; every one that is not well says what to do."""
    assert {check["check"] for check in checks} <= NAMES.keys()
    assert all(check["todo"] for check in checks if check["state"] != "ok")
    return {check["check"]: check for check in checks}


async def doctor(box: Command | Shop) -> dict[str, dict[str, Any]]:
    """As the command has it, without the half second that a process takes to start."""
    file = box.config_file if isinstance(box, Shop) else box.config
    return by_name([msgspec.to_builtins(finding) async for finding in examine(file)])


def as_a_process(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    content = json.loads(done.stdout)
    assert content["ok"] == (done.returncode == 0) == all(check["state"] != "fail" for check in content["checks"])
    return by_name(content["checks"])


@pytest.fixture
def mcfd(tmp_path: Path) -> Command:
    """A configured box whose daemon does not run."""
    return Command(tmp_path, f"[server]\nport = 1\n{CONFIG}")


# -- beside a running daemon --------------------------------------------------------------------------------------------------


def test_all_is_well(shop: Shop) -> None:
    """Exit 0; the daemon has the line and is asked, and goes on certifying."""
    assert shop.certify(invoice("D-1")).status_code == httpx.codes.OK
    checks = as_a_process(shop.mcfd("doctor", "--json"))
    assert checks.pop("isf")["state"] == "warn"  # the example's, on a machine in use
    assert checks.pop("company")["state"] == "warn"  # regime, office and plot are not configured
    assert {check["state"] for check in checks.values()} == {"ok"}
    assert {"daemon", "machine", "clock", "tax_server", "ledger", "upstream", "certificate", "disk"} <= checks.keys()
    assert "line" not in checks  # it is the daemon's, and no other program looks
    assert shop.certify(invoice("D-2")).status_code == httpx.codes.OK


async def test_another_program_on_the_line_of_a_daemon_that_runs(tmp_path: Path) -> None:
    """The daemon cannot have the port: doctor names who has it, and does not send anybody to look after a cable."""
    machine = Machine(tmp_path)
    with (
        Shop(tmp_path, machines=(machine,)) as shop,
        silent_line(machine.link),
        locked_line(machine.link) as pid,
    ):
        shop.start_daemon(ready=False)
        checks = await doctor(shop)
    assert checks["line"]["found"] == f"held by sleep ({pid})"
    assert "machine" not in checks


@pytest.mark.parametrize("mode", ["not activated", "blocked", "deactivated"])
async def test_a_machine_that_certifies_no_more(shop: Shop, mode: str) -> None:
    """It answers every question in every state; its word at the last invoice gives it away."""
    machine = shop.machines[0]
    machine.order("mode", mode=mode)
    refused = shop.certify(invoice(f"D-{mode}"))
    machine.order("mode", mode="active")
    assert refused.json()["code"] == "MACHINE_REFUSED"
    found = (await doctor(shop))["last_invoice"]
    assert (found["state"], f"Machine {mode}" in found["found"]) == ("warn", True)
    assert shop.certify(invoice(f"D-{mode} again")).status_code == httpx.codes.OK
    assert (await doctor(shop))["last_invoice"]["state"] == "ok"


async def test_a_line_that_is_lost(shop: Shop) -> None:
    """Unplugged, and then another machine in its place: the daemon says so, and what to do about each."""
    machine = shop.machines[0]
    machine.order("unplug")
    wait_for(lambda: shop.http.get("/health/ready").status_code != httpx.codes.OK, "the loss")
    checks = await doctor(shop)
    assert (checks["port"]["state"], checks["machine"]["state"]) == ("fail", "fail")
    machine.order("plug")
    machine.order("reboot", nim=OTHER)
    wait_for(lambda: OTHER in shop.http.get("/health/ready").text, "the other machine")
    found = (await doctor(shop))["nim"]
    assert found["found"] == f"the machine on this line is {OTHER}, not {NIM}: check cable and configuration"
    machine.order("reboot", nim=NIM)
    wait_for(lambda: shop.http.get("/health/ready").status_code == httpx.codes.OK, "the machine again")


async def test_a_machine_the_daemon_does_not_know_yet(shop: Shop) -> None:
    """Written into the configuration after the start: a restart is what is missing."""
    config = shop.config_file.read_text()
    shop.config_file.write_text(f'{config}\n[[machine]]\nnim = "{OTHER}"\nport = "/dev/null"\n')
    found = await doctor(shop)
    shop.config_file.write_text(config)
    assert (found["machine"]["nim"], found["machine"]["todo"]) == (OTHER, "sudo systemctl restart mcfd")


# -- without a daemon ---------------------------------------------------------------------------------------------------------


async def test_a_box_before_its_first_start(mcfd: Command, machine: Machine) -> None:
    """The machine is asked by doctor itself; only the daemon is missing, and there is no ledger yet, nor is one made."""
    checks = as_a_process(mcfd.run("doctor", "--json"))
    assert {name for name, check in checks.items() if check["state"] == "fail"} == {"daemon"}
    assert checks["ledger"]["state"] == "warn"
    assert checks["machine"]["found"].startswith(f"{NIM} answers: TC 0")
    assert not mcfd.ledger.exists()
    text = mcfd.run("doctor", env={"LC_ALL": "C.UTF-8"}).stdout
    assert "ÉCHEC      service\N{NO-BREAK SPACE}: pas de réponse à http://127.0.0.1:1" in text
    assert "→ sudo systemctl restart mcfd" in text


async def test_no_configuration(mcfd: Command) -> None:
    """What is wrong with it is the finding; nothing else can be looked at."""
    mcfd.config.write_text("[server]\nprot = 1\n")
    found = (await doctor(mcfd))["configuration"]
    assert "server.prot: unknown key" in found["found"]
    assert "mcfd setup" in found["todo"]


async def test_a_line_without_its_machine(mcfd: Command, tmp_path: Path) -> None:
    """No port, no answer, another device, another program: each with its own words."""
    mcfd.config.write_text(f"{mcfd.config.read_text()}reply_timeout = 0.1\n")
    link = tmp_path / f"machine-{NIM}"
    checks = await doctor(mcfd)
    assert (checks["port"]["state"], "does not exist" in checks["port"]["found"]) == ("fail", True)
    link.write_text("")
    assert "is not a serial port" in (await doctor(mcfd))["port"]["found"]
    link.unlink()
    with silent_line(link):
        assert "no answer on" in (await doctor(mcfd))["machine"]["found"]
        with locked_line(link) as pid:
            checks = await doctor(mcfd)
    assert checks["line"]["found"] == f"held by sleep ({pid})"
    assert "machine" not in checks
    with chatty_line(link):
        assert "something else than a fiscal machine" in (await doctor(mcfd))["machine"]["found"]


async def test_a_ledger_that_waits_for_somebody(mcfd: Command) -> None:
    """No key, and a machine in attention: what was found, and the command that settles it."""
    async with opened(mcfd.ledger) as store:
        till = await Till.of(store)
        await till.sell()
        await store.ledger.set_attention(till.book, "found this", at=till.at)
    checks = await doctor(mcfd)
    assert (checks["attention"]["found"], checks["attention"]["todo"]) == (
        "found this",
        f"sudo mcfd machine settle {NIM}",
    )
    assert (checks["keys"]["state"], checks["keys"]["todo"]) == ("warn", f"sudo mcfd keys create --nim {NIM}")
    assert checks["ledger"]["state"] == "ok"


async def test_a_ledger_whose_last_z_is_not_known(mcfd: Command, tmp_path: Path) -> None:
    """Restored where nothing else knows its machine: the Z is refused until somebody says the number on paper."""
    async with opened(mcfd.ledger) as store:
        till = await Till.of(store)
        await till.sell()
        await till.close()
    mcfd.ok("backup", str(tmp_path / "copy"))
    for file in mcfd.ledger.parent.glob(f"{mcfd.ledger.name}*"):
        file.unlink()
    mcfd.ok("restore", str(tmp_path / "copy"))
    found = (await doctor(mcfd))["last_z"]
    assert (found["state"], found["todo"].startswith(f"sudo mcfd machine last-z {NIM} ")) == ("warn", True)
    mcfd.ok("machine", "last-z", NIM, "1", "--yes")
    assert "last_z" not in await doctor(mcfd)


async def test_a_damaged_ledger(mcfd: Command) -> None:
    """Not a word of SQLite's: that it is damaged, and how a copy is put back."""
    async with opened(mcfd.ledger) as store:
        await (await Till.of(store)).sell()
    content = bytearray(mcfd.ledger.read_bytes())
    content[5000:9000] = os.urandom(4000)
    mcfd.ledger.write_bytes(content)
    found = (await doctor(mcfd))["ledger"]
    assert (found["state"], "mcfd restore" in found["todo"]) == ("fail", True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
async def test_what_the_daemons_user_may_not_use(mcfd: Command, machine: Machine) -> None:
    """Looked at by root, answered for the owner of the ledger's folder: a port, and a file that root left in the ledger's place. Looking
    changes neither."""
    async with opened(mcfd.ledger) as store:
        await (await Till.of(store)).sell()
    os.chown(mcfd.folder, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    machine.link.resolve().chmod(0o600)
    mcfd.ledger.chmod(0o600)
    (mcfd.folder / "mcfd.sqlite3-journal").touch(0o600)
    before = {file.name: file.stat().st_uid for file in mcfd.folder.iterdir()}
    checks = as_a_process(mcfd.run("doctor", "--json"))
    assert (checks["permissions"]["state"], "usermod -aG dialout" in checks["permissions"]["todo"]) == ("fail", True)
    assert (checks["ledger"]["state"], "mcfd.sqlite3-journal" in checks["ledger"]["found"]) == ("fail", True)
    assert {file.name: file.stat().st_uid for file in mcfd.folder.iterdir()} == before


async def test_something_else_on_the_daemons_port(mcfd: Command) -> None:
    """Another program answers there: it is not taken for a daemon that is down."""
    with answering(lambda _: Answer(404, b"not found")) as url:
        port = url.rpartition(":")[2]
        mcfd.config.write_text(mcfd.config.read_text().replace("port = 1\n", f"port = {port}\n", 1))
        found = (await doctor(mcfd))["daemon"]
    assert (found["state"], "something else than mcfd answers" in found["found"]) == ("fail", True)
