"""`backup --all` and `restore --all`: a dead box, from its encrypted file to the same box again."""

import json
import os
import stat
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.cli.command import CONFIG, NIM, Command, audited
from support.ledgers.ledger import Till, opened, opened_till
from support.tools import folder_for_all

from daemon.core.clock import DAY
from daemon.doctor.ledger import check_away
from daemon.store.tables.people import create_person
from daemon.whole_box.sealed import new_identity
from daemon.whole_box.sealed import opened as unsealed

MORE = """
[server]
tls = "internal"

[upstream]
kind = "https"
url = "https://hq.example/closures"
secret_file = "credentials/upstream.secret"
"""
SECRET = "whsec_" + "A" * 40


@pytest.fixture
async def box(tmp_path: Path) -> Command:
    """A box in use: two closures, a person, an authority, a secret."""
    folder = tmp_path / "old"
    (folder / "credentials").mkdir(parents=True)
    (folder / "credentials" / "upstream.secret").write_text(SECRET + "\n")
    (folder / "passphrase").write_text("six mots\n")
    box = Command(folder, CONFIG + MORE)
    async with opened_till(box.ledger) as (store, till):
        for _ in range(2):
            await till.sell()
            await till.close()
        await store.ledger.write(create_person, "awa", "manager", "un mot de passe", at=till.at)
    box.ok("tls", "init")
    return box


def test_the_whole_box_comes_back(box: Command, tmp_path: Path) -> None:
    """Ledger, people, configuration, secrets and authority; on a box in use with `--yes`, and what was there stands aside."""
    file, phrase = tmp_path / "stick.age", ("--passphrase-file", str(box.folder / "passphrase"))
    content = box.json("backup", "--all", str(file), *phrase)
    assert (content["records"], content["closures"]) == (2, 2)
    assert SECRET.encode() not in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (tmp_path / "new").mkdir()
    new = Command(tmp_path / "new")
    new.config.unlink()
    content = new.json("restore", "--all", str(file), "--config", str(new.config), *phrase, "--yes")
    assert (content["records"], content["aside"]) == (2, None)
    tls = ("tls/ca.pem", "tls/ca.key", "tls/server.pem")
    for name in ("mcfd.toml", "credentials/upstream.secret", *tls, "backup.key"):
        assert (new.folder / name).read_bytes() == (box.folder / name).read_bytes(), name
    assert stat.S_IMODE((new.folder / "tls/ca.key").stat().st_mode) == 0o600
    assert new.ok("verify")
    assert [person["name"] for person in new.json("users", "list")] == ["awa"]
    assert len(audited(new, "ledger.restored")) == 1
    assert len(audited(box, "backup.taken")) == 1
    assert box.json("restore", "--all", str(file), *phrase, "--yes", "--keep-newer")["is_unchanged"]
    refused = box.run("restore", "--all", str(file), *phrase)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert Path(box.json("restore", "--all", str(file), *phrase, "--yes")["aside"]).exists()
    assert len(list(box.folder.glob("mcfd.toml.replaced-*"))) == 2


async def test_it_says_which_certifications_the_copy_of_the_whole_box_lacks(box: Command, tmp_path: Path) -> None:
    """Before the ledger is replaced."""
    file, phrase = tmp_path / "stick.age", ("--passphrase-file", str(box.folder / "passphrase"))
    box.ok("backup", "--all", str(file), *phrase)
    async with opened(box.ledger) as store:
        number = (await (await Till.of(store)).sell()).number
    done = box.run("restore", "--all", str(file), *phrase)
    assert f"{file} lacks invoice {number} of the ledger in place" in done.stderr
    assert box.json("verify")["records"] == 3


