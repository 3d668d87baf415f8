"""Commands about the ledger on a disk that is full, nearly, or read-only: what they say is what became of it."""

import os
import shutil
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.box.mounts import fill, read_only, small_disk
from support.cli.command import CONFIG, Command, audited
from support.ledgers.ledger import Till, invoice, opened, opened_till, query, tamper

from daemon.owner import LEFT

UNAVAILABLE = 3
UNPRIVILEGED_UID = 65534


def command_on(folder: Path, disk: Path) -> Command:
    """A box in `folder` whose ledger is on the disk, mounted in it."""
    box = Command(folder, CONFIG.replace('"mcfd.sqlite3"', '"disk/mcfd.sqlite3"'))
    box.ledger = disk / "mcfd.sqlite3"
    return box


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Command]:
    """A box whose ledger, of one closure, is on a small disk of its own."""
    with small_disk(tmp_path / "disk", 8) as disk:
        box = command_on(tmp_path, disk)
        async with opened_till(box.ledger) as (_, till):
            await till.sell()
            await till.close()
        yield box


def test_verify_on_a_full_disk_says_that_it_is_full(box: Command) -> None:
    """Nothing is wrong with the ledger: exit 3, not 1, and no "problem"; with room again it is verified."""
    filler = fill(box.ledger.parent)
    done = box.run("verify")
    assert (done.returncode, "full" in done.stderr, "problem" in done.stdout + done.stderr) == (3, True, False), done
    filler.unlink()
    assert box.ok("verify")


@pytest.mark.parametrize("beyond", [-65_536, 0, 4096, 8192, 12_288, 16_384, 24_576, 32_768, 65_536])
def test_a_restore_has_done_all_or_nothing_whatever_room_there_is(box: Command, tmp_path: Path, beyond: int) -> None:
    """Exit 0 and the ledger was replaced, with its entry in the audit log; or exit 3, and it is the one that was there."""
    copy = tmp_path / "copy.sqlite3"
    box.ok("backup", str(copy))
    before = box.ledger.stat().st_ino
    filler = fill(box.ledger.parent, leave=copy.stat().st_size + beyond)
    done = box.run("restore", str(copy), "--yes")
    filler.unlink()
    is_replaced = box.ledger.stat().st_ino != before
    assert done.returncode == (0 if is_replaced else UNAVAILABLE), (done.stdout, done.stderr)
    assert len(audited(box, "ledger.restored")) == is_replaced
    assert box.ok("verify")


@pytest.mark.parametrize("beyond", [0, 65_536, 262_144, *range(327_680, 425_984, 16_384), 2_097_152])
async def test_a_restore_that_takes_rows_over_takes_all_or_none(box: Command, tmp_path: Path, beyond: int) -> None:
    """A disk that is full is no page that cannot be read: nothing is left out for want of room."""
    copy = tmp_path / "copy.sqlite3"
    box.ok("backup", str(copy))
    async with opened_till(box.ledger) as (_, till):
        for number in range(800):
            await till.certify(invoice(f"F-{number}"), key=f"{number}".encode())
    tamper(box.ledger, "UPDATE certification SET payload = x'00' WHERE seq = 1")
    before = box.ledger.stat().st_ino
    filler = fill(box.ledger.parent, leave=copy.stat().st_size + beyond)
    done = box.run("restore", str(copy), "--yes", "--keep-newer")
    filler.unlink()
    is_replaced = box.ledger.stat().st_ino != before
    assert done.returncode == (0 if is_replaced else UNAVAILABLE), (done.stdout, done.stderr)
    is_full = "full" in done.stderr and "cannot be taken over" not in done.stderr
    assert is_full != is_replaced, done.stderr
    assert query(box.ledger, "SELECT count(*) FROM certification, idempotency") == [(801 * 800,)]
    assert box.run("verify").returncode == (not is_replaced)


