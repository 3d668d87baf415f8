import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.tools import need

SYSTEMD = Path(__file__).resolve().parents[2] / "systemd"
UNITS = sorted(path.name for path in SYSTEMD.iterdir() if path.suffix in {".service", ".timer"})
HOSTS_UNITS = Path("/lib/systemd/system")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root tree with Debian's units, ours, and the commands they start."""
    need("systemd-analyze")
    units = tmp_path / "lib/systemd/system"
    shutil.copytree(HOSTS_UNITS, units, symlinks=True)
    shutil.copytree(SYSTEMD, units, dirs_exist_ok=True)
    ours = (
        "usr/bin/mcfd",
        "usr/bin/mcfd-hq",
        "usr/bin/mcfd-relay",
        *(f"usr/share/mcfd/{name}" for name in ("upgrade", "finish-upgrade", "finish-first-start")),
    )
    names = ("systemctl", "systemd-mount", "systemd-sysusers", "systemd-tmpfiles", "systemd-umount")
    systemds = (f"usr/bin/{name}" for name in names)
    for command in (*ours, *systemds, "bin/sh", "usr/sbin/haproxy"):
        path = tmp_path / command
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return tmp_path


def verify(root: Path, *units: str) -> str:
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={root}", "--man=no", *units],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return done.stdout


def test_systemd_has_nothing_to_say_about_the_units(root: Path) -> None:
    """`systemd-analyze verify` prints nothing at all; its exit code alone would let a misspelt key pass."""
    assert len(UNITS) == 14
    assert verify(root, *UNITS) == ""


def test_the_units_start_an_older_program_too() -> None:
    """After an upgrade that went back: no argument that 0.1.0 lacks, no group but Debian's, users before folders."""
    unit = (SYSTEMD / "mcfd.service").read_text()
    assert re.findall("^ExecStart=(.*)$", unit, re.MULTILINE) == ["/usr/bin/mcfd run --config /etc/mcfd/mcfd.toml"]
    assert re.findall("^SupplementaryGroups=(.*)$", unit, re.MULTILINE) == ["dialout lp"]
    assert unit.index("systemd-sysusers") < unit.index("systemd-tmpfiles")


@pytest.mark.parametrize(
    ("unit", "most"),
    [
        ("mcfd.service", 1.6),
        ("first-start-mcfd.service", 1.6),
        ("mcfd-hq.service", 1.3),
        ("mcfd-relay.service", 1.3),
        ("mcfd-backup.service", 0.5),
        ("mcfd-verify.service", 0.5),
        ("stick-mcfd@.service", 1.4),
        ("upgrade-mcfd.service", 3.6),
        ("finish-upgrade-mcfd.service", 3.6),
    ],
)
def test_exposure_stays_low(unit: str, most: float, tmp_path: Path) -> None:
    """By systemd's own scale: the daemon, the jobs, and what is root, which has no more than it needs."""
    need("systemd-analyze")
    file = SYSTEMD / unit
    if "@" in unit:  # a template is none without a name
        file = tmp_path / unit.replace("@", "@sdb1")
        file.symlink_to(SYSTEMD / unit)
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", file],
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found, done.stdout
    assert float(found[1]) <= most


def test_a_stick_is_of_a_kind_that_sticks_are() -> None:
    """Neither udev nor mount tries the driver of any other file system on what a stranger plugs in."""
    rule = next(line for line in (SYSTEMD / "70-mcfd.rules").read_text().splitlines() if "stick-mcfd@" in line)
    assert 'ENV{ID_FS_TYPE}=="vfat|exfat|ext4"' in rule
    unit = (SYSTEMD / "stick-mcfd@.service").read_text()
    assert " --type=vfat,exfat,ext4 --options=nosuid,nodev,noexec,nosymfollow " in unit


@pytest.mark.parametrize("timer", [name for name in UNITS if name.endswith(".timer")])
def test_a_timer_starts_a_job_of_its_name(timer: str) -> None:
    """A timer without `Unit=` starts the service of the same name, which has to be there."""
    assert timer.replace(".timer", ".service") in UNITS


@pytest.mark.parametrize("unit", ["mcfd.service", "first-start-mcfd.service"])
def test_the_line_is_allowed_by_number(unit: str) -> None:
    """`char-ttyACM` would be ignored while the driver is not loaded; 166 and 188 are always understood. What would hide the tty is off."""
    lines = (SYSTEMD / unit).read_text().splitlines()
    assert {"DevicePolicy=closed", "DeviceAllow=char-166 rw", "DeviceAllow=char-188 rw"} <= set(lines)
    assert not {"PrivateDevices=yes", "PrivateUsers=yes"} & set(lines)