def test_a_key_opens_what_the_nightly_one_closed(box: Command, tmp_path: Path) -> None:
    """The box itself cannot open what it made for `recipients`; a wrong key or file changes nothing."""
    identity, recipient = new_identity()
    (tmp_path / "id").write_text(identity)
    (tmp_path / "other").write_text(new_identity()[0])
    assert box.ok("backup", "--all", "--into", str(tmp_path / "b"), "--when-configured") == ""
    box.config.write_text(box.config.read_text() + f'\n[backup]\nrecipients = ["{recipient}"]\n')
    (tmp_path / "b").mkdir()
    (tmp_path / "b/mcfd-20200101T000000Z.box.age.part").touch()  # of one that was killed
    box.ok("backup", "--all", "--into", str(tmp_path / "b"), "--keep-daily", "2", "--when-configured")
    (file,) = (tmp_path / "b").iterdir()
    signed = box.ok("backup", "--all", str(tmp_path / "c"))
    assert f".{signed.rpartition('fingerprint: ')[2][:9]}.box.age" in file.name
    before = box.config.read_bytes()
    for arguments in ((), ("--identity", str(tmp_path / "other"))):
        assert box.run("restore", "--all", str(file), "--yes", *arguments).returncode in {1, 2}
    assert box.run("restore", "--all", str(box.ledger), "--yes").returncode == 1
    assert box.config.read_bytes() == before
    with (
        file.open("rb") as source,
        unsealed(source, identity=identity) as plain,
        tarfile.open(fileobj=plain, mode="r|") as archive,
    ):
        names = archive.getnames()
    assert {"manifest.json", "mcfd.toml", "ledger.sqlite3", "files/upstream.secret_file", "authority/ca.key"} <= set(
        names
    )
    assert box.json("restore", "--all", str(file), "--yes", "--identity", str(tmp_path / "id"))["closures"] == 2


def test_a_passphrase_from_a_pipe(box: Command, tmp_path: Path) -> None:
    """As of a password manager, which leaves it in no file."""
    file, phrase = tmp_path / "stick.age", ("--passphrase-file", str(tmp_path / "pipe"))
    os.mkfifo(tmp_path / "pipe")
    for command in (("backup", "--all", str(file)), ("restore", "--all", str(file), "--yes")):
        with ThreadPoolExecutor(1) as manager:
            manager.submit((tmp_path / "pipe").write_text, "six mots\n")
            box.ok(*command, *phrase)


def test_what_is_missing_is_told(box: Command, tmp_path: Path) -> None:
    """The authority's key may be kept away from the box; a missing secret is named by its path."""
    (box.folder / "tls/ca.key").unlink()
    (box.folder / "credentials/upstream.secret").unlink()
    done = box.run("backup", "--all", str(tmp_path / "f"), "--passphrase-file", str(box.folder / "passphrase"))
    assert done.returncode == 0, done.stderr
    assert "tls/ca.key" in done.stderr
    assert "upstream.secret" in done.stderr
    assert NIM in json.dumps(box.json("machine", "list"))


def test_doctor_reminds_of_the_copy_on_another_disk(box: Command) -> None:
    """A copy beside the ledger dies with it and does not count; one on another disk does, for a week."""
    box.ok("keys", "create", "--nim", NIM)
    found = {each["check"]: each for each in json.loads(box.run("doctor", "--json").stdout)["checks"]}
    assert (found["backup"]["state"], "it is new" in found["backup"]["found"]) == ("ok", True)
    assert check_away(0, 0, 8 * DAY).state == "warn"
    assert check_away(DAY, 0, 8 * DAY).state == "ok"
    assert check_away(DAY, 0, 10 * DAY).state == "warn"
    for of_a_clock_ahead in ((5000 * DAY, 0), (0, 5000 * DAY)):
        assert check_away(*of_a_clock_ahead, 8 * DAY).state == "warn"
    disks = (Path("/dev/shm"), Path("/var/tmp"))  # noqa: S108  one of them is another file system than the ledger's
    elsewhere = next((disk for disk in disks if disk.stat().st_dev != box.ledger.stat().st_dev), None)
    if elsewhere is None:
        pytest.skip("there is one disk only")
    target = elsewhere / f"mcfd-test-{box.folder.parent.name}.age"
    try:
        box.ok("backup", "--all", str(target), "--passphrase-file", str(box.folder / "passphrase"))
    finally:
        target.unlink(missing_ok=True)
    found = {each["check"]: each for each in json.loads(box.run("doctor", "--json").stdout)["checks"]}
    assert "to another disk today" in found["backup"]["found"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_root_puts_back_the_daemon_can_use(box: Command, tmp_path: Path) -> None:
    """Ledger and authority are the daemon's, and it reads the configuration through the group of its folder."""
    daemon = 65_534
    file, phrase = tmp_path / "stick.age", ("--passphrase-file", str(box.folder / "passphrase"))
    box.ok("backup", "--all", str(file), *phrase)
    with folder_for_all() as new:
        os.chown(new, daemon, daemon)
        done = box.run("restore", "--all", str(file), "--config", str(new / "mcfd.toml"), *phrase, "--yes")
        assert done.returncode == 0, done.stderr
        for name in ("mcfd.sqlite3", "tls", "tls/ca.key", "tls/server.pem", "backup.key"):
            assert (new / name).stat().st_uid == daemon, name
        config = (new / "mcfd.toml").stat()
    assert (config.st_gid, stat.S_IMODE(config.st_mode)) == (daemon, 0o640)
