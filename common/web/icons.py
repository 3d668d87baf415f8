"""Tabler's icons, inside the page: a template calls `icon("home")`. `make web` collects theirs and these."""

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
"""Icons named in Python, or after an `else` of a template."""


@cache
def icon(name: str) -> Markup:
    """An icon beside a text with the same meaning: hidden from a screen reader."""
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
    """number of pending items there"""


def is_here(path: str, here: str) -> bool:
    """Whether the screen `here` is the menu's `path` or below it; nothing is below the first screen."""
    return path.rstrip("/") == here.rstrip("/") or (path != "/ui/" and here.startswith(f"{path}/"))
