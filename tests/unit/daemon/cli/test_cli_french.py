"""No English word of ours or of click's on a French terminal: the help of every command, and what each says when it is used wrongly or
there is nothing yet."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import CONFIG

WALK = """
import contextlib, io, json, sys
from daemon.cli import main, root
import click

def walk(command, path):
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), (*path, name))

def said(*arguments):
    out = io.StringIO()
    sys.argv = ["mcfd", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
        main()
    return out.getvalue()

paths = list(walk(root, ()))
uses = [(*path, "--help") for path in paths]
uses += [(*path, "--nothing") for path in paths]
uses += [tuple(json.loads(line)) for line in sys.stdin]
print(json.dumps([[" ".join(use), said(*use)] for use in uses]))
"""
USES = (
    ("frobnicate",),
    ("keys", "create"),
    ("keys", "create", "--nim", "x"),
    ("keys", "create", "--nim", "EL02000015-1", "--role", "king"),
    ("keys", "create", "--nim", "EL02000015-1", "--expires", "never"),
    ("keys", "list"),
    ("keys", "revoke", "zero"),
    ("machine", "list"),
    ("machine", "info"),
    ("machine", "info", "EL02000099"),
    ("machine", "settle"),
    ("machine", "recording"),
    ("report", "x"),
    ("report", "z", "7"),
    ("report", "a", "--from", "tomorrow"),
    ("journal",),
    ("journal", "--state", "lost"),
    ("verify",),
    ("backup",),
    ("backup", "--all", "x.age"),
    ("restore", "nothing.sqlite3"),
    ("upstream", "status"),
    ("upstream", "test"),
    ("webhook", "test"),
    ("tls", "show"),
    ("audit",),
    ("users", "list"),
    ("config", "check"),
)
"""Wrong uses, and commands on a box that knows nothing yet."""

OURS = re.compile(
    r"\b(the|this|that|with|without|which|when|until|every|again|nothing|cannot|needed|missing|there|only|must|has|have|been|was|were|its|"
    r"commands|exit|required|default|error|try|invalid|such|command)\b",
    re.IGNORECASE,
)
"""Words that every English sentence of ours or of click's has one of, and no French one."""
NOT_WORDS = re.compile(r"`[^`]*`|--[\w-]+|/\S+|\S+\.\w{2,}|\[[^\]]*\]|«[^»]*»")
"""Options, paths, what stands in code, and choices are the same in every language."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Each use of the command line and what it says, in one process."""
    folder = tmp_path_factory.mktemp("french")
    (folder / "mcfd.toml").write_text(CONFIG)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MCFD_", "LC_", "LANG"))}
    done = subprocess.run(
        [sys.executable, "-c", WALK],
        input="".join(json.dumps(use) + "\n" for use in USES),
        capture_output=True, text=True, timeout=120, check=False, cwd=folder,
        env={**kept, "LC_ALL": "fr_FR.UTF-8", "MCFD_CONFIG": str(folder / "mcfd.toml"), "COLUMNS": "100"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(use, text) for use, text in json.loads(done.stdout)]


def english(text: str) -> list[str]:
    """The lines with an English word; examples are commands."""
    plain = text.partition("Exemples\N{NO-BREAK SPACE}:")[0]
    return [line for line in plain.splitlines() if OURS.search(NOT_WORDS.sub(" ", line))]


def test_every_command_speaks_french(said: list[tuple[str, str]]) -> None:
    """Help, wrong use, and a box that knows nothing yet."""
    assert len(said) > 100
    wrong = {use: lines for use, text in said if (lines := english(text))}
    assert wrong == {}


def test_every_complaint_says_whose_it_is(said: list[tuple[str, str]]) -> None:
    """`mcfd:` stands in front of each, and none is silent."""
    for use, text in said:
        if use.endswith("--nothing") or use.split()[0] == "frobnicate":
            assert re.search(r"^mcfd: ", text, re.MULTILINE), (use, text)


def test_an_english_sentence_would_be_seen() -> None:
    """The check can fail."""
    assert english("mcfd: no ledger yet at /x; it is made when needed")
    assert Path(__file__).name not in english(Path(__file__).name)
