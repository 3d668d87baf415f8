"""Upgrades of a box that sells: what is kept, what a power cut leaves, and how a bad version goes back by itself."""

import re
import threading
from pathlib import Path

import pytest
from support.box.package import LIB, other_version
from support.box.shop import LEDGER, Shop, until

pytestmark = pytest.mark.long

PREVIOUS = "/usr/lib/mcfd.previous"
BACKUPS = "/var/lib/mcfd/backups"
COPY = f"{BACKUPS}/before-upgrade.sqlite3"
WAS_ACTIVE = "/run/mcfd.was-active"
MAY_SERVE = "/etc/may-serve"  # a box that has been off still may
RUN = LIB / "daemon/cli/commands/run.py"


def test_a_power_cut_in_the_middle_of_an_upgrade_leaves_a_shop_that_sells(shop: Shop) -> None:
    """The files of the new version are there and dpkg had not gone on: the box comes up with the version before, and dpkg ends its work later:
    the new version serves with the same key, the same configuration and the same ledger, without losing what was sold in between; a copy from
    before is there, the old program is gone."""
    shop.sell()
    before, configuration, copy = shop.version(), shop.configuration.read_text(), shop.box.path(COPY)
    copy.unlink(missing_ok=True)  # of another test's upgrade
    shop.box.run("dpkg", "--unpack", shop.box.bring(other_version(shop.package, "9.1")))
    assert shop.version() == before
    shop.box.run("systemctl", "start", "mcfd.service")
    shop.sell()
    shop.box.run("dpkg", "--configure", "mcfd")
    assert shop.version() == "9.1"
    assert shop.configuration.read_text() == configuration
    assert copy.exists()
    assert not shop.box.path(PREVIOUS).exists()
    shop.sell()
    shop.assert_nothing_is_lost()


def damage(root: Path) -> None:
    """A release with a migration that changes the past."""
    schema = root / LIB / "daemon/store/schema"
    number = len(list(schema.glob("*.sql"))) + 1
    (schema / f"{number:04}_mistake.sql").write_text("UPDATE certification SET total_ttc = total_ttc + 1;\n")


def impatient(script: Path) -> None:
    """Three seconds for a minute, so that a test ends."""
    assert "patience=60" in script.read_text()
    script.write_text(script.read_text().replace("patience=60", "patience=3"))


def breaks_at_the_start(root: Path) -> None:
    impatient(root / "usr/share/mcfd/take-over")
    (root / RUN).write_text("raise SystemExit('a library is missing')\n")


def hangs_at_the_start(root: Path) -> None:
    (root / RUN).write_text("import time\ntime.sleep(3600)\n")


def ends_without_a_word(root: Path) -> None:
    """As on a disk that is full, or that gives errors."""
    script = root / "usr/share/mcfd/take-over"
    first = 'as_owner mv -fT "$copy.new" "$copy"'
    assert first in script.read_text()
    script.write_text(script.read_text().replace(first, "false"))


def serves_once_it_may(root: Path) -> None:
    impatient(root / "usr/share/mcfd/take-over")
    barred = f"import os\nif not os.path.exists({MAY_SERVE!r}):\n    raise SystemExit('not yet')\n"
    (root / RUN).write_text(barred + (root / RUN).read_text())


def test_a_bad_migration_goes_back_by_itself(shop: Shop) -> None:
    """It changes the past. What it did is undone, dpkg is told no and shows what verify found, and the version before it is selling again when
    dpkg is through, with everything that was sold, also when dpkg tries again; whether the daemon runs is looked at anew by what comes next."""
    good = shop.version()
    shop.sell()
    refused = shop.upgrade("9.2", damage, check=False)
    assert refused.returncode != 0
    assert "il a été remis comme avant" in refused.stdout + refused.stderr
    faults, total = refused.stderr.splitlines()[:2], refused.stderr.splitlines()[2]
    assert all("ne continue pas la chaîne" in each or "d'autres montants" in each for each in faults), refused.stderr
    assert re.fullmatch(rf"mcfd: {LEDGER}\xa0: \d+ problèmes", total), refused.stderr
    assert shop.version() == good
    assert shop.box.run("test", "-e", WAS_ACTIVE, check=False).returncode == 1
    shop.sell()
    again = shop.box.run("dpkg", "--configure", "mcfd", check=False)
    assert again.returncode != 0
    shop.assert_it_sells(good)


@pytest.mark.parametrize("point", ["files", "judgement"])
def test_after_a_power_cut_another_package_goes_back_to_the_version_that_served(shop: Shop, point: str) -> None:
    """An upgrade is cut short once its files are there, or while its version is judged; somebody installs a package instead of having dpkg go on.
    What it goes back to is the version that served last, not the one in between, which never did."""
    good = shop.version()
    shop.sell()
    shop.box.run("dpkg", "--unpack", shop.box.bring(other_version(shop.package, "9.2.1", breaks_at_the_start)))
    if point == "judgement":
        shop.box.run("cp", "-a", LEDGER, COPY)
        shop.box.path(f"{PREVIOUS}/migrating").touch()
        shop.box.path(f"{PREVIOUS}/in-use").unlink()
    assert shop.upgrade("9.2.2", breaks_at_the_start, check=False).returncode != 0
    shop.assert_it_sells(good)


