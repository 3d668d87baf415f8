"""Screens made of templates, piece by piece: a till is served between two of them.

A screen takes milliseconds to render and a template tens of them to compile, on the one loop that also answers tills and machines. So a
screen leaves the loop to others after each slice, screens take turns, and what has not been compiled yet is compiled in a thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from common import numbers
from common.language import Counted
from common.web import charts
from common.web.icons import icon
from daemon.core.audit import value_word

if TYPE_CHECKING:  # loaded by the first screen, in its thread: many a box is never looked at
    from jinja2 import Environment

SLICE: Final = 0.0003
"""Seconds of the loop that a screen takes at a time; a certification comes back to it a dozen times."""


class Rendering:
    """One for each loop."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def screen(self, template: str, values: Mapping[str, Any]) -> bytes:
        text: list[str] = []
        async with self._turn:
            if template not in _compiled:
                await asyncio.to_thread(compile_template, template)
            pieces = environment().get_template(template).generate(values)
            while _added_for(SLICE, pieces, text):  # noqa: ASYNC110  others are let in, nothing is waited for
                await asyncio.sleep(0)
        return "".join(text).encode()


def _added_for(seconds: float, pieces: Iterator[str], text: list[str]) -> bool:
    """Adds pieces for that long; whether there may be more."""
    until = time.perf_counter() + seconds
    for piece in pieces:
        text.append(piece)
        if time.perf_counter() >= until:
            return True
    return False


_compiled: Final[set[str]] = set()


def compile_template(name: str) -> None:
    """It and whatever it extends, includes or imports."""
    from jinja2.meta import find_referenced_templates  # noqa: PLC0415  see above

    made = environment()
    made.get_template(name)
    assert made.loader is not None  # noqa: S101  given below
    source, _, _ = made.loader.get_source(made, name)
    for other in find_referenced_templates(made.parse(source)):
        if other is not None and other not in _compiled:
            compile_template(other)
    _compiled.add(name)


@cache
def environment() -> Environment:
    """Templates do not change while a daemon runs."""
    from jinja2 import (  # noqa: PLC0415  see above
        ChoiceLoader,
        Environment,
        PackageLoader,
        StrictUndefined,
        select_autoescape,
    )

    loader = ChoiceLoader([PackageLoader("daemon.api.page"), PackageLoader("common.web")])
    made = Environment(
        loader=loader, autoescape=select_autoescape(), undefined=StrictUndefined, trim_blocks=True, auto_reload=False
    )
    made.filters |= {
        "number": numbers.amount,
        "money": numbers.money,
        "compact": numbers.compact,
        "scaled": numbers.scaled,
        "cell": charts.money_cell,
    }
    made.globals |= {"bars": charts.bars, "icon": icon, "Counted": Counted, "value_word": value_word}
    return made
