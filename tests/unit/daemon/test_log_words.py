"""The log in words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import daemon
from daemon.log_words import EVENTS

ROOT = Path(daemon.__file__).parent
LOG_METHODS = {"info", "warning", "error", "critical"}


def test_every_event_of_the_log_has_words() -> None:
    """Whatever a module of the daemon logs, the page and `mcfd logs` say in words, not by the event's own name."""
    found = {name for path in ROOT.rglob("*.py") for name in _events(path)}
    assert len(found) > 50
    assert found - set(EVENTS) == set()


def _events(path: Path, *, composed: bool = False) -> Iterator[str]:
    """`composed`: also those of an f-string, with `x` for each value."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LOG_METHODS
            and node.args
        ):
            logger = node.func.value
            name = logger.id if isinstance(logger, ast.Name) else getattr(logger, "attr", "")
            if name.lstrip("_") == "log":
                yield from (each.value for each in _constants(node.args[0]))
                if composed and isinstance(node.args[0], ast.JoinedStr):
                    yield "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.args[0].values)


def _constants(node: ast.expr) -> Iterator[ast.Constant]:
    choices = (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)
    yield from (each for each in choices if isinstance(each, ast.Constant) and isinstance(each.value, str))
