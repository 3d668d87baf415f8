"""Every sentence that the ledger keeps in English is told in French again: all that there are, found in the code that says them."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from common.language.stored import retold

ROOT = Path(__file__).parents[4]
ROOMS = (
    *("bridge", "daemon/core/invoice", "daemon/core/ledger", "daemon/core/machine", "daemon/machines"),
    *("daemon/store/tables", "daemon/upstream", "daemon/usecases"),
)
"""Where what becomes of an attempt, a line, a machine or a delivery is put into words."""
SAYING = frozenset(
    {
        *("LineDown", "PortVanished", "Unsendable", "Nonsense", "nonsense", "give_up", "_fail", "_vanish", "Silence"),
        *("LineLost", "NothingDone", "MachineNonsense", "MachineOffline", "MachineBusy", "StorageFull", "drop"),
        *("Warn", "Again", "DeliveryRefused", "Refused", "Text"),
        *("read_counter", "read_hundredths", "read_money", "read_time", "_split"),
    }
)
"""Calls whose words end in a reason, a finding, a warning, an event or the error of a delivery."""
ANSWERING = frozenset({"_told", "_serve_once"})
"""Functions whose own results do."""


class Said(NamedTuple):
    where: str
    sentence: str
    """with a value of its own in each place for one"""
    values: tuple[str, ...]


class _Values(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return self.setdefault(name, f"V{len(self) + 17}")


def said(rooms: tuple[str, ...] = ROOMS) -> Iterator[Said]:
    for file in sorted(file for room in rooms for file in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            for message in map(_message, _words(node)):
                if any(text.strip(" :;,()") for text, *_ in string.Formatter().parse(message)):
                    values = _Values()
                    sentence = message.format_map(values) if "{" in message else message
                    where = f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
                    yield Said(where, sentence, tuple(values.values()))


def _words(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        yield from node.args if called in SAYING else ()
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in ANSWERING:
        yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value)


def _message(words: ast.expr) -> str:
    """As a text of ours writes it, with names in braces; empty where it is no sentence."""
    match words:
        case ast.Constant(value=str(text)) if " " in text:
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_part(part, at) for at, part in enumerate(parts))
    return ""


def _part(part: ast.expr, at: int) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    return f"{{v{at}!r}}" if isinstance(part, ast.FormattedValue) and part.conversion == ord("r") else f"{{v{at}}}"


def test_all_that_is_kept_can_be_told_in_french() -> None:
    """Each is found again in the catalogue, and no value of it is lost: what is said anywhere new without a translation fails here."""
    lost = {}
    for where, sentence, values in said():
        told = retold(sentence, "fr")
        if told == sentence or any(value not in told for value in values):
            lost[where] = (sentence, told)
    assert lost == {}


def test_they_come_from_every_room() -> None:
    """The walk has those of the bridge, the adapter, the verdict, the line and the ways out: it does not pass by finding nothing."""
    found = list(said())
    sentences = {each.sentence for each in found}
    assert {"V17 cannot be read: 'V18'", "no stream takes V17"} <= sentences


def test_what_the_machine_is_asked_for_is_french_too() -> None:
    """The part of an answer that could not be read, inside the sentence that says so."""
    assert retold("the subtotal cannot be read: 'x1'", "fr").endswith("le sous-total\N{NO-BREAK SPACE}: 'x1'")
