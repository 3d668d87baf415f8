"""What root types, it does with files that are not root's only as their owner: not one is opened, moved or given away as root."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from support.cli.click_paths import path_of
from support.cli.command import CONFIG, NIM, Command
from support.cli.table import TABLE
from support.ledgers.ledger import opened_till
from support.shop import Machine

from bridge.recording.recording import SENT, LineEvent
from daemon.cli import root
from daemon.recording.writer import LineFiles, RecordingPlace
from daemon.settings import Settings
from daemon.settings.model import Storage
from daemon.settings.source import AUTHORITY, KEY, RECORD, JoinedHeadquarters
from daemon.upstream.options import generate

pytestmark = [pytest.mark.long, pytest.mark.skipif(os.geteuid() != 0, reason="only root can be misled")]

UNPRIVILEGED_UID = 65534
PHRASE = ("--passphrase-file", "phrase")
RECEIVERS = """
[upstream]
kind = "https"
url = "https://127.0.0.1:9/closures"
secret_file = "secret"

[[webhook]]
name = "till"
url = "https://127.0.0.1:9/events"
secret_file = "secret"
events = ["closure.created"]
"""
NO_FILES = {
    ("config", "doc"): "prints what is in the program",
    ("logs",): "reads what journald or a file given to it says, and writes nothing",
    ("machine", "ports"): "looks at the ports",
    ("poster",): "prints what is in the program",
    ("homologation", "make"): "writes where whoever calls says",
    ("homologation", "run"): "asks the daemon as a till does",
    ("upgrade",): "runs the package's own script",
    ("version",): "prints what is in the program",
}
WITH_FILES: tuple[tuple[str, ...], ...] = (
    ("setup", "--yes", "--network", "https", "--port", "line", "--ledger", "var/new/mcfd.sqlite3", "--config", "new.toml"),
    ("machine", "probe", "line", "--folder", "var/backups", "--write"),
    ("upstream", "keygen", "var/backups/new.key"),
    ("archive", "2020", "--into", "var/backups"),
    ("backup", "good.sqlite3"),
    ("backup", "var/backups/copy.sqlite3"),
    ("backup", "--into", "var/backups", "--keep-daily", "1"),
    ("backup", "--all", "good.age", *PHRASE),
    ("backup", "--all", "var/backups/copy.age", *PHRASE),
    ("backup", "--all", "--into", "var/backups", "--keep-daily", "1", *PHRASE),
    ("restore", "--yes", "good.sqlite3"),
    ("restore", "--yes", "var/backups/copy.sqlite3"),
    ("restore", "--all", "--yes", "good.age", *PHRASE),
    ("restore", "--all", "--yes", "var/backups/copy.age", *PHRASE),
)  # fmt: skip
"""In the place of what the table of all commands types."""
PLAIN = {*NO_FILES, *(path_of(root, command) for command in WITH_FILES)}
TYPED: tuple[tuple[str, ...], ...] = (
    *(command for command in TABLE if path_of(root, command) not in PLAIN),
    ("doctor", "--disk", "var/backups"),
    ("machine", "recording", "--incidents"),
    ("machine", "recording", "--raw", "--save", "var/backups/line.rec"),
    ("journal", "--from", "2020-01-01", "--output", "var/backups/journal.csv"),
    ("tls", "init", "--force"),
    ("tls", "export-ca", "var/backups/ca.pem"),
    *WITH_FILES,
)
LEAVES = ({0}, {1, 3})
"""Exit codes of a command that did its work, and of one that found something wrong: nobody receives, a machine that is not set up."""
FOUND_WRONG = {
    *(command for command in TYPED if command[:2] in (("machine", "take-over"), ("machine", "take-back"))),
    ("machine", "last-z", NIM, "1", "--yes"),  # the ledger knows its last Z
    ("archive", "2020", "--into", "var/backups"),
    ("doctor",),
    ("run",),
    ("time", "repair", "--reason", "x"),
    ("upstream", "test"),
    ("upstream", "join", "nonsense"),
    ("upstream", "leave"),
    ("webhook", "test"),
}


@pytest.fixture
async def mcfd(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Command]:
    """A box in use whose ledger's folder is the daemon's; configuration and secrets are root's."""
    (folder / "phrase").write_text("six mots\n")
    (folder / "secret").write_text("whsec_" + "A" * 40)
    (folder / "var" / "backups").mkdir(parents=True)
    (folder / "var" / "new").mkdir()
    mcfd = Command(
        folder, CONFIG.replace('"mcfd.sqlite3"', '"var/mcfd.sqlite3"').replace(f"machine-{NIM}", "line") + RECEIVERS
    )
    mcfd.ledger = folder / "var/mcfd.sqlite3"
    async with opened_till(mcfd.ledger) as (store, till):
        await till.sell()
        await till.close()
        await till.sell()
        await store.ledger.begin_outage(
            till.book, "disk", at=till.at, lasted=0, refused=True, incident="", is_over=False
        )
    files = LineFiles(RecordingPlace(folder / "var/recordings/EL02000015", 80_000, 0, {"nim": NIM}))
    files.write([LineEvent(1, SENT, b"\x01frame\x03")], "")
    files.close()
    for path in ((folder / "var"), *(folder / "var").rglob("*")):
        os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    machine = Machine(folder).start()
    (folder / "line").symlink_to(machine.link)
    monkeypatch.chdir(folder)
    yield mcfd
    machine.kill()


