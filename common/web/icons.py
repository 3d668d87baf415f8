"""Tabler's icons, in the page itself: a template says `icon("home")`. `make web` takes those that templates name, and these."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from markupsafe import Markup

MENU_ICONS: Final = (
    "home",
    "receipt",
    "calendar-check",
    "alert-triangle",
    "server",
    "chart-bar",
    "download",
    "users",
    "heartbeat",
    "key",
    "database",
    "history",
    "refresh",
    "circle-check",
    "circle-x",
    "plug-connected-x",
    "x",
    "help",
    "trending-down",
)
"""Those whose names stand in Python, or behind an `else` of a template."""


@cache
def icon(name: str) -> Markup:
    """Beside words that say the same: hidden from a screen reader."""
    return Markup(  # noqa: S704  a file of the package
        '<svg class="icon" width="24" height="24" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" '
        f'stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{_shapes()[name]}</svg>'
    )


@cache
def _shapes() -> dict[str, str]:
    found: dict[str, str] = json.loads(files("common.web").joinpath("static", "icons.json").read_bytes())
    return found


class MenuItem(NamedTuple):
    href: str
    words: str
    icon: str
    is_here: bool
    waits: int = 0
    """how much waits there"""


def is_here(path: str, here: str) -> bool:
    """Whether the screen `here` is that of the menu's `path`, or one below it; the first screen has none below."""
    return path.rstrip("/") == here.rstrip("/") or (path != "/ui/" and here.startswith(f"{path}/"))
