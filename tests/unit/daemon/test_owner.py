"""What root does with the daemon's files it does as the daemon's user: links that are planted there lead nowhere."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli.command import CONFIG, NIM, Command
from support.shop import BIN, Shop
from support.tools import need

from daemon.owner import LEFT, private_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be misled")

UNPRIVILEGED_UID = 65534
FOLDERS = ("tls", "backups", "recordings", f"{LEFT}x")
BESIDE = (
    *("mcfd.sqlite3-wal", "mcfd.sqlite3-shm", "mcfd.sqlite3-journal", "mcfd.sqlite3.part", "mcfd.sqlite3.high-water"),
    *("copy.sqlite3", "copy.sqlite3.part", "copy.age", "copy.age.part", "new.key", "ca.pem", "backup.key"),
)
PLANTED = {
    "folders": tuple((name, "etc") for name in FOLDERS),
    "folders that are not there": tuple((name, "etc/new") for name in FOLDERS),
    "files": tuple((name, "etc/shadow") for name in BESIDE),
    "the lock": (("mcfd.sqlite3.lock", "etc/shadow"),),
    "the ledger": (("mcfd.sqlite3", "etc/shadow"),),
}


@pytest.fixture
def mcfd(folder: Path) -> Command:
    """A ledger's folder that belongs to the daemon's user, who has been taken over; the configuration is root's."""
    home = folder / "var"
    home.mkdir()
    mcfd = Command(folder, CONFIG.replace('"mcfd.sqlite3"', '"var/mcfd.sqlite3"'))
    mcfd.ledger = home / "mcfd.sqlite3"
    os.chown(home, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    return mcfd


@pytest.fixture
def etc(folder: Path) -> Iterator[Path]:
    """What is root's alone: nothing of it changes owner, mode or content."""
    etc = folder / "etc"
    etc.mkdir(mode=0o755)
    (etc / "shadow").write_text("root:x")
    (etc / "shadow").chmod(0o600)
    (etc / "passwd").write_text("root:0")
    before = seen(etc)
    yield etc
    assert seen(etc) == before


def seen(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_uid,
            path.lstat().st_gid,
            stat.S_IMODE(path.lstat().st_mode),
            path.read_bytes() if path.is_file() else b"",
        )
        for path in (folder, *sorted(folder.rglob("*")))
    }


