"""What differs between the settings in force and a file read again: what a reload takes up, and what waits for a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from daemon.settings.describe import SectionInfo, sections
from daemon.settings.model import Settings


@dataclass(frozen=True)
class Changes:
    """Paths of keys, as `logs.level`; of a whole section that came or went, `upstream` or `machine[1]`."""

    reloaded: tuple[str, ...]
    restart: tuple[str, ...]
    in_force: Settings
    """The old settings with what is reloaded: the next reload names again what still waits for a restart."""


def changes(old: Settings, new: Settings) -> Changes:
    found = [change for info in sections().values() for change in _of_section(info, old, new)]
    return Changes(
        tuple(path for path, reload in found if reload),
        tuple(path for path, reload in found if not reload),
        msgspec.structs.replace(
            old, **{info.name: _merged(info, old, new) for info in sections().values() if "." not in info.name}
        ),
    )


def _of_section(info: SectionInfo, old: Settings, new: Settings) -> Iterator[tuple[str, bool]]:
    before, after = _tables(info, old), _tables(info, new)
    for path in dict.fromkeys((*before, *after)):
        if path not in before or path not in after:
            if "." not in info.name:  # a table in a table comes and goes with it
                yield path, _is_reloaded_whole(info)
            continue
        for key in info.keys:
            if getattr(before[path], key.name) != getattr(after[path], key.name):
                yield f"{path}.{key.name}", key.reload


def _tables(info: SectionInfo, settings: Settings) -> Mapping[str, Any]:
    outer, _, inner = info.name.partition(".")
    value = getattr(settings, outer)
    if inner:
        return {f"{outer}[{index}].{inner}": getattr(table, inner) for index, table in enumerate(value)}
    if info.many:
        return {f"{info.name}[{index}]": table for index, table in enumerate(value)}
    return {} if value is None else {info.name: value}


def _is_reloaded_whole(info: SectionInfo) -> bool:
    return all(key.reload for key in info.keys)


def _merged(info: SectionInfo, old: Settings, new: Settings) -> Any:
    before, after = getattr(old, info.name), getattr(new, info.name)
    if _is_reloaded_whole(info):
        return after
    if info.many or before is None or after is None:
        return before
    taken = {key.name: getattr(after, key.name) for key in info.keys if key.reload}
    return msgspec.structs.replace(before, **taken)
