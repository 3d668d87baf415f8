"""The log in words."""

import ast
from collections.abc import Iterator
from pathlib import Path

import daemon
from daemon.log_words import EVENTS

ROOT = Path(daemon.__file__).parent
LOG_METHODS = {"info", "warning", "error", "exception", "critical"}
LINE_METHODS = {"_log", "_log_incident"}
"""Of `bridge`, which knows no logger."""


def test_every_event_of_the_log_has_words() -> None:
    """Whatever a module of the daemon or of the line logs, the page and `mcfd logs` say in words, not by the event's own name."""
    modules = [
        path for package in ("bridge", "common/wire", "daemon") for path in (ROOT.parent / package).rglob("*.py")
    ]
    found = {name for path in modules for name in _events(path)}
    assert len(found) > 50
    assert found - set(EVENTS) == set()


def _events(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if node.func.attr in LINE_METHODS:
            yield from (each.value for part in node.args[:2] for each in _constants(part) if "." in each.value)
        elif node.func.attr in LOG_METHODS:
            logger = node.func.value
            name = logger.id if isinstance(logger, ast.Name) else getattr(logger, "attr", "")
            if name.lstrip("_") == "log":
                yield from (each.value for each in _constants(node.args[0]))


def _constants(node: ast.expr) -> Iterator[ast.Constant]:
    choices = (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)
    yield from (each for each in choices if isinstance(each, ast.Constant) and isinstance(each.value, str))
