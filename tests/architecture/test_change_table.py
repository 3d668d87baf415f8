"""The table "to change X, go to Y" of docs/architecture.md: its rows are there, and five of its changes are made on a copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from layout import PAGE, page_with, picture

ROOT = Path(__file__).parents[2]
PARTS = ("bridge", "common", "daemon", "simulator", "tests", "config", "docs", "pyproject.toml")
ROW = re.compile(r"^\| (?P<what>[^|]+) \| `(?P<place>[^`]+)` \| `(?P<tests>[^`]+)` \|$", re.MULTILINE)
ROWS = {row["what"]: row for row in ROW.finditer((ROOT / "docs/architecture.md").read_text())}


def test_twenty_rows_that_are_there() -> None:
    """Each place and each folder of tests that the table names exists."""
    assert len(ROWS) == 20
    for row in ROWS.values():
        assert (ROOT / row["place"]).exists(), row["place"]
        assert (ROOT / row["tests"]).is_dir(), row["tests"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    tree = tmp_path / "copy"
    tree.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, tree / part, ignore=shutil.ignore_patterns("*-pytest-*", ".*"))
        else:
            shutil.copy(source, tree / part)
    return tree


def run(copy: Path, *arguments: str) -> str:
    """Python in the copy, where its own modules come first."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=copy,
        # What hypothesis has read out of the sources is known by their contents: it need not read the copy's as well.
        env={
            "HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis"),
            **os.environ,
            "PYTHONPATH": str(copy),
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new))


def add_migration(place: Path, tests: Path) -> str:
    """A file of its own; the one test that pins what has been released learns its name."""
    number = len(list(place.glob("*.sql"))) + 1
    (place / f"{number:04d}_note.sql").write_text("CREATE TABLE note (text TEXT NOT NULL) STRICT;\n")
    pinned = next(tests.rglob("test_store_queries.py"))
    pinned.write_text(
        re.sub(r"(assert names == \[.*?),?\s*\]", rf'\1, "{number:04d}_note"]', pinned.read_text(), flags=re.DOTALL)
    )
    return f"{tests}/tables"


def change_problem(place: Path, tests: Path) -> str:
    replace(place, '"No room to store a certification"', '"No room for another certification"')
    (tests / "test_new_title.py").write_text(
        "from daemon.api.problems import KINDS\nfrom daemon.core.errors import StorageFull\n\n\n"
        "def test_the_new_title():\n    assert KINDS[StorageFull].title == 'No room for another certification'\n"
    )
    return f"{tests}/test_api_problems.py {tests}/test_new_title.py"


def add_command_of_the_machine(place: Path, tests: Path) -> str:
    place.write_text(
        place.read_text()
        + "\n\nclass ReadLogo(msgspec.Struct, frozen=True):\n    cmd: ClassVar[int] = 0x2C\n\n"
        + "    def encode(self, _: MachineHabits = USUAL, /) -> bytes:\n        return b''\n\n"
        + "    def read(self, text: str, /) -> str:\n        return text\n"
    )
    (tests / "test_new_command.py").write_text(
        "from bridge.commands import ReadLogo\n\n\ndef test_the_new_command():\n    assert ReadLogo().encode() == b''\n"
    )
    return f"{tests}/test_bridge_commands.py {tests}/test_new_command.py"


def add_key(place: Path, tests: Path) -> str:
    """The key with its text and its default, and the example."""
    tree = place.parents[2]
    replace(
        place,
        "    reserve_mb: ",
        '    archive: bool = False\n    """Whether an archive is kept."""\n    reserve_mb: ',
    )
    replace(tree / "config/mcfd.toml", "# reserve_mb", "# archive = false\n# reserve_mb")
    return str(tests)


def add_command(place: Path, tests: Path) -> str:
    """A module with its `command`, and its name in the table of commands."""
    (place / "hello.py").write_text(
        "import click\n\n\n@click.command('hello')\ndef command() -> None:\n    click.echo('hello')\n"
    )
    replace(
        place.parent / "__init__.py",
        "COMMANDS = {\n",
        'COMMANDS = {\n    "hello": Member("daemon.cli.commands.hello", Text("Says hello.")),\n',
    )
    (tests / "test_hello.py").write_text(
        "from click.testing import CliRunner\nfrom daemon.cli import root\n\n\ndef test_hello():\n"
        "    assert CliRunner().invoke(root, ['hello']).output == 'hello\\n'\n"
        "    assert 'hello' in CliRunner().invoke(root, ['--help']).output\n"
    )
    return f"{tests}/test_hello.py"


CHANGES: dict[str, Callable[[Path, Path], str]] = {
    "a table of the ledger": add_migration,
    "the answer to an error": change_problem,
    "a command of the machine": add_command_of_the_machine,
    "a key of the configuration": add_key,
    "a command of `mcfd`": add_command,
}


@pytest.mark.long
def test_changes_are_made_where_the_table_says(copy: Path) -> None:
    """With what one place needs for each of five changes, and no other package touched, the tests of those rooms pass."""
    selected = [
        change(copy / ROWS[what]["place"], copy / ROWS[what]["tests"]).split() for what, change in CHANGES.items()
    ]
    out = run(
        copy, "-m", "pytest", "-q", "-rpf", "-p", "no:xdist", "-p", "no:cacheprovider", *chain.from_iterable(selected)
    )
    passed = {copy / line.split()[1].partition("::")[0] for line in out.splitlines() if line.startswith("PASSED ")}
    for each in chain.from_iterable(selected):
        assert any(file.is_relative_to(each) for file in passed), (each, out)


def test_the_picture_is_the_house() -> None:
    """docs/architecture.md shows the packages and arrows that the imports have; `make layout` writes it anew."""
    assert page_with(picture()) == PAGE.read_text(), "run make layout"
