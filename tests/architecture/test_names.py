"""Names: no two classes of the product have the same."""

import ast
from collections import defaultdict
from pathlib import Path

TREE = Path(__file__).parents[2]
PRODUCT = ("bench", "bridge", "common", "daemon", "headquarters", "packaging", "relay", "simulator")


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
