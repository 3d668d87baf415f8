"""Every command against who types it: what a person without a right to the box's files may do, and what root's and the daemon's user may."""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli.click_paths import path_of, paths
from support.cli.command import CONFIG, NIM, Command
from support.cli.table import ANYONE, TABLE

from daemon.cli import root

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")

OWNER, STRANGER = 65534, 65533


@pytest.fixture
def mcfd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """As the package lays it out: configuration for root and the daemon's group, ledger the daemon's, a key and a person in it."""
    with tempfile.TemporaryDirectory(prefix="mcfd-test-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for inside, owner, mode in (("etc", 0, 0o750), ("var", OWNER, 0o750), ("own", STRANGER, 0o700)):
            (folder / inside).mkdir(mode=mode)
            os.chown(folder / inside, owner, STRANGER if owner == STRANGER else OWNER)
        mcfd = Command(folder, CONFIG.replace('"mcfd.sqlite3"', f'"{folder}/var/mcfd.sqlite3"'))
        mcfd.config = mcfd.config.rename(folder / "etc/mcfd.toml")
        mcfd.config.chmod(0o640)
        os.chown(mcfd.config, 0, OWNER)
        mcfd.ledger = folder / "var/mcfd.sqlite3"
        mcfd.ok("keys", "create", "--nim", NIM)
        monkeypatch.chdir(folder)
        yield mcfd


def typed(mcfd: Command, user: int, commands: list[tuple[str, ...]]) -> list[tuple[int, str]]:
    """Exit code and stdout of each, typed by that user."""
    first = ("support.cli.other_user", "become", {"user": user})
    return [(done.returncode, done.stdout) for done in (mcfd.run(*command, first=first) for command in commands)]


def test_the_table_names_every_command() -> None:
    """And nothing that is not there: a new command gets its line here."""
    assert set(paths(root)) == {path_of(root, command) for command in TABLE}


@pytest.mark.long
def test_a_stranger_learns_nothing_and_changes_nothing(mcfd: Command) -> None:
    """What needs the box's files is refused without a word of them, and not a byte of them changes; the rest works."""
    before = {path: path.read_bytes() for path in mcfd.folder.rglob("*") if path.is_file()}
    for command, (code, text) in zip(TABLE, typed(mcfd, STRANGER, list(TABLE)), strict=True):
        if TABLE[command] == ANYONE:
            assert code == 0, command
        else:
            assert code != 0, command
            assert "ak_live_" not in text, command
            assert NIM not in text, command
    assert {path: path.read_bytes() for path in before} == before
    new = {path for path in mcfd.folder.rglob("*") if path.is_file()} - before.keys()
    assert {path.name for path in new if path.parent.name != "dossier"} == {"new.key"}


@pytest.mark.parametrize("user", [0, OWNER], ids=["root", "the daemon's user"])
def test_who_keeps_the_box_may(mcfd: Command, user: int) -> None:
    """What both type works for both, and the audit log says which of them it was."""
    commands: list[tuple[str, ...]] = [
        *(("config", "check"), ("keys", "list"), ("users", "list"), ("keys", "create", "--nim", NIM)),
        *(("tls", "init"), ("verify",), ("audit", "--json")),
    ]
    found = typed(mcfd, user, commands)
    assert [code for code, _ in found] == [0] * len(commands), found
    assert found[3][1].startswith("ak_live_")
    newest = [entry for entry in json.loads(found[-1][1])["entries"] if entry["action"] == "key.created"][-1]
    assert newest["actor"].startswith("shell:root" if user == 0 else "shell:nobody"), newest
