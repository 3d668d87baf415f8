"""SIGHUP: the configuration is read again; what may change does, the rest is named, and a bad file changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec
import structlog

from common import logs, notify
from common.files import secret_path
from common.front import BadCertificate
from daemon.core.errors import StorageError
from daemon.settings import Settings, SettingsError, changes, check_files, load
from daemon.upstream.options import BadOptions

log = structlog.get_logger(__name__)

BringIntoForce: TypeAlias = Callable[[], Awaitable[None]]
Take: TypeAlias = Callable[[Settings], BringIntoForce]
"""Looks at new settings, raises (`REFUSALS`) if it cannot work with them, and changes nothing before it is called back."""

FINISH_EVERY = 5.0
"""Seconds between two tries of a part that could not be brought into force, as one that writes while the disk is full."""

REFUSALS = (SettingsError, BadOptions, BadCertificate)


@dataclass
class ReloadedPart:
    """`sections` is what it is made from: as long as nothing in them and in the files they name has changed, it runs on, and `unchanged`
    is called at a reload. Without any sections it is always taken."""

    take: Take
    sections: tuple[str, ...] = ()
    unchanged: Callable[[], None] = lambda: None
    source_digest: bytes = field(default=b"", init=False)


class Reloader:
    def __init__(self, settings: Settings, parts: Sequence[ReloadedPart]) -> None:
        self._settings = settings
        self._parts = parts
        for part in parts:
            part.source_digest = fingerprint(settings, part.sections)
        self._unfinished: list[ReloadedPart] = []

    @property
    def is_unfinished(self) -> bool:
        return bool(self._unfinished)

    async def run(self, trigger: asyncio.Event) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FINISH_EVERY if self.is_unfinished else None):
                    await trigger.wait()
            if not trigger.is_set():
                await self.finish()
                continue
            trigger.clear()
            notify.reloading()
            try:
                await self.reload()
            except Exception:
                log.exception("reload.failed")  # a mistake of ours must not end later reloads
            notify.ready()

    async def reload(self) -> None:
        try:
            new = load(self._settings.file)
            check_files(new)
            found = changes(self._settings, new)
            concerned = [part for part in self._parts if self._concerned(part, found.in_force)]
            steps = [(part, part.take(found.in_force)) for part in concerned]
        except REFUSALS as error:
            log.error("reload.refused", reason=str(error))  # noqa: TRY400  one line, not a traceback
            return
        self._settings = found.in_force
        logs.set_level(found.in_force.logs.level)
        self._unfinished = []
        for part in self._parts:
            if part not in concerned:
                part.unchanged()
        taken = [part for part, bring_into_force in steps if await self._came_into_force(part, bring_into_force)]
        log.info("reload.done", changed=found.reloaded, taken_up=[part.sections[-1] for part in taken if part.sections])
        if found.restart:
            log.warning("reload.needs_restart", keys=found.restart)

    async def finish(self) -> None:
        """What a reload has left over is tried again with the settings that are in force."""
        left, self._unfinished = self._unfinished, []
        for part in left:
            try:
                step = part.take(self._settings)
            except REFUSALS as error:  # a file that it names has changed since
                log.error("reload.refused", reason=str(error))  # noqa: TRY400  one line, not a traceback
                continue
            await self._came_into_force(part, step, is_again=True)
        if not self.is_unfinished:
            log.info("reload.finished")

    async def _came_into_force(
        self, part: ReloadedPart, bring_into_force: BringIntoForce, *, is_again: bool = False
    ) -> bool:
        """A part that fails keeps no other from its turn. What the disk did not take is tried on and on; a mistake of ours at the next
        reload, whether or not anything has changed by then."""
        part.source_digest = b""
        try:
            await bring_into_force()
        except StorageError as error:
            self._unfinished.append(part)
            if not is_again:
                log.error("reload.put_off", part=_name(part), reason=str(error))  # noqa: TRY400  one line, not a traceback
            return False
        except Exception:
            log.exception("reload.part_failed", part=_name(part))
            return False
        part.source_digest = fingerprint(self._settings, part.sections)
        return True

    def _concerned(self, part: ReloadedPart, settings: Settings) -> bool:
        return not part.sections or part.source_digest != fingerprint(settings, part.sections)


def _name(part: ReloadedPart) -> str:
    return part.sections[-1] if part.sections else ""


def fingerprint(settings: Settings, sections: tuple[str, ...]) -> bytes:
    """Of the values of those sections and of what is in the files that they name."""
    digest = hashlib.sha256()
    for name in sections:
        value = getattr(settings, name)
        digest.update(msgspec.json.encode(value, enc_hook=str))
        for table in value if isinstance(value, tuple) else filter(None, (value,)):
            for path in (getattr(table, key) for key in table.__struct_fields__):
                if isinstance(path, Path):
                    digest.update(_content(path))
    return digest.digest()


def _content(path: Path) -> bytes:
    try:
        return secret_path(path).read_bytes()
    except OSError:  # the code that needs it reports it
        return b""