def test_root_leaves_the_files_of_others_alone(mcfd: Command) -> None:
    """As root no file on whose way somebody else's folder or link lies is touched; who opens the ledger to write has its lock."""
    wrong, wrote = [], set()
    for command in TYPED:
        code, text, result = as_root(mcfd, *command)
        if result or code not in LEAVES[command in FOUND_WRONG]:
            wrong.append((command, code, text, result))
        if writes := (mcfd.folder / "writes").read_text().split():
            wrote.add(command[0])
            assert "free" not in writes, command
    assert wrong == []
    assert wrote == {"keys", "users", "time", "tls", "upstream", "verify", "backup", "restore"}
    theirs = [path for path in (mcfd.folder / "var").rglob("*") if path.lstat().st_uid != UNPRIVILEGED_UID]
    assert theirs == []


def test_root_leaves_the_files_of_a_joined_headquarters_alone(mcfd: Command) -> None:
    """They are the daemon's, which joins from its page: key and authority are read as its user, whoever checks them or sends with them."""
    home = Settings(storage=Storage(path=mcfd.ledger)).joined_home
    home.mkdir()
    joined = JoinedHeadquarters(kind="https", url="https://127.0.0.1:9/closures", headquarters="https://127.0.0.1:9")
    (home / RECORD).write_bytes(msgspec.json.encode(joined))
    generate(home / KEY)
    (home / AUTHORITY).write_text("none")
    for path in (home, *home.iterdir()):
        os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    mcfd.config.write_text(mcfd.config.read_text().replace(RECEIVERS, ""))
    for command in (
        ("doctor",),
        ("config", "check"),
        ("upstream", "status"),
        ("upstream", "test"),
        ("backup", "--all", "j.age", *PHRASE),
    ):
        assert as_root(mcfd, *command)[2] == [], command


def as_root(mcfd: Command, *command: str) -> tuple[int, str, list[str]]:
    """Exit code, what it said, and what was seen (`support.cli.root_watch`)."""
    result = mcfd.folder / "told"
    result.write_text("")
    (mcfd.folder / "writes").write_text("")
    files = {"expected": str(result), "ledger": str(mcfd.ledger), "log": str(mcfd.folder / "writes")}
    first = ("support.cli.ledger_watch", "watch_as_root", files)
    done = mcfd.run(*command, stdin="un mot de passe\n", first=first)
    return done.returncode, done.stdout + done.stderr, sorted(set(result.read_text().splitlines()))
