"""No private part of a library is used by inheritance; of an object the linter forbids it (SLF001)."""

import ast
import tomllib
from pathlib import Path

TREE = Path(__file__).parents[2]
PACKAGES: list[str] = tomllib.loads((TREE / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def inherited(source: str) -> list[str]:
    """Private names that a class takes from a base of another house."""
    tree = ast.parse(source)
    foreign = set()
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = node.module if isinstance(node, ast.ImportFrom) else ""
            foreign |= {
                alias.asname or alias.name.partition(".")[0]
                for alias in node.names
                if (module or alias.name).partition(".")[0] not in PACKAGES
            }
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [part for each in classes if roots(each) & foreign for part in private_and_not_own(each)]


def roots(found: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition(".")[0].partition("[")[0] for base in found.bases}


def private_and_not_own(found: ast.ClassDef) -> list[str]:
    own, used = set(), set()
    for each in ast.walk(found):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            own.add(each.name)
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            own.add(each.id)
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            own.add(each.attr)
        elif isinstance(each, ast.Attribute) and ast.unparse(each.value) in {"self", "super()", "cls"}:
            used.add(each.attr)
    return [f"{found.name}.{name}" for name in sorted(used - own) if is_private(name)]


def files() -> list[Path]:
    return [file for package in PACKAGES for file in sorted((TREE / package).rglob("*.py"))]


def test_no_private_part_of_a_base_is_used() -> None:
    found = {str(file.relative_to(TREE)): parts for file in files() if (parts := inherited(file.read_text()))}
    assert found == {}
