"""A stick is plugged in: what its unit does (systemd/stick-mcfd@.service), on a real block device with a file system of its own."""

from __future__ import annotations

import configparser
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli.command import CONFIG, NIM, Command
from support.ledgers.ledger import Till, opened
from support.shop import BIN

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "systemd/stick-mcfd@.service"
MEGABYTE = 1024 * 1024


def system(*arguments: str | Path) -> str:
    done = subprocess.run([*map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise OSError(f"{arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def make_file_system(image: Path) -> str:
    """FAT, as sticks have it, where this kernel knows it; otherwise ext4."""
    kernel = Path("/proc/filesystems").read_text().split()
    if "vfat" in kernel and shutil.which("mkfs.vfat"):
        system("mkfs.vfat", "-n", "MCFD", image)
        return "vfat"
    system("mkfs.ext4", "-q", "-F", "-L", "MCFD", image)
    return "ext4"


class Stick:
    """A block device of so many bytes, called MCFD; `mounted` as the unit mounts it."""

    def __init__(self, folder: Path, size: int) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can mount")
        self.image, self.place, self.device = folder / "stick.img", folder / "mounted", ""
        self.place.mkdir()
        with self.image.open("wb") as file:
            file.truncate(size)
        try:
            self.kind = make_file_system(self.image)
            self.device = system("losetup", "--find", "--show", self.image)
            system("mount", self.device, self.place)
            system("umount", self.place)
        except OSError as error:
            self.pull()
            pytest.skip(f"this kernel gives no block device to mount ({error})")

    def pull(self) -> None:
        subprocess.run(["umount", self.place], capture_output=True, check=False)
        if self.device:
            subprocess.run(["losetup", "--detach", self.device], capture_output=True, check=False)


@pytest.fixture
def stick(tmp_path: Path) -> Iterator[Stick]:
    stick = Stick(tmp_path, 16 * MEGABYTE)
    yield stick
    stick.pull()


@pytest.fixture
async def box(tmp_path: Path) -> Command:
    """A box with one sale, set up for the stick."""
    folder = tmp_path / "box"
    folder.mkdir()
    (folder / "passphrase").write_text("six mots\n")
    box = Command(folder, CONFIG + '\n[backup]\npassphrase_file = "passphrase"\n')
    async with opened(box.ledger) as store:
        till = await Till.of(store)
        await till.sell()
        await till.close()
    return box


def plug_in(stick: Stick, box: Command) -> subprocess.CompletedProcess[str]:
    """What systemd would run, line by line, with the paths of this box; how the backup itself ended. What systemd mounts itself, mount does."""
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    here = {
        "/dev/%I": stick.device,
        "/run/mcfd-stick/stick": str(stick.place),
        "/etc/mcfd/mcfd.toml": str(box.config),
        "/usr/bin/mcfd": str(BIN / "mcfd"),
        "/usr/bin/systemd-mount": "mount",
        "/usr/bin/systemd-umount": "umount",
    }
    only_systemds = {"--collect", "--quiet", "--fsck=no"}
    lines = (shlex.split(unit["Service"][name].lstrip("-+")) for name in ("ExecStartPre", "ExecStart", "ExecStopPost"))
    before, run, after = (
        [here.get(word, word.replace("--type=", "--types=")) for word in words if word not in only_systemds]
        for words in lines
    )
    system(*before)
    try:
        return subprocess.run(run, capture_output=True, text=True, check=False, timeout=120, env=box.environ())
    finally:
        system(*after)


def on(stick: Stick) -> list[str]:
    """What is on it when it is read again. Not mounted `ro`: a box of another test that boots may have it in its own mounts for a moment, and a
    file system is either for all or for none."""
    system("mount", stick.device, stick.place)
    try:
        return sorted(path.name for path in stick.place.iterdir() if path.name != "lost+found")
    finally:
        system("umount", stick.place)


def test_the_whole_box_is_on_the_stick_that_is_pulled(stick: Stick, box: Command, tmp_path: Path) -> None:
    """One encrypted file, complete once the stick is unmounted, from which another box comes back; the reminder is quiet from then on."""
    assert system("blkid", "-p", "-o", "value", "-s", "LABEL", stick.image) == "MCFD"  # what the udev rule asks for
    done = plug_in(stick, box)
    assert done.returncode == 0, done.stderr
    (name,) = on(stick)
    assert name.startswith("mcfd-")
    assert name.endswith(".box.age")
    checks = json.loads(box.run("doctor", "--json").stdout)["checks"]
    (backup,) = [each for each in checks if each["check"] == "backup"]
    assert (backup["state"], backup["found"]) == ("ok", "the whole box was copied to another disk today")
    (tmp_path / "new").mkdir()
    new = Command(tmp_path / "new")
    new.config.unlink()
    system("mount", stick.device, stick.place)
    try:
        content = new.json(
            *("restore", "--all", str(stick.place / name), "--config", str(new.config), "--last-z", "1"),
            *("--passphrase-file", str(box.folder / "passphrase"), "--yes"),
        )
    finally:
        system("umount", stick.place)
    assert content["closures"] == 1
    assert [entry["zNumber"] for entry in new.json("journal", "--nim", NIM, "--from", "2020-01-01")] == [1]


def test_a_stick_that_is_too_small(tmp_path: Path, box: Command) -> None:
    """Told in words, and nothing is left on it that could be taken for a backup."""
    stick = Stick(tmp_path, 1 * MEGABYTE)
    try:
        with (box.folder / "logo.png").open("wb") as file:
            file.truncate(1 * MEGABYTE)
        box.config.write_text(box.config.read_text() + '\n[company]\nlogo = "logo.png"\n')
        done = plug_in(stick, box)
        assert (done.returncode, done.stdout) == (1, "")
        assert "no space" in done.stderr.lower()
        assert on(stick) == []
    finally:
        stick.pull()
