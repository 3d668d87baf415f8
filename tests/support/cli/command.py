"""`mcfd …` as a process of its own, as a shop or a script runs it."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.nursery import First, warm
from support.ports import free_port
from support.shop import COMMAND_SECONDS, run_program

NIM = "EL02000015-1"
CONFIG = f"""
[storage]
path = "mcfd.sqlite3"

[[machine]]
nim = "{NIM}"
port = "machine-{NIM}"
"""


class Command:
    """`run` on the configuration in `folder`; English by default, and no variables of the developer's. Where the configuration
    names no port, there is one of its own: on the usual one another test's box may answer, which has a machine of the same NIM."""

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        self.folder = folder
        self.config = folder / "mcfd.toml"
        self.ledger = folder / "mcfd.sqlite3"
        self.config.write_text(config)
        self._port = {} if re.search(r"^port = \d", config, re.MULTILINE) else {"MCFD_SERVER_PORT": str(free_port())}

    def environ(self, **more: str) -> dict[str, str]:
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("MCFD_", "LC_", "LANG"))}
        return {**variables, **self._port, "LC_ALL": "en_US.UTF-8", "MCFD_CONFIG": str(self.config), **more}

    def run(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        first: First | None = None,
    ) -> subprocess.CompletedProcess[str]:
        return run_program("mcfd", [*arguments], self.environ(**(env or {})), stdin=stdin, first=first)

    def at_terminal(self, typed: bytes, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        """With a terminal as its stdin, at which somebody has typed ahead."""
        nursery = warm()
        assert nursery
        leader, follower = os.openpty()
        try:
            os.write(leader, typed)
            terminal = Path(os.ttyname(follower))
            return nursery.run("mcfd", [*arguments], self.environ(**env), stdin=terminal, timeout=COMMAND_SECONDS)
        finally:
            os.close(follower)
            os.close(leader)

    def ok(self, *arguments: str) -> str:
        """Its stdout, when it ends with 0."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def refused(self, code: int, *arguments: str) -> str:
        """The one line it says when it ends with `code`; nothing goes to stdout."""
        done = self.run(*arguments)
        assert done.returncode == code, done.stdout + done.stderr
        assert done.stdout == ""
        assert done.stderr.startswith("mcfd: ")
        assert done.stderr.count("\n") == 1
        return done.stderr.removeprefix("mcfd: ").rstrip("\n")


def terminal_output(command: Sequence[str], env: Mapping[str, str], lines: Sequence[str] = ()) -> tuple[int, str]:
    """Exit code, and what a terminal shows while each line is typed after a prompt that ends in a colon."""
    leader, follower = os.openpty()
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    text, waiting = b"", list(lines)
    try:
        while piece := os.read(leader, 65_536):
            text += piece
            if waiting and text.endswith(b": "):
                os.write(leader, waiting.pop(0).encode() + b"\n")
    except OSError:  # the command has ended, and its terminal with it
        pass
    os.close(leader)
    return process.wait(60), text.decode().replace("\r\n", "\n")


def limit_files(size: int) -> None:
    """In a process of its own: no file grows beyond `size` bytes, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def audited(mcfd: Command, action: str) -> list[dict[str, Any]]:
    """The entries of that action in an audit log that is whole, oldest first; each by the user who runs the tests, from no address."""
    entries = mcfd.json("audit", "--limit", "1000")
    assert entries["ok"]
    found = [entry for entry in entries["entries"] if entry["action"] == action]
    assert all(entry["actor"].startswith("shell:") and not entry["address"] for entry in found)
    return found
