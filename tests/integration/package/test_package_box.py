"""A box in a shop, for real: Debian boots, the package goes in, a machine is plugged in, and the years go by."""

import json
import re
import time

import pytest
from support.box.package import uncompressed
from support.box.shop import LEDGER, PATIENCE_SECONDS, Shop, until

pytestmark = pytest.mark.long

LINK = "/run/mcfd-first-start/link"


def test_it_runs_as_its_own_user_and_says_when_it_is_ready(shop: Shop) -> None:
    """systemd counts it as started only once it serves; it is not root, and reads its secret through systemd alone."""
    shop.box.run("systemctl", "restart", "mcfd.service")
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
    content = json.loads(shop.box.run("mcfd", "doctor", "--json", check=False).stdout)
    assert [check for check in content["checks"] if check["state"] == "fail"] == []


def test_a_killed_daemon_comes_back_and_has_lost_nothing(shop: Shop) -> None:
    """SIGKILL, as from the kernel when memory runs out: two seconds later the next sale is certified."""
    shop.sell()
    shop.box.run("systemctl", "kill", "--signal=SIGKILL", "mcfd.service")
    shop.sell()
    shop.assert_nothing_is_lost()


def test_a_daemon_that_hangs_is_started_again(shop: Shop) -> None:
    """Stopped in its tracks, it does not feed the watchdog (here of 5 seconds), and systemd replaces it."""
    drop_in = "/run/systemd/system/mcfd.service.d/soon.conf"
    shop.box.run(
        "sh",
        "-c",
        f"mkdir -p $(dirname {drop_in}) && printf '[Service]\\nWatchdogSec=5\\n' > {drop_in} && systemctl daemon-reload",
    )
    try:
        shop.box.run("systemctl", "restart", "mcfd.service")
        hung = shop.unit("MainPID")
        shop.box.run("systemctl", "kill", "--kill-whom=main", "--signal=SIGSTOP", "mcfd.service")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while shop.unit("MainPID") in {hung, "0"}:
            assert time.monotonic() < deadline, shop.journal()
            time.sleep(0.1)
    finally:
        shop.box.run("sh", "-c", f"rm {drop_in} && systemctl daemon-reload")
    shop.sell()
    shop.assert_nothing_is_lost()


ASK = """
import ssl, urllib.request
context = ssl.create_default_context(cafile="/var/lib/mcfd/tls/ca.pem")
print(urllib.request.urlopen("https://localhost:8480/health/live", context=context).status)
"""


def test_on_the_network_haproxy_is_in_front(shop: Shop) -> None:
    """Its unit starts with the configuration, as a user of its own, and stops when the box serves itself alone again."""
    config = "/etc/mcfd/mcfd.toml"
    shop.box.run("cp", "-p", config, f"{config}.kept")
    shop.box.run("mcfd", "tls", "init")
    shop.box.run("sed", "-i", 's/^host = .*/host = "0.0.0.0"\\ntls = "internal"/', config)
    shop.box.run("systemctl", "restart", "mcfd.service")
    until(lambda: states(shop, "front-mcfd.service"), lambda found: found == ["active"])
    process = shop.box.run("systemctl", "show", "--value", "--property=MainPID", "front-mcfd.service").stdout.strip()
    assert shop.box.run("stat", "-c", "%U", f"/proc/{process}").stdout == "mcfd-front\n"
    assert shop.box.run("python3", "-c", ASK).stdout == "200\n"
    content = json.loads(shop.box.run("mcfd", "doctor", "--json", check=False).stdout)
    assert [check for check in content["checks"] if check["state"] == "fail"] == []
    assert_announced(shop)
    shop.box.run("mv", f"{config}.kept", config)
    shop.box.run("systemctl", "restart", "mcfd.service")
    until(lambda: states(shop, "front-mcfd.service"), lambda found: found == ["inactive"])
    shop.sell()
    shop.assert_nothing_is_lost()


def assert_announced(shop: Shop) -> None:
    """Avahi, which reads as a user of its own, is given what the box serves, and not what HAProxy's user has put in the daemon's way."""
    announced = shop.box.path("/etc/avahi/services/mcfd.service")
    announced.parent.mkdir(parents=True)
    shop.box.run("systemctl", "restart", "mcfd.service")
    assert announced.stat().st_mode & 0o777 == 0o644
    shop.box.run("runuser", "-u", "mcfd-front", "--", "ln", "-sfT", LEDGER, "/run/mcfd-front/mcfd.service")
    shop.box.run("/usr/share/mcfd/announce")  # as after the daemon's start
    assert "<type>_mcfd._tcp</type>" in announced.read_text()


def states(shop: Shop, *units: str) -> list[str]:
    return shop.box.run("systemctl", "is-active", *units, check=False).stdout.split()


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


ON_THE_PAGE = """
import http.cookiejar, re, time, urllib.parse, urllib.request
base = "http://localhost:8480"
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
browser.addheaders = [("Origin", base)]
def ask(path, **form):
    return browser.open(base + path, urllib.parse.urlencode(form).encode() or None, timeout=60).read().decode()
ask("/ui/login", name="issa", password="orange-bleu-42")
assert "finding ok" in ask("/ui/box/findings")
ask("/ui/box/backup", now="1")
deadline = time.monotonic() + 60
while not re.search(r"mcfd-[0-9T-]+Z?[.]sqlite3", ask("/ui/box/backups")):
    assert time.monotonic() < deadline
    time.sleep(0.2)
"""


