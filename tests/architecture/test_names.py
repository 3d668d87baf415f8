"""Names: no two classes of the product have the same, and none is made of a word of the list in `names.py`."""

from __future__ import annotations

import ast
import runpy
from collections import defaultdict
from pathlib import Path

TREE = Path(__file__).parents[2]
PRODUCT = ("bench", "bridge", "common", "daemon", "headquarters", "packaging", "relay", "simulator")
NAMES = runpy.run_path(str(TREE / "tests/architecture/names.py"))


def test_no_two_classes_have_one_name() -> None:
    """A class's name says which one it is; classes inside functions and classes are not counted."""
    places = defaultdict(list)
    for package in PRODUCT:
        for file in sorted((TREE / package).rglob("*.py")):
            for node in ast.parse(file.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(str(file.relative_to(TREE)))
    assert len(places) > 300
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_no_name_is_a_participle() -> None:
    """Of the words that `make check` has a list of."""
    assert NAMES["faults"]() == []


def test_a_participle_is_seen() -> None:
    """In each kind of name, and in a file's own; a column's name passes only where the column is."""
    kinds = (
        "def told(): ...",
        "class MadeKey: ...",
        "def f(asked): ...",
        "kept = 1",
        "self.given = 1",
        "import x as known",
    )
    assert [list(NAMES["faults_of"]("a/b.py", text)) != [] for text in kinds] == [True] * len(kinds)
    assert list(NAMES["faults_of"]("a/shown.py", "")) == ["a/shown.py:1: shown"]
    assert list(NAMES["faults_of"]("a/b.py", "held = 1")) == ["a/b.py:1: held"]
    assert list(NAMES["faults_of"]("headquarters/store/book/books.py", "held = 1\nmaker = holder = 2")) == []
