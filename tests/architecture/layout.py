"""The layout in one picture, made from its imports: `python tests/architecture/layout.py` writes it into docs/architecture.md.

A package is a folder with modules, `▶` the packages that it imports. An arrow that a longer way says already is left out; the arrows
between inner folders are in pyproject.toml (import-linter).
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("bridge", "common", "daemon", "headquarters", "relay", "simulator")
BEGIN, END = "<!-- layout: made by tests/architecture/layout.py -->", "<!-- layout end -->"
WIDTH = 24

Arrows = Mapping[str, frozenset[str]]


def folders() -> dict[str, list[Path]]:
    """Each package and its modules; a package with nothing in it but its docstring is none."""
    packages: dict[str, list[Path]] = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            if file.name != "__init__.py" or len(ast.parse(file.read_text()).body) > 1:
                packages.setdefault(file.parent.relative_to(ROOT).as_posix(), []).append(file)
    return packages


def purpose(package: str) -> str:
    """The first sentence of its docstring; empty without one."""
    text = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    return re.split(r"(?<=\.)\s", text.replace("\n", " "))[0].rstrip(".")


def package_of(module: str, packages: Mapping[str, object]) -> str | None:
    """The package of a dotted name of ours: the module itself, or the package of that name."""
    path = module.replace(".", "/")
    return next(
        (
            package
            for package in (path, path.rpartition("/")[0], path.rpartition("/")[0].rpartition("/")[0])
            if package in packages
        ),
        None,
    )


def statements(text: str) -> Iterator[ast.AST]:
    """An import is one, however deep it stands; in expressions, most of what a module is, there is none."""
    left: list[ast.AST] = [ast.parse(text)]
    while left:
        node = left.pop()
        yield node
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, part, ())
            if isinstance(inner, list):  # of `a if b else c` it is an expression
                left += inner


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in statements(file.read_text()):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {
                name if (ROOT / name.replace(".", "/")).with_suffix(".py").exists() else str(node.module)
                for name in whole
            }
    return {name for name in names if name.partition(".")[0] in PACKAGES}


def outer(package: str) -> str:
    """The package that an inner one lies in: `daemon/core/invoice` is in `daemon/core`, `bridge` is one itself."""
    return "/".join(package.split("/")[: 2 if package.startswith(("common", "daemon")) else 1])


def arrows() -> dict[str, frozenset[str]]:
    """What each outer package imports."""
    packages = folders()
    to: dict[str, set[str]] = {outer(package): set() for package in packages}
    for package, files in packages.items():
        found = {package_of(name, packages) for file in files for name in imported(file)}
        to[outer(package)] |= {outer(other) for other in found if other is not None} - {outer(package)}
    return {package: frozenset(others) for package, others in to.items()}


def below(package: str, to: Arrows, seen: frozenset[str] = frozenset()) -> set[str]:
    """Everything that can be reached from a package."""
    found: set[str] = set()
    for other in to[package] - seen:
        found |= {other} | below(other, to, seen | {package})
    return found


def direct(package: str, to: Arrows) -> list[str]:
    """The arrows of a package without those that another of them implies."""
    return sorted(
        other for other in to[package] if not any(other in below(third, to) for third in to[package] - {other})
    )


def height(package: str, to: Arrows) -> int:
    return 1 + max((height(other, to) for other in to[package]), default=-1)


def picture() -> str:
    """The packages from the top, where everything is put together, to those that stand on nothing."""
    to = arrows()
    lines = []
    for package in sorted(to, key=lambda name: (-height(name, to), name)):
        lines.append(f"{package + '/':{WIDTH}}{purpose(package)}".rstrip())
        if stands_on := direct(package, to):
            lines.append(f"{'':{WIDTH}}▶ {', '.join(stands_on)}")
    return "\n".join(lines)


def page_with(drawn: str) -> str:
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n```\n{drawn}\n```\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page_with(picture()))
