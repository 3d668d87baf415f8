"""What differs between the settings in force and a file read again: what a reload takes up, and what waits for a restart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from common.settings import Section
from daemon.settings.model import RELOADED, Settings


class Changes(NamedTuple):
    """Paths of keys, as `logs.level`; of a whole section that came or went, `upstream` or `machine[1]`."""

    reloaded: tuple[str, ...]
    restart: tuple[str, ...]
    in_force: Settings
    """The old settings with what is reloaded: the next reload names again what still waits for a restart."""


def changes(old: Settings, new: Settings) -> Changes:
    paths = [
        path for name in old.__struct_fields__ for path in _differences(getattr(old, name), getattr(new, name), name)
    ]
    reloaded = tuple(path for path in paths if path in RELOADED or re.split(r"[.\[]", path)[0] in RELOADED)
    in_force = old
    for path in RELOADED:
        section, _, key = path.partition(".")
        value = getattr(new, section)
        if key:
            value = msgspec.structs.replace(getattr(old, section), **{key: getattr(value, key)})
        in_force = msgspec.structs.replace(in_force, **{section: value})
    return Changes(reloaded, tuple(path for path in paths if path not in reloaded), in_force)


def _differences(before: object, after: object, path: str) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, Section) and isinstance(after, Section):
        for name in before.__struct_fields__:
            yield from _differences(getattr(before, name), getattr(after, name), f"{path}.{name}")
    elif isinstance(before, tuple) and isinstance(after, tuple) and isinstance((before + after)[0], Section):
        for index, pair in enumerate(zip_longest(before, after)):
            yield from _differences(*pair, f"{path}[{index}]")
    else:
        yield path