def test_an_upgrade_that_ends_in_its_middle_leaves_a_daemon_that_runs(shop: Shop) -> None:
    """Whatever command of it fails: the version before sells, also before somebody looks at dpkg's error."""
    good = shop.version()
    assert shop.upgrade("9.2.3", ends_without_a_word, check=False).returncode != 0
    shop.assert_it_sells(good)


def test_a_daemon_that_did_not_run_is_not_waited_for(shop: Shop) -> None:
    """Stopped by a person before the upgrade, it says nothing about the new version: one that does not serve yet, and would have gone back
    if it had been waited for, stays. What a person has disabled stays so, and nothing else is."""
    box = shop.box
    box.run("systemctl", "stop", "mcfd.service")
    box.run("systemctl", "disable", "mcfd-verify.timer")
    shop.upgrade("9.6", serves_once_it_may)
    assert shop.version() == "9.6"
    assert shop.unit("ActiveState") != "active"
    output = box.run("systemctl", "is-enabled", "mcfd-backup.timer", "mcfd-verify.timer", "mcfd.service", check=False)
    assert output.stdout.split() == ["enabled", "disabled", "enabled"]
    box.run("systemctl", "enable", "mcfd-verify.timer")
    box.run("touch", MAY_SERVE)
    box.run("systemctl", "reset-failed", "mcfd.service")
    box.run("systemctl", "start", "mcfd.service")
    shop.sell()
    shop.assert_nothing_is_lost()


def test_a_power_cut_while_a_bad_version_is_judged(shop: Shop) -> None:
    """The new version has taken the ledger over and hangs when the power goes: the box comes up, the judgement goes on by itself, and the
    version before it sells again, with everything that was sold."""
    shop.sell()
    good = shop.version()
    bad = shop.box.bring(other_version(shop.package, "9.6.1", hangs_at_the_start))
    install = threading.Thread(target=shop.box.run, args=("dpkg", "--install", bad), kwargs={"check": False})
    install.start()
    migrating = shop.box.path(f"{PREVIOUS}/migrating")
    until(lambda: migrating.exists() and shop.unit("ActiveState") == "activating")
    shop.box.switch_off()
    install.join()
    impatient(shop.box.path("/usr/share/mcfd/take-over"))
    shop.box.boot()
    assert shop.version() in {"9.6.1", good}
    until(lambda: shop.unit("ActiveState") == "active" and shop.version() == good)
    assert shop.box.path(f"{PREVIOUS}/rolled-back").exists()
    shop.plug_in()
    shop.sell()
    shop.assert_nothing_is_lost()


def test_a_version_that_does_not_start_goes_back_and_links_lead_nowhere(shop: Shop) -> None:
    """It takes the ledger over, and ends at once: the ledger is put back, dpkg is told no, and the version before it sells; the next one installs
    as if nothing had been. Meanwhile the daemon's user has planted links where the scripts of an upgrade and of its way back will write as root:
    nothing outside the ledger's folder changes its owner, its mode or a byte, and nothing of root's can be read there afterwards."""
    box = shop.box
    shop.sell()
    box.run("sh", "-c", "mkdir -p /root/own && echo secret > /root/own/file && chmod 600 /root/own/file")
    targets = ["/root/own", "/root/own/file", "/etc/shadow", "/etc/passwd", "/etc/mcfd/mcfd.toml"]
    look = 'for f; do stat -c "%n %U %G %a %s %Y" "$f"; done; find /root/own; cat /root/own/file; sha256sum /etc/shadow /etc/passwd'
    before = box.run("sh", "-c", look, "look", *targets).stdout
    plant = " && ".join(
        f"ln -sfT {target} {name}"
        for name, target in {
            COPY: "/root/own",
            f"{COPY}.new": "/root/own/file",
            f"{LEDGER}.restored": "/etc/shadow",
            "/var/lib/mcfd/link": "/etc",
        }.items()
    )
    box.run("runuser", "-u", "mcfd", "--", "sh", "-c", f"rm -f {COPY} && {plant}")
    good = shop.version()
    refused = shop.upgrade("9.7", breaks_at_the_start, check=False, LANG="en_GB.UTF-8")
    assert refused.returncode != 0
    assert "was not ready within a minute; the ledger was put back as it was" in refused.stdout + refused.stderr
    assert box.run("sh", "-c", look, "look", *targets).stdout == before
    shop.assert_it_sells(good)
    shop.upgrade("9.8")
    assert box.run("sh", "-c", look, "look", *targets).stdout == before
    found = box.run("grep", "-rsl", "root:", "/var/lib/mcfd", check=False).stdout
    assert found == ""
    assert not box.path(PREVIOUS).exists()
    shop.assert_it_sells("9.8")