COMMANDS = (
    ("keys", "create", "--nim", NIM),
    ("time", "repair", "--reason", "a clock"),
    ("tls", "init"),
    ("tls", "init", "--force"),
    ("tls", "export-ca", "var/ca.pem"),
    ("backup", "var/copy.sqlite3"),
    ("backup", "--into", "var/backups", "--keep-daily", "1"),
    ("backup", "--all", "--passphrase-file", "phrase", "var/copy.age"),
    ("backup", "--all", "--passphrase-file", "phrase", "--into", "var/backups", "--keep-daily", "1"),
    ("restore", "--yes", "good.sqlite3"),
    ("restore", "--all", "--yes", "--passphrase-file", "phrase", "good.age"),
    ("upstream", "keygen", "var/new.key"),
    ("machine", "recording", "--save", "var/new.key"),
)
"""Those that write beside the ledger; what all others do as root is in `test_cli_as_root.py`."""


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_links_lead_nowhere(
    mcfd: Command, etc: Path, planted: tuple[tuple[str, str], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With links of one kind at a time where root's commands write: root's files keep owner, mode and content."""
    monkeypatch.chdir(mcfd.folder)
    (mcfd.folder / "phrase").write_text("six mots")
    mcfd.ok("keys", "create", "--nim", NIM)
    mcfd.ok("backup", "good.sqlite3")
    mcfd.ok("backup", "--all", "--passphrase-file", "phrase", "good.age")
    for command in COMMANDS:
        for name, target in planted:
            link = mcfd.ledger.parent / name
            if not link.is_symlink():
                if link.is_dir():
                    shutil.rmtree(link)
                link.unlink(missing_ok=True)
                link.symlink_to(mcfd.folder / target)
                os.chown(link, UNPRIVILEGED_UID, UNPRIVILEGED_UID, follow_symlinks=False)
        mcfd.run(*command)


def test_what_root_makes_is_the_owners_and_so_is_what_it_is_led_to(mcfd: Command, etc: Path) -> None:
    """The daemon can use it afterwards; a "backup" that is a link to what is root's alone is not read."""
    mcfd.ok("keys", "create", "--nim", NIM)
    mcfd.ok("tls", "init")
    mcfd.ok("backup", "--into", str(mcfd.ledger.parent / "backups"))
    assert {path.stat().st_uid for path in mcfd.ledger.parent.rglob("*")} == {UNPRIVILEGED_UID}
    link = mcfd.ledger.parent / "copy.sqlite3"
    link.symlink_to(etc / "shadow")
    done = mcfd.run("restore", "--yes", str(link))
    assert (done.returncode, "ermission" in done.stderr) == (1, True), done.stderr


def test_a_link_of_roots_to_the_folder_is_followed_as_its_owner(mcfd: Command, etc: Path) -> None:
    """What root makes is the owner's there too, and a folder of theirs beyond the link leads to nothing of root's."""
    home = mcfd.ledger.parent
    (mcfd.folder / "linked").symlink_to(home)
    mcfd.config.write_text(CONFIG.replace('"mcfd.sqlite3"', '"linked/mcfd.sqlite3"'))
    mcfd.ok("keys", "create", "--nim", NIM)
    mcfd.ok("tls", "init")
    mcfd.ok("backup", "--into", str(mcfd.folder / "linked/backups"))
    assert {path.stat().st_uid for path in home.rglob("*")} == {UNPRIVILEGED_UID}
    (mcfd.folder / "stick").symlink_to("linked/away")
    (home / "away").symlink_to(etc)
    assert mcfd.run("backup", "--into", str(mcfd.folder / "stick")).returncode != 0


def test_root_without_its_rights_writes_the_whole_box_onto_a_stick_of_others(mcfd: Command) -> None:
    """With what `stick-mcfd@.service` leaves to root: the stick's folder, and so the file on it, is another user's."""
    need("setpriv")
    stick, phrase = mcfd.folder / "stick", mcfd.folder / "phrase"
    phrase.write_text("six mots")
    stick.mkdir(mode=0o700)
    os.chown(stick, 1000, 1000)
    mcfd.ok("keys", "create", "--nim", NIM)
    rights = ("--bounding-set=-all,+setuid,+setgid,+dac_read_search", "--inh-caps=-all", "--no-new-privs")
    words = ("backup", "--all", "--passphrase-file", str(phrase), "--into", str(stick))
    subprocess.run(["setpriv", *rights, BIN / "mcfd", *words], env=mcfd.environ(), check=True)
    assert [(path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) for path in stick.iterdir()] == [(1000, 0o600)]


def test_a_private_folder_is_its_owners_alone_and_goes(mcfd: Command) -> None:
    """In the ledger's folder, 0700, the daemon's user's. One that a killed command has left is removed by the next one, not while it is used."""
    home = mcfd.ledger.parent
    left = home / f"{LEFT}old"
    left.mkdir()
    (left / "ledger").write_text("decrypted")
    for path in (left, left / "ledger"):
        os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    with private_folder(home) as first:
        assert not left.exists()
        assert (first.stat().st_uid, stat.S_IMODE(first.stat().st_mode)) == (UNPRIVILEGED_UID, 0o700)
        with private_folder(home) as second:
            assert first.exists()
            assert second != first
    assert [*home.iterdir()] == []


def test_the_next_start_removes_what_a_killed_command_has_left(tmp_path: Path) -> None:
    """Nobody has to restore once more for it."""
    with Shop(tmp_path) as shop:
        left = shop.ledger.parent / f"{LEFT}old"
        left.mkdir(mode=0o700)
        (left / "ledger").write_text("decrypted")
        shop.start()
        assert not left.exists()
