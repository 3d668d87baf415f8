"""Names without a searchable word: `python tests/architecture/names.py` lists them, and `make check` fails on one (CONTRIBUTING.md).

A name is a noun or a verb; that of a test is a sentence (`test_…`) and may have any word. A participle says what happened to a thing and not what it is; `nobody` and `whoever` are no technical terms.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "bench",
    "bridge",
    "clients",
    "common",
    "daemon",
    "docs",
    "headquarters",
    "integrations",
    "packaging",
    "relay",
    "simulator",
    "tests",
)
WORDS = frozenset("told asked held kept known given said shown made nobody whoever anybody somebody".split())  # noqa: SIM905  one line
EXEMPT = {
    "known_from": "a field of the closure that is signed and sent",
    "connection_made": "asyncio.Protocol",
}


def words_of(name: str) -> set[str]:
    return set(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_"))


def names_in(text: str) -> Iterator[tuple[str, int]]:
    """What a file gives a name to, with its line: functions, classes, parameters, variables, attributes and aliases."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, node.lineno


def faults_of(place: str, text: str) -> Iterator[str]:
    """The names of a file that have one of the words, and the file's own; `place` is its path in the tree."""
    for name, line in [(Path(place).stem, 1), *names_in(text)]:
        if words_of(name) & WORDS and not name.startswith("test_") and name not in EXEMPT:
            yield f"{place}:{line}: {name}"


def faults() -> list[str]:
    files = [
        file
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        if "node_modules" not in file.parts
    ]
    return [fault for file in files for fault in faults_of(str(file.relative_to(ROOT)), file.read_text("utf-8"))]


if __name__ == "__main__":
    found = faults()
    sys.stderr.write("".join(f"{fault}: a noun or a verb that an engineer would search for\n" for fault in found))
    sys.exit(1 if found else 0)
