"""Documents are read in an editor and in a diff too: their prose wraps."""

from __future__ import annotations

import re
from pathlib import Path

TREE = Path(__file__).parents[2]
LIMIT = 120
"""Characters of a line of prose; tables, code, links of their own line and HTML are as long as they have to be."""
NO_PROSE = re.compile(r"\s*(\||#|<|`|\[[^\]]+\]: |!\[)|    |\t")
GENERATED = {"configuration.md", "testing-your-till.md"}
"""By tests that compare them; their sentences stand in the code."""


def pages() -> list[Path]:
    return sorted({*(TREE / "docs").glob("*.md"), *TREE.glob("*.md")} - {TREE / "CHANGELOG.md"})


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
    assert {
        page.name: lines for page in pages() if page.name not in GENERATED and (lines := long_lines(page.read_text()))
    } == {}


def test_the_check_sees_a_long_line() -> None:
    """Prose, but no table and no code."""
    long = "a word " * 20
    assert long_lines(f"{long}\n| {long} |\n    {long}\n```\n{long}\n```\n- {long}\n") == [1, 7]
