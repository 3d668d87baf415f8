"""A box in a shop, for real: Debian boots, the package goes in, a machine is plugged in, and the years go by.

The box has a network of its own, so everything is asked for from inside."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.debian import Debian, debian, need_debian
from support.package import LIB, built, other_version

NIM = "EL02000015-1"
LEDGER = "/var/lib/mcfd/mcfd.sqlite3"
PATIENCE_SECONDS = 30.0
# The simulated machine, which keeps its counters while it is away.
MACHINE = f"""\
[Service]
User=mcfd
RuntimeDirectory=machine
RuntimeDirectoryPreserve=yes
ExecStart=/usr/bin/python3 -IS -c "import sys; sys.path.insert(0, '/opt/mcfd/lib'); from simulator.serve import main; main()" \
  --nim {NIM} --ifu 00084440Y --link /run/machine/line --state /run/machine/state --baud 0
"""
CALL = """
import sys, urllib.error, urllib.request
method, path, key, body = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
request = urllib.request.Request("http://127.0.0.1:8480" + path, body.encode() or None, headers, method=method)
try:
    answer = urllib.request.urlopen(request, timeout=30)
except urllib.error.HTTPError as error:
    answer = error
except OSError as error:  # nobody listens: the daemon is down or on its way
    sys.exit(f'0\\n{{"refused": "{error}"}}')
