"""The house in one picture, made from its imports: `python tests/architecture/rooms.py` writes it into docs/architecture.md.

A room is a folder with modules, `▶` the rooms that it imports. An arrow that a longer way says already is left out; the arrows
between inner folders are in pyproject.toml (import-linter).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("bridge", "common", "daemon", "headquarters", "relay", "simulator")
BEGIN, END = "<!-- rooms: made by tests/architecture/rooms.py -->", "<!-- rooms end -->"
WIDTH = 24

Arrows = Mapping[str, frozenset[str]]


def folders() -> dict[str, list[Path]]:
    """Each room and its modules; a package with nothing in it but its docstring is none."""
    rooms: dict[str, list[Path]] = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            if file.name != "__init__.py" or len(ast.parse(file.read_text()).body) > 1:
                rooms.setdefault(file.parent.relative_to(ROOT).as_posix(), []).append(file)
    return rooms


def purpose(room: str) -> str:
    """The first sentence of its docstring; empty without one."""
    text = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text())) or ""
    return re.split(r"(?<=\.)\s", text.replace("\n", " "))[0].rstrip(".")


def room_of(module: str, rooms: Mapping[str, object]) -> str | None:
    """The room of a dotted name of ours: the module itself, or the package of that name."""
    path = module.replace(".", "/")
    return next(
        (room for room in (path, path.rpartition("/")[0], path.rpartition("/")[0].rpartition("/")[0]) if room in rooms),
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


def outer(room: str) -> str:
    """The room that an inner one lies in: `daemon/core/invoice` is in `daemon/core`, `bridge` is one itself."""
    return "/".join(room.split("/")[: 2 if room.startswith(("common", "daemon")) else 1])


def arrows() -> dict[str, frozenset[str]]:
    """What each outer room imports."""
    rooms = folders()
    to: dict[str, set[str]] = {outer(room): set() for room in rooms}
    for room, files in rooms.items():
        found = {room_of(name, rooms) for file in files for name in imported(file)}
        to[outer(room)] |= {outer(other) for other in found if other is not None} - {outer(room)}
    return {room: frozenset(others) for room, others in to.items()}


def below(room: str, to: Arrows, seen: frozenset[str] = frozenset()) -> set[str]:
    """Everything that can be reached from a room."""
    found: set[str] = set()
    for other in to[room] - seen:
        found |= {other} | below(other, to, seen | {room})
    return found


def direct(room: str, to: Arrows) -> list[str]:
    """The arrows of a room without those that another of them implies."""
    return sorted(other for other in to[room] if not any(other in below(third, to) for third in to[room] - {other}))


def height(room: str, to: Arrows) -> int:
    return 1 + max((height(other, to) for other in to[room]), default=-1)


def picture() -> str:
    """The rooms from the top, where everything is put together, to those that stand on nothing; inner rooms under theirs."""
    to, rooms = arrows(), folders()
    lines = []
    for room in sorted(to, key=lambda name: (-height(name, to), name)):
        lines.append(f"{room + '/':{WIDTH}}{purpose(room)}".rstrip())
        if stands_on := direct(room, to):
            lines.append(f"{'':{WIDTH}}▶ {', '.join(stands_on)}")
        inner = [name for name in rooms if outer(name) == room and name != room]
        lines += [f"   {name.removeprefix(room + '/') + '/':{WIDTH - 3}}{purpose(name)}".rstrip() for name in inner]
    return "\n".join(lines)


def page_with(drawn: str) -> str:
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n```\n{drawn}\n```\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page_with(picture()))