def test_a_certificate_for_tills_may_be_read_by_all(box: Command) -> None:
    file = box.ledger.parent / "mcfd-ca.pem"
    box.ok("tls", "init")
    box.ok("tls", "export-ca", str(file))
    assert (stat.S_IMODE(file.stat().st_mode), file.read_bytes()) == (0o644, (file.parent / "tls/ca.pem").read_bytes())


@pytest.mark.parametrize(
    "words",
    [
        ("backup",),
        ("backup", "--into"),
        ("backup", "--all"),
        ("journal", "--output"),
        ("tls", "export-ca"),
        ("upstream", "keygen"),
        ("homologation", "make", "--into"),
    ],
    ids=" ".join,
)
def test_a_file_that_finds_no_room_on_a_stick_is_named(box: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Exit 3 and one sentence for every command: the stick is full, which says nothing about the ledger. Nothing is left on it."""
    phrase = tmp_path / "phrase"
    phrase.write_text("six mots")
    box.ok("tls", "init")
    with small_disk(tmp_path / "stick", 1) as stick:
        fill(stick)
        more = ("--passphrase-file", str(phrase)) if "--all" in words else ()
        message = box.refused(UNAVAILABLE, *words, *more, str(stick / "new"))
        assert message.startswith(f"{stick}/new")
        assert "cannot be written: " in message
        left = [path.name for path in stick.rglob("*") if path.is_file()]
        assert left == ["filler"]


@pytest.fixture
def stick(folder: Path) -> Path:
    """Of root's alone; beside it a passphrase."""
    (folder / "phrase").write_text("six mots")
    (folder / "stick").mkdir(mode=0o700)
    return folder / "stick"


def copied_to(box: Command, stick: Path, *names: str, remark: str = "") -> None:
    """The ledger by itself, and the whole box."""
    how = {"plain": (), "whole": whole(stick), "sound.age": whole(stick)}
    for name in names:
        done = box.run("backup", *how[name], str(stick / name))
        assert (done.returncode, remark in done.stderr) == (0, True), done.stderr


def whole(stick: Path) -> tuple[str, ...]:
    return ("--all", "--passphrase-file", str(stick.with_name("phrase")))


def give_away(disk: Path) -> None:
    for path in (disk, *disk.rglob("*")):
        os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID)


@pytest.mark.skipif(os.geteuid() != 0, reason="the stick is root's, the ledger another user's")
async def test_a_full_disk_is_copied_to_a_stick(folder: Path, stick: Path) -> None:
    """When a copy is needed most: the ledger's disk has no room for one, and the stick, where the daemon's user may not write, has."""
    with small_disk(folder / "disk", 8) as disk:
        box = command_on(folder, disk)
        async with opened(box.ledger) as store:
            await (await Till.of(store)).sell()
        copied_to(box, stick, "sound.age")  # makes the key that signs
        give_away(disk)
        fill(disk, leave=65_536)
        copied_to(box, stick, "plain", "whole")
        assert not [*disk.glob(f"{LEFT}*")]
    assert query(stick / "plain", "SELECT count(*) FROM certification") == [(1,)]


@pytest.mark.parametrize("end", ["stopped", "killed"])
async def test_a_ledger_on_a_read_only_disk_is_read_and_copied_to_another(folder: Path, stick: Path, end: str) -> None:
    """Verified, shown, and copied whole by root, also with the last sale in SQLite's write-ahead log."""
    with small_disk(folder / "disk", 8) as disk:
        box = command_on(folder, disk)
        async with opened(box.ledger) as store:
            await (await Till.of(store)).sell()
        copied_to(box, stick, "sound.age")  # makes the key that signs
        if end == "killed":
            async with opened(box.ledger) as store:
                await (await Till.of(store)).certify(invoice("F-2"))
                shutil.copytree(disk, folder / "left")
            shutil.copytree(folder / "left", disk, dirs_exist_ok=True)
        give_away(disk)
        with read_only(disk):
            assert "all is right" in box.ok("verify")
            box.ok("journal")
            copied_to(box, stick, "plain", "whole", remark="not in the audit log")
    assert query(stick / "plain", "SELECT count(*) FROM certification") == [(1 + (end == "killed"),)]
