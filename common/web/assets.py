"""A page's static files, and Tabler's icons, inside the page: a template calls `icon("home")`. `make web` collects
theirs and these. A file's URL has a hash of its content: browsers cache it without limit; an upgrade changes it."""

import hashlib
import json
from collections.abc import Mapping
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


@cache
def content(package: str, name: str) -> bytes:
    """`name` is a constant of the caller, never from outside."""
    return files(package).joinpath("static", name).read_bytes()


@cache
def tag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]


def addresses(packages: Mapping[str, str]) -> dict[str, str]:
    """URLs by file name, for templates; `packages` has the package of each file."""
    return {name: f"/ui/static/{name}?{tag(content(package, name))}" for name, package in packages.items()}


def cache_control(body: bytes, query: bytes) -> str:
    """A URL without the hash, or with another version's, is requested again each time."""
    return "max-age=31536000, immutable" if query.decode("latin-1") == tag(body) else "no-cache"