print(answer.status)
print(answer.read().decode())
"""
UPSTREAM = """
[upstream]
kind = "https"
url = "https://127.0.0.1:1/closures"
secret_file = "/etc/mcfd/credentials/upstream.secret"
"""


@dataclass
class Shop:
    box: Debian
    package: Path
    key: str = ""
    sold: list[str] = field(default_factory=list)

    def call(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        text = json.dumps(body) if body is not None else ""
        done = self.box.run("python3", "-c", CALL, method, f"/v1/mcf/{NIM}{path}", self.key, text, check=False)
        status, _, answer = (done.stdout or done.stderr).partition("\n")
        return int(status), json.loads(answer)

    def certify(self, number: str) -> tuple[int, dict[str, object]]:
        invoice = {
            "invoiceNumber": number,
            "invoiceType": "FV",
            "items": [{"name": "Riz 25 kg", "taxGroup": "B", "unitPrice": 15000, "quantity": 1}],
            "payments": [{"method": "E", "amount": 15000}],
        }
        return self.call("POST", "/certify", invoice)

    def sell(self) -> dict[str, object]:
        """Sells one more; the till tries again while the daemon starts, as tills do."""
        number = f"FV-{len(self.sold) + 1:04}"
        status, answer = self.until(lambda: self.certify(number), lambda found: found[0] not in {0, 503})
        assert status == 200, answer
        self.sold.append(number)
        return answer

    def until(
        self, look: Callable[[], tuple[int, dict[str, object]]], good: Callable[[tuple[int, dict[str, object]]], bool]
    ) -> tuple[int, dict[str, object]]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not good(found := look()):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found

    def assert_nothing_is_lost(self) -> None:
        """Every sale is in the ledger: it is answered as a duplicate, with the certification it had. The ledger verifies."""
        for number in self.sold:
            status, answer = self.certify(number)
            assert (status, answer["code"]) == (409, "DUPLICATE_INVOICE"), number
        self.box.run("mcfd", "verify")

    @property
    def configuration(self) -> Path:
        return self.box.path("/etc/mcfd/mcfd.toml")

    def set_up(self) -> None:
        """`mcfd setup` unattended, as a script would."""
        said = self.box.run("mcfd", "setup", "--yes", "--json", "--port", "/run/machine/line").stdout
        (found,) = json.loads(said)["machines"]
        assert (found["nim"], found["ifu"], found["port"]) == (NIM, "00084440Y", "/run/machine/line")
        self.key = found["key"]

    def plug_in(self) -> None:
        self.box.run("systemctl", "start", "machine.service")

    def unplug(self) -> None:
        self.box.run("systemctl", "stop", "machine.service")

    def unit(self, name: str) -> str:
        return self.box.run("systemctl", "show", "--value", f"--property={name}", "mcfd.service").stdout.strip()

    def journal(self) -> str:
        return self.box.run("journalctl", "--no-pager", "--unit=mcfd.service", "--lines=50").stdout


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    need_debian()
    with debian() as box:
        box.boot()
        shop = Shop(box, built())
        box.install(shop.package)
        box.path("/etc/systemd/system/machine.service").write_text(MACHINE)
        box.run("systemctl", "daemon-reload")
        shop.plug_in()
        shop.set_up()
        with shop.configuration.open("a") as file:
            file.write(UPSTREAM)
        box.path("/etc/mcfd/credentials/upstream.secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
        box.run("mcfd", "config", "check")
        box.run("systemctl", "start", "mcfd.service", check=False)
        assert shop.unit("ActiveState") == "active", shop.journal()
        yield shop


def test_it_runs_as_its_own_user_and_says_when_it_is_ready(shop: Shop) -> None:
    """systemd counts it as started only once it serves; it is not root, and reads its secret through systemd alone."""
    assert (shop.unit("Type"), shop.unit("SubState"), shop.unit("NRestarts")) == ("notify", "running", "0")
    status = shop.box.path(f"/proc/{shop.unit('MainPID')}/status")
    found = shop.box.run(
        "grep", "-E", "^(Uid|CapEff|NoNewPrivs|Seccomp):", f"/proc/{shop.unit('MainPID')}/status"
    ).stdout
    uid = shop.box.run("id", "-u", "mcfd").stdout.strip()
    fields = {line.split(":")[0]: line.split()[1] for line in found.splitlines()}
    assert fields == {"Uid": uid, "CapEff": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}, status
    denied = shop.box.run("runuser", "-u", "mcfd", "--", "cat", "/etc/mcfd/credentials/upstream.secret", check=False)
    assert "Permission denied" in denied.stderr


def test_the_doctor_finds_a_fresh_box_well(shop: Shop) -> None:
    """Ports, permissions, secrets, clock, disk, ledger and keys are as the package and `mcfd setup` left them: nothing to mend."""
    said = json.loads(shop.box.run("mcfd", "doctor", "--json", check=False).stdout)
    assert [check for check in said["checks"] if check["state"] == "fail"] == []


def test_a_killed_daemon_comes_back_and_has_lost_nothing(shop: Shop) -> None:
    """SIGKILL, as from the kernel when memory runs out: two seconds later the next sale is certified."""
    shop.sell()
    shop.box.run("systemctl", "kill", "--signal=SIGKILL", "mcfd.service")
    shop.sell()
    shop.assert_nothing_is_lost()


def test_a_daemon_that_hangs_is_started_again(shop: Shop) -> None:
    """Stopped in its tracks, it does not feed the watchdog (here of 2 seconds), and systemd replaces it."""
    drop_in = "/run/systemd/system/mcfd.service.d"
    shop.box.run("sh", "-c", f"mkdir -p {drop_in} && printf '[Service]\\nWatchdogSec=2\\n' > {drop_in}/soon.conf")
    shop.box.run("systemctl", "daemon-reload")
    shop.box.run("systemctl", "restart", "mcfd.service")
    hung = shop.unit("MainPID")
    shop.box.run("sh", "-c", f"kill -STOP {hung}")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while shop.unit("MainPID") in {hung, "0"}:
        assert time.monotonic() < deadline, shop.journal()
        time.sleep(0.1)
    shop.sell()
    shop.assert_nothing_is_lost()


def test_it_starts_without_its_machine_and_finds_it_later(shop: Shop) -> None:
    """A box that comes up before its machine is switched on serves, says so, and sells as soon as the machine is there."""
    shop.sell()
    shop.unplug()
    shop.box.run("systemctl", "restart", "mcfd.service")
    status, answer = shop.certify("FV-OFFLINE")
    assert (status, answer["code"]) == (503, "BRIDGE_OFFLINE")
    shop.plug_in()
    shop.sell()
    shop.assert_nothing_is_lost()


def test_a_reload_is_no_restart(shop: Shop) -> None:
    """`systemctl reload` has the same process read its configuration again."""
    process = shop.unit("MainPID")
    shop.box.run("systemctl", "reload", "mcfd.service")
    shop.sell()
    assert (shop.unit("MainPID"), shop.unit("ActiveState")) == (process, "active")


def test_the_nightly_jobs_do_their_work(shop: Shop) -> None:
    """The timers wait for the night; run now, one leaves a copy that verifies, and the other finds nothing wrong."""
    timers = shop.box.run("systemctl", "is-active", "mcfd-backup.timer", "mcfd-verify.timer").stdout.split()
    assert timers == ["active", "active"]
    shop.sell()
    for job in ("mcfd-backup.service", "mcfd-verify.service"):
        done = shop.box.run("systemctl", "start", job, check=False)
        assert done.returncode == 0, shop.box.run("journalctl", "--no-pager", f"--unit={job}").stdout
    (copy,) = shop.box.path("/var/lib/mcfd/backups").glob("mcfd-*.sqlite3")
    assert copy.stat().st_size > 0


def test_an_upgrade_keeps_ledger_and_configuration(shop: Shop) -> None:
    """The new version serves with the same key and the same ledger; a copy from before is there, the old program is gone."""
    shop.sell()
    configuration = shop.configuration.read_text()
    shop.box.install(other_version(shop.package, "9.1"))
    assert shop.box.run("mcfd", "--version").stdout == "mcfd 9.1\n"
    assert shop.configuration.read_text() == configuration
    assert shop.box.path("/var/lib/mcfd/backups/before-upgrade.sqlite3").exists()
    assert not shop.box.path("/opt/mcfd.previous").exists()
    shop.sell()
    shop.assert_nothing_is_lost()


def test_a_power_cut_in_the_middle_of_an_upgrade_leaves_a_shop_that_sells(shop: Shop) -> None:
    """The files of the new version are there and dpkg had not gone on: the box comes up with the version before, and dpkg ends its
    work later without losing what was sold in between."""
    shop.sell()
    before = shop.box.run("mcfd", "--version").stdout
    shop.box.run("dpkg", "--unpack", shop.box.bring(other_version(shop.package, "9.1.1")))
    assert shop.box.run("mcfd", "--version").stdout == before
    shop.box.run("systemctl", "start", "mcfd.service")
    shop.sell()
    shop.box.run("dpkg", "--configure", "mcfd")
    assert shop.box.run("mcfd", "--version").stdout == "mcfd 9.1.1\n"
    shop.sell()
    shop.assert_nothing_is_lost()


def damage(root: Path) -> None:
    """A release with a migration that changes the past."""
    schema = root / LIB / "daemon/store/schema"
    number = len(list(schema.glob("*.sql"))) + 1
    (schema / f"{number:04}_mistake.sql").write_text("UPDATE certification SET total_ttc = total_ttc + 1;\n")


def test_a_failed_migration_is_taken_back_and_the_shop_goes_on_selling(shop: Shop) -> None:
    """What the migration did is undone, the version before it serves, dpkg is told no, and trying again later loses no sale."""
    shop.sell()
    good = shop.box.run("mcfd", "--version").stdout
    refused = shop.box.install(other_version(shop.package, "9.2", damage), check=False)
    assert refused.returncode != 0
    assert "il a été remis comme avant" in refused.stdout + refused.stderr
    assert shop.box.run("mcfd", "--version").stdout == good
    shop.sell()
    again = shop.box.run("dpkg", "--configure", "mcfd", check=False)
    assert again.returncode != 0
    assert shop.box.run("mcfd", "--version").stdout == good
    shop.sell()
    shop.assert_nothing_is_lost()

    shop.box.install(other_version(shop.package, "9.3"))
    assert shop.box.run("mcfd", "--version").stdout == "mcfd 9.3\n"
    assert not shop.box.path("/opt/mcfd.previous").exists()
    shop.assert_nothing_is_lost()


def test_a_purge_leaves_the_ledger_alone_and_says_so(shop: Shop) -> None:
    """Configuration, secrets, copies, user and program go. The ledger stays, root's own, and a new installation takes it up again."""
    shop.sell()
    shop.unplug()
    said = shop.box.run("apt-get", "purge", "-y", "mcfd").stdout
    assert "tout est supprimé sauf le registre fiscal" in said
    assert LEDGER in said
    left = shop.box.run(
        "find",
        "/",
        "-xdev",
        "-path",
        "*mcfd*",
        "-not",
        "-path",
        "/root/*",
        "-not",
        "-path",
        "/var/log/*",
        "-not",
        "-path",
        "/run/*",
        "-not",
        "-path",
        "/proc/*",
        "-not",
        "-path",
        "/sys/*",
    ).stdout
    assert set(left.split()) == {"/var/lib/mcfd", LEDGER}
    assert shop.box.run("stat", "-c", "%U %a", "/var/lib/mcfd").stdout == "root 700\n"
    assert shop.box.run("getent", "passwd", "mcfd", check=False).stdout == ""

    shop.box.install(shop.package)
    shop.plug_in()
    shop.set_up()
    shop.box.run("systemctl", "start", "mcfd.service")
    shop.assert_nothing_is_lost()
