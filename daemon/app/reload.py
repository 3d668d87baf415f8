"""SIGHUP: the configuration is read again; what may change does, the rest is named, and a bad file changes nothing."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec
import structlog

from daemon import logs, notify
from daemon.api.http.server import BadCertificate
from daemon.settings import Settings, SettingsError, changes, check_files, load, secret_path
from daemon.upstream.options import BadOptions

log = structlog.get_logger(__name__)

BringIntoForce: TypeAlias = Callable[[], Awaitable[None]]
Take: TypeAlias = Callable[[Settings], BringIntoForce]
"""Looks at new settings, raises (`REFUSALS`) if it cannot work with them, and changes nothing before it is called back."""

REFUSALS = (SettingsError, BadOptions, BadCertificate)


@dataclass
class ReloadedPart:
    """`sections` is what it is made from: as long as nothing in them and in the files they name has changed, it is left alone.
    Without any it is always taken."""

    take: Take
    sections: tuple[str, ...] = ()
    made_from: bytes = field(default=b"", init=False)


class Reloader:
    def __init__(self, settings: Settings, parts: Sequence[ReloadedPart]) -> None:
        self._settings = settings
        self._parts = parts
        for part in parts:
            part.made_from = fingerprint(settings, part.sections)

    async def run(self, asked: asyncio.Event) -> None:
        while True:
            await asked.wait()
            asked.clear()
            notify.reloading()
            try:
                await self.reload()
            except Exception:
                log.exception("reload.failed")  # a mistake of ours must not end what can be asked for again
            notify.ready()

    async def reload(self) -> None:
        try:
            new = load(self._settings.file)
            check_files(new)
            found = changes(self._settings, new)
            steps = [(part, part.take(found.in_force)) for part in self._parts if self._concerned(part, found.in_force)]
        except REFUSALS as error:
            log.error("reload.refused", reason=str(error))  # noqa: TRY400  one line, not a traceback
            return
        self._settings = found.in_force
        logs.set_level(found.in_force.logs.level)
        taken = [part for part, bring_into_force in steps if await _came_into_force(part, bring_into_force)]
        for part in taken:
            part.made_from = fingerprint(found.in_force, part.sections)
        log.info("reloaded", changed=found.reloaded, taken_up=[part.sections[-1] for part in taken if part.sections])
        if found.restart:
            log.warning("reload.needs_restart", keys=found.restart)

    def _concerned(self, part: ReloadedPart, settings: Settings) -> bool:
        return not part.sections or part.made_from != fingerprint(settings, part.sections)


async def _came_into_force(part: ReloadedPart, bring_into_force: BringIntoForce) -> bool:
    """A part that fails, as one that writes while the disk is full, keeps no other from its turn, and is tried again at the next
    reload."""
    try:
        await bring_into_force()
    except Exception:
        log.exception("reload.part_failed", part=part.sections[-1] if part.sections else "")
        return False
    return True


def fingerprint(settings: Settings, sections: tuple[str, ...]) -> bytes:
    """Of the values of those sections and of what is in the files that they name."""
    made_from = hashlib.sha256()
    for name in sections:
        value = getattr(settings, name)
        made_from.update(msgspec.json.encode(value, enc_hook=str))
        for table in value if isinstance(value, tuple) else filter(None, (value,)):
            for path in (getattr(table, key) for key in table.__struct_fields__):
                if isinstance(path, Path):
                    made_from.update(_content(path))
    return made_from.digest()


def _content(path: Path) -> bytes:
    try:
        return secret_path(path).read_bytes()
    except OSError:  # whoever needs it will say so
        return b""
