"""Functions and files stay short enough to be read at once."""

import ast
import tomllib
from pathlib import Path

TREE = Path(__file__).parents[2]
LONGEST_FUNCTION = 60
LONGEST_FILE = 400


def too_long(name: str, text: str) -> list[str]:
    """Lines of a file, and of each function in it, beyond the limits."""
    lines = len(text.splitlines())
    found = [f"{name}: {lines} lines"] if lines > LONGEST_FILE else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            found += [f"{name}, {node.name}: {length} lines"] if length > LONGEST_FUNCTION else []
    return found


def test_nothing_is_too_long() -> None:
    """No function over 60 lines, no file over 400, in any package of the product."""
    settings = tomllib.loads((TREE / "pyproject.toml").read_text(encoding="utf-8"))
    packages = settings["tool"]["importlinter"]["root_packages"]
    files = [file for package in packages for file in sorted((TREE / package).rglob("*.py"))]
    assert len(files) > 300
    assert [found for file in files for found in too_long(str(file.relative_to(TREE)), file.read_text("utf-8"))] == []