def test_the_page_runs_commands_of_mcfd(shop: Shop) -> None:
    """The findings of doctor and a backup: children of the daemon, which find its modules where the package has them."""
    shop.box.run("sh", "-c", "echo orange-bleu-42 | mcfd users create issa --role technician --password-stdin")
    shop.box.run("python3", "-c", ON_THE_PAGE)


def test_the_unit_of_a_stick_writes_the_whole_box_and_lets_go(shop: Shop) -> None:
    """`stick-mcfd@.service` as it is shipped, but for the block device, which no container has: with all that it denies itself the box is
    encrypted onto what it has mounted, and nothing stays mounted. Without `[backup]` it writes nothing."""
    unit, stick, passphrase = (
        "stick-mcfd@stick.service",
        "/media/stick-of-ours",
        "/etc/mcfd/credentials/backup.passphrase",
    )
    text = shop.box.path("/usr/lib/systemd/system/stick-mcfd@.service").read_text()
    shipped = re.search("^ExecStartPre=(.*)$", text, re.MULTILINE)
    mount = shipped[1].replace("/dev/%I", stick).replace("--options=", "--options=bind,")
    shop.box.run(
        *(
            "sh",
            "-c",
            'mkdir -p "$1" "$2" && printf "[Service]\\nExecStartPre=\\nExecStartPre=%s\\n" "$3" > "$2/here.conf"',
            "sh",
        ),
        *(stick, "/run/systemd/system/stick-mcfd@.service.d", mount),
    )
    shop.box.run("systemctl", "daemon-reload")
    shop.box.run("systemctl", "start", unit)
    assert list(shop.box.path(stick).iterdir()) == []
    shop.box.path(passphrase).write_text("six mots\n")
    before = shop.configuration.read_text()
    shop.configuration.write_text(f'{before}\n[backup]\npassphrase_file = "{passphrase}"\n')
    done = shop.box.run("systemctl", "start", unit, check=False)
    assert done.returncode == 0, shop.box.run("journalctl", "--no-pager", f"--unit={unit}").stdout
    shop.configuration.write_text(before)
    (copy,) = shop.box.path(stick).iterdir()
    assert copy.name.endswith(".box.age")
    assert copy.read_bytes().startswith(b"age-encryption.org/")
    copy.unlink()
    assert shop.box.run("mountpoint", "-q", "/run/mcfd-stick/stick", check=False).returncode != 0


def test_a_purge_leaves_the_ledger_alone_and_a_browser_sets_the_box_up_again(shop: Shop) -> None:
    """Configuration, secrets, copies, user and program go. The ledger stays, root's own, and so does one of another name; a new installation is not in its way. Without a
    configuration it serves the first start by itself: on the network, encrypted, not as root, to who has the code, which is root's to read,
    in the journal, and shown again by `mcfd setup --page`. What was decided becomes the configuration, the daemon takes its place, on this box
    alone as was decided, and the ledger goes on."""
    shop.sell()
    shop.unplug()
    other = "/var/lib/mcfd/mcfd-caisse-2.db"
    shop.box.run("mcfd", "backup", other)
    output = shop.box.run("apt-get", "purge", "-y", "mcfd").stdout
    assert "tout est supprimé sauf le registre fiscal" in output
    assert LEDGER in output
    ours = ("/", "-xdev", "-path", "*mcfd*")
    passing = [f"/{name}/*" for name in ("root", "var/log", "run", "proc", "sys")]
    left = shop.box.run("find", *ours, *(word for path in passing for word in ("-not", "-path", path))).stdout
    assert set(left.split()) == {"/var/lib/mcfd", LEDGER, other}
    assert shop.box.run("stat", "-c", "%U %a", "/var/lib/mcfd").stdout == "root 700\n"
    assert shop.box.run("getent", "passwd", "mcfd", check=False).stdout == ""

    shop.box.install(uncompressed(shop.package))
    unit = "first-start-mcfd.service"
    process = shop.box.run("systemctl", "show", "--value", "--property=MainPID", unit).stdout.strip()
    assert shop.box.run("stat", "-c", "%U", f"/proc/{process}").stdout == "mcfd\n"
    assert shop.box.run("stat", "-c", "%U %a", LINK).stdout == "mcfd 600\n"
    assert listening(shop) == ["00000000:2120"]
    front = shop.box.run("systemctl", "show", "--value", "--property=MainPID", "front-mcfd.service").stdout.strip()
    assert shop.box.run("stat", "-c", "%U", f"/proc/{front}").stdout == "mcfd-front\n"
    link = shop.box.run("cat", LINK).stdout.split()[0]
    assert link in shop.box.run("mcfd", "setup", "--page").stdout
    assert link in shop.box.run("journalctl", "--no-pager", f"--unit={unit}").stdout
    shop.plug_in()
    shop.set_up_in_browser(link)
    assert listening(shop) == ["0100007F:2120"]
    assert not shop.box.path("/var/lib/mcfd/tls").exists()
    assert shop.box.run("stat", "-c", "%U %G %a", "/etc/mcfd/mcfd.toml").stdout == "root mcfd 640\n"
    until(lambda: states(shop, "mcfd.service", unit), lambda found: found == ["active", "inactive"])
    shop.assert_nothing_is_lost()
    shop.set_up_upstream()


def listening(shop: Shop) -> list[str]:
    """Where somebody listens on port 8480, as the kernel spells it."""
    sockets = [line.split() for line in shop.box.run("cat", "/proc/net/tcp", "/proc/net/tcp6").stdout.splitlines()]
    return [each[1] for each in sockets if each[1].endswith(":2120") and each[3] == "0A"]
