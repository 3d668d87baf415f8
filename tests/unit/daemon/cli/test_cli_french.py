"""No English word of ours or of click's on a French terminal, in help, on wrong use, or where there is nothing yet."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from support.cli.command import CONFIG
from support.nursery import environment

WALK = """
import contextlib, io, json, sys
from support.nursery import cheapen
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

cheapen()
paths = list(walk(root, ())) if "walk" in sys.argv else ()
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
    ("machine", "take-over", "EL02000015-1", "--reason", "x"),
    ("machine", "take-back", "EL02000015-1"),
    ("machine", "recording"),
    ("report", "x"),
    ("report", "z", "7"),
    ("report", "a", "--from", "tomorrow"),
    ("journal",),
    ("journal", "--state", "lost"),
    ("journal", "--state"),
    ("journal", "--sta", "x"),
    ("journal", "x", "y"),
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
    r"commands|exit|directory|refused|failed|attempts|connection|written|read|damaged|unknown|device|running|required|default|error|try|invalid|such|command|name|number|text|integer)\b",
    re.IGNORECASE,
)
"""Words that every English sentence of ours or of click's has one of, and no French one."""
NOT_WORDS = re.compile(r"'\w+'|\(\w+Error: [^)]*\)|`[^`]*`|--[\w-]+|/\S+|\S+\.\w{2,}|\[[^\]|]*\|[^\]]*\]|«[^»]*»")
"""Options, paths, what stands in code, choices and what a library says of a network are the same in every language."""


def output_of(folder: Path, uses: Iterable[tuple[str, ...]], *arguments: str) -> list[tuple[str, str]]:
    """In one process."""
    variables = {name: value for name, value in environment().items() if not name.startswith(("MCFD_", "LC_", "LANG"))}
    done = subprocess.run(
        [sys.executable, "-c", WALK, *arguments],
        input="".join(json.dumps(use) + "\n" for use in uses),
        capture_output=True, text=True, timeout=120, check=False, cwd=folder,
        env={
            **variables, "LC_ALL": "fr_FR.UTF-8", "COLUMNS": "100",
            "MCFD_CONFIG": str(folder / "mcfd.toml"), "MCFD_SERVER_PORT": "1",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(use, text) for use, text in json.loads(done.stdout)]


def english(text: str) -> list[str]:
    """The lines with an English word; examples are commands."""
    plain = text.partition("Exemples\N{NO-BREAK SPACE}:")[0]
    return [line for line in plain.splitlines() if OURS.search(NOT_WORDS.sub(" ", line))]


def test_every_command_speaks_french(tmp_path: Path) -> None:
    """Help, wrong use, and a box that knows nothing yet. `mcfd:` stands in front of each complaint, and none is silent."""
    (tmp_path / "mcfd.toml").write_text(CONFIG)
    usage_texts = output_of(tmp_path, USES, "walk")
    assert len(usage_texts) > 100
    wrong = {use: lines for use, text in usage_texts if (lines := english(text))}
    assert wrong == {}
    for use, text in usage_texts:
        if use.endswith("--nothing") or use.split()[0] == "frobnicate":
            assert re.search(r"^mcfd: ", text, re.MULTILINE), (use, text)
