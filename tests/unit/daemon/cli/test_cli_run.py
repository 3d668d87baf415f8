import os
import socket
from pathlib import Path

import pytest
from support.cli.command import CONFIG, NIM, Command


def test_a_port_that_is_taken(tmp_path):
    """Exit 3, and one line with the address and why."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = Command(tmp_path, f"[server]\nport = {port}\n{CONFIG}").run("run")
    assert done.returncode == 3
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in done.stderr


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_ledger_that_is_no_file(tmp_path, make):
    """A folder, or a pipe, which SQLite would open and wait for: the start and the commands that read say so, and where."""
    box = Command(tmp_path)
    make(box.ledger)
    done = box.run("run")
    assert done.returncode == 3
    assert f"{box.ledger}: it is not a file" in done.stderr
    assert f"{box.ledger}: it is not a file" in box.refused(3, "keys", "list")
    assert f"{box.ledger}: it is not a file" in box.refused(3, "restore", str(box.config), "--yes")
    done = box.run("verify")
    assert done.returncode == 1
    assert f"{box.ledger}: it is not a file" in done.stderr


def test_a_ledger_that_is_a_link_to_itself(tmp_path):
    """One line too."""
    box = Command(tmp_path)
    box.ledger.symlink_to(box.ledger)
    done = box.run("run")
    assert done.returncode == 3
    assert f"{box.ledger} cannot be made (a link that must not be followed)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pipe_in_the_place_of_the_mark_of_commits(tmp_path):
    """The mark is as good as missing; nothing waits for it."""
    box = Command(tmp_path)
    box.ok("keys", "create", "--nim", NIM)
    mark = box.ledger.with_name(f"{box.ledger.name}.commits")
    mark.unlink()
    os.mkfifo(mark)
    box.ok("keys", "create", "--nim", NIM)
    assert "all is right" in box.ok("verify")
