"""No English word of ours or of click's on a French terminal: the help of every command, and what each says when it is used wrongly or
there is nothing yet."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.cli.command import CONFIG
from support.ledgers.ledger import Till, invoice, opened
from support.nursery import environment

from daemon.core.ledger.entries import CashMove
from daemon.store.tables.people import create_person

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
    ("outages",),
    ("outages", "1"),
    ("outages", "--reference", "x"),
    ("outages", "--notified", "distributor"),
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
    r"commands|exit|directory|refused|failed|attempts|connection|written|read|damaged|unknown|device|running|required|default|error|try|invalid|such|command)\b",
    re.IGNORECASE,
)
"""Words that every English sentence of ours or of click's has one of, and no French one."""
NOT_WORDS = re.compile(r"'\w+'|\(\w+Error: [^)]*\)|`[^`]*`|--[\w-]+|/\S+|\S+\.\w{2,}|\[[^\]]*\]|«[^»]*»")
"""Options, paths, what stands in code, choices and what a library says of a network are the same in every language."""


RECEIVERS = """
[upstream]
kind = "https"
url = "https://127.0.0.1:1/closures"
secret_file = "secret"

[[webhook]]
name = "caisse"
url = "https://127.0.0.1:1/events"
secret_file = "secret"

[printer]
address = "tcp://127.0.0.1:1"

[company]
logo = "absent.png"

[server]
port = 1
"""
IN_USE = tuple(
    tuple(line.split())
    for line in """
keys create --nim EL02000015-1 --label caisse
keys create --nim EL02000015-1 --test --role seller --strict
keys list
keys revoke 1
keys revoke 1
keys list --all
users list
users disable personne
users disable awa
users passwd personne --password-stdin
audit
machine list
machine info
machine settle
machine take-over EL02000015-1 --reason x
machine last-z EL02000015 7
machine probe /nulle-part
machine probe tcp://127.0.0.1:1
machine recording --since 10x
machine recording --incidents
machine recording --incident x
time show
time accept
time repair --ahead 3d --reason x
time repair --ahead 3x --reason x
report x
report z
report z 99
report a --from 2026-01-02 --to 2026-01-01
report x --test
report x --nim EL02000099
journal --from 2020-01-01
journal --code X
journal --from 2020-01-01 --output journal.csv --format excel-fr
journal --from 2020-01-01 --output journal.csv
journal --from 2020-01-01 --output absent/journal.csv
journal --format csv
verify
backup copie.sqlite3
backup copie.sqlite3
backup absent/copie.sqlite3
backup --into copies --keep-daily 1
backup --keep-monthly 3 x
backup --all boitier.age --passphrase-file phrase
backup --all boitier.age --passphrase-file phrase
backup --all autre.age --passphrase-file absent
backup --all autre.age --recipient age1xx
backup --new-key
restore journal.csv --yes
restore --all journal.csv --passphrase-file phrase --yes
restore --all boitier.age --passphrase-file secret --yes
restore --all boitier.age --passphrase-file phrase --yes
restore --all boitier.age --passphrase-file phrase --yes --signed-by 1234
restore --all copie.sqlite3 --foreign
restore copie.sqlite3 --place x
restore copie.sqlite3 --yes
upstream keygen cle
upstream keygen cle
upstream status
upstream test
upstream replay
upstream replay --nim EL02000015 --from 9 --to 1
webhook test
webhook test personne
tls init
tls init
tls init --force
tls show
tls export-ca ca.pem
tls export-ca absent/ca.pem
config check
doctor
doctor --disk .
doctor --disk . --pull-the-plug --shown 7
doctor --pull-the-plug
logs --file absent
setup --yes
setup --yes --force --port /nulle-part
setup --yes --person x!
version
""".strip().splitlines()
)
"""The daily life of a box, and what goes wrong in it."""


@pytest.fixture(scope="module")
def usage_texts(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """Each use of the command line and what it says."""
    folder = tmp_path_factory.mktemp("french")
    (folder / "mcfd.toml").write_text(CONFIG)
    return output_of(folder, USES, "walk")


@pytest.fixture(scope="module")
def ledger_texts(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """The same on a box with sales, a refusal, a closure, cash, people, and receivers and a printer that are gone."""
    folder = tmp_path_factory.mktemp("in-use")
    (folder / "mcfd.toml").write_text(CONFIG + RECEIVERS)
    (folder / "secret").write_text(f"whsec_{'A' * 40}\n")
    (folder / "phrase").write_text("six mots\n")
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _used(folder / "mcfd.sqlite3")).result()
    return output_of(folder, IN_USE)


async def _used(ledger: Path) -> None:
    async with opened(ledger) as store:
        till = await Till.of(store)
        await till.sell()
        await till.fail(invoice("R-1"))
        move = CashMove(kind="deposit", amount=1, reason="Fond", operator_id="1", operator_name="Awa")
        await store.ledger.move_cash(till.book, move, at=till.at, answer=lambda _: b"")
        await store.ledger.aggregate(till.book)
        await till.close()
        await till.sell()
        await store.ledger.write(create_person, "awa", "manager", "un mot de passe", at=till.at)


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


def test_every_command_speaks_french(usage_texts: list[tuple[str, str]]) -> None:
    """Help, wrong use, and a box that knows nothing yet."""
    assert len(usage_texts) > 100
    wrong = {use: lines for use, text in usage_texts if (lines := english(text))}
    assert wrong == {}


@pytest.mark.long
def test_a_box_in_use_speaks_french(ledger_texts: list[tuple[str, str]]) -> None:
    """Every command in its daily use, and what it says when a file, a receiver, a machine or a person is not there."""
    assert len(ledger_texts) == len(IN_USE)
    assert [f"{use}: {line}" for use, text in ledger_texts for line in english(text)] == []
    assert not [use for use, text in ledger_texts if "Traceback" in text]


def test_the_audit_log_is_in_words(ledger_texts: list[tuple[str, str]]) -> None:
    """What was done, to what, and the facts beside it: the codes of each are for programs (`--json`)."""
    log = dict(ledger_texts)["audit"]
    assert all(
        word in log for word in ("clé créée", "clé révoquée", "clé 2", "(terminal)", "Rôle\N{NO-BREAK SPACE}: vendeur")
    ), log
    assert not re.search(r"(key|user)[.:]|shell:|role=", log), log


def test_every_complaint_says_whose_it_is(usage_texts: list[tuple[str, str]]) -> None:
    """`mcfd:` stands in front of each, and none is silent."""
    for use, text in usage_texts:
        if use.endswith("--nothing") or use.split()[0] == "frobnicate":
            assert re.search(r"^mcfd: ", text, re.MULTILINE), (use, text)
