"""One process writes the ledger: the daemon that runs, which commands ask. Without one, a command has its lock (test_cli_as_root.py)."""

import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.cli.command import NIM, Command, audited
from support.cli.table import TABLE
from support.shop import Shop, invoice

from common.sockets import bind_unix
from daemon.store.sqlite.lock import LedgerLock

pytestmark = pytest.mark.long

MORE: tuple[tuple[str, ...], ...] = (
    ("users", "create", "awa", "--role", "seller", "--password-stdin"),
    ("users", "passwd", "awa", "--password-stdin"),
    ("backup", "--all", "box.age", "--passphrase-file", "phrase"),
    ("backup", "--into", ".", "--keep-daily", "1"),
    ("journal", "--from", "2020-01-01", "--output", "journal.csv"),
    ("machine", "recording", "--incidents"),
    ("tls", "init", "--force"),
    ("restore", "--all", "--yes", "box.age", "--passphrase-file", "phrase"),
)
BESIDE = {*(("run",), ("restore",), ("time", "repair"))}
"""Commands that are refused beside a daemon."""
QUESTIONS = {
    *("keys.create", "keys.revoke", "users.create", "users.passwd", "users.disable", "time.accept"),
    *("backup.note", "verify.note", "audit.note", "upstream.replay"),
}


class Watched(Command):
    """`typed` says how the ledger was opened to write: `locked` or `free`, for each time."""

    def typed(self, *command: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
        log = self.folder / "writes"
        log.write_text("")
        reason = ("--reason", "an") if command == ("time", "repair") else ()
        first = ("support.cli.ledger_watch", "watch", {"ledger": str(self.ledger), "log": str(log)})
        done = self.run(*command, *reason, stdin="un mot de passe\n", first=first)
        return done, log.read_text().split()


@contextmanager
def box(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Shop, Watched]]:
    monkeypatch.chdir(folder)
    (folder / "own").mkdir()
    (folder / "phrase").write_text("six mots\n")
    with Shop(folder) as shop:
        shop.start()
        assert shop.certify(invoice("F-1")).status_code == 200
        yield shop, Watched(folder, shop.config_file.read_text())


def test_beside_a_daemon_no_command_opens_the_ledger_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command of the table: what it changes, the daemon has written for it."""
    with box(tmp_path, monkeypatch) as (shop, mcfd):
        for command in (*TABLE, *MORE):
            done, writes = mcfd.typed(*command)
            assert writes == [], command
            if any(command[: len(beside)] == beside for beside in BESIDE):
                assert (done.returncode, done.stdout) == (3, ""), (command, done.stderr)
                assert f"is in use by another mcfd (process {shop.pid}); stop that one first" in done.stderr, command
        assert {event["operation"] for event in shop.events("command.done")} == QUESTIONS
        assert audited(mcfd, "user.disabled")
        assert mcfd.json("audit")["ok"]
        shop.use_key(mcfd.ok("keys", "create", "--nim", NIM).strip())
        assert shop.certify(invoice("F-2")).status_code == 200


def test_a_command_that_loses_the_daemon_says_so(tmp_path: Path) -> None:
    """The daemon is gone before it has answered: one line, exit 3; the next try, without a daemon, does it."""
    mcfd = Command(tmp_path)
    mcfd.ok("keys", "create", "--nim", NIM)
    control = tmp_path / "control"
    lock = LedgerLock.acquire(mcfd.ledger, control=control)
    with bind_unix(control) as listener, ThreadPoolExecutor(1) as daemon:
        query = daemon.submit(_lost, listener)
        text = mcfd.refused(3, "keys", "revoke", "1")
    lock.release()
    assert b'"key_id":1' in query.result()
    assert text.startswith("the daemon ended before it answered")
    mcfd.ok("keys", "revoke", "1")


def _lost(listener: socket.socket) -> bytes:
    listener.setblocking(True)
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as request:
        return request.readline()
