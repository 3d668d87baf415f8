"""What the documents say of the tree's files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
MADE = {"build", "dist"}
TOP = [
    path.name
    for path in sorted(TREE.iterdir())
    if path.is_dir() and not path.name.startswith(".") and path.name not in MADE
]
DOCUMENTS = [path for path in sorted([*TREE.glob("*.md"), *TREE.glob("docs/*.md")]) if path.name != "CHANGELOG.md"]
"""The changelog tells of what was, too."""
NAMED = re.compile(rf"`((?:{'|'.join(TOP)})/[\w./*-]+)`")
PLACEHOLDERS = {"daemon/store/schema/NNNN_name.sql"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_a_document_names_are_there(document: Path) -> None:
    """Each path in it that begins with a folder of the tree leads somewhere."""
    named = set(NAMED.findall(document.read_text(encoding="utf-8"))) - PLACEHOLDERS
    assert [each for each in sorted(named) if not any(TREE.glob(each))] == []


def test_paths_are_found_in_documents() -> None:
    """With a star and without, files and folders; the table of tests has some."""
    found = NAMED.findall("`tests/unit`, `bridge/*.py` and `docs/x.md`, not `/etc/mcfd/mcfd.toml` or tests/conftest.py")
    assert found == ["tests/unit", "bridge/*.py", "docs/x.md"]
    assert NAMED.search((TREE / "docs/testing.md").read_text(encoding="utf-8"))
