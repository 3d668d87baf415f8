"""Documents are read in an editor and in a diff too: their prose wraps."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

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


def test_the_check_sees_a_long_line() -> None:
    """Prose, but no table and no code."""
    long = "a word " * 20
    assert long_lines(f"{long}\n| {long} |\n    {long}\n```\n{long}\n```\n- {long}\n") == [1, 7]
