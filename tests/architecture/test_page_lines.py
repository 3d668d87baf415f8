"""Documents are read in an editor and in a diff too: their prose wraps, and their examples can be read by their language."""

import ast
import json
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

from support.tools import need

TREE = Path(__file__).parents[2]
LIMIT = 120
"""Characters of a line of prose; tables, code, links of their own line and HTML are as long as they have to be."""
NO_PROSE = re.compile(r"\s*(\||#|<|`|\[[^\]]+\]: |!\[)|    |\t")


def pages() -> list[Path]:
    """All of ours: not what is in a virtual environment or in a library that is vendored."""
    tracked = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=TREE, check=True, capture_output=True, text=True)
    found = (TREE / name for name in tracked.stdout.split("\0") if name)
    return sorted(page for page in found if page.exists() and page.name != "CHANGELOG.md")


def long_lines(text: str) -> list[int]:
    """Numbers of the lines of prose beyond the limit; a word that is longer by itself cannot wrap."""
    found, is_code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        if not is_code and len(line) > LIMIT and not NO_PROSE.match(line) and " " in line[:LIMIT].strip():
            found.append(number)
    return found


def test_prose_wraps() -> None:
    """In every page of the tree."""
    assert {str(page.relative_to(TREE)): lines for page in pages() if (lines := long_lines(page.read_text()))} == {}


FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def read_javascript(text: str) -> None:
    need("node")
    command = ["node", "--input-type=module", "--check", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)


READERS: dict[str, Callable[[str], object]] = {
    "python": ast.parse,
    "toml": tomllib.loads,
    "json": json.loads,
    "js": read_javascript,
}


def unreadable(page: Path) -> list[str]:
    """Examples that their language does not read, by their first line."""
    found = []
    for indent, language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        try:
            READERS.get(language, str)(textwrap.dedent(text) if indent else text)
        except (ValueError, SyntaxError):
            found.append(text.partition("\n")[0])
    return found


def test_each_example_can_be_read() -> None:
    """Python, JavaScript, TOML and JSON of every page."""
    assert {str(page.relative_to(TREE)): found for page in pages() if (found := unreadable(page))} == {}
