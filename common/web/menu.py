"""The menu of a page: a bar of tabs under a thumb, a sidebar on a desk."""

from __future__ import annotations

from typing import NamedTuple


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
