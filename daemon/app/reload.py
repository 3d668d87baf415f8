"""Reload on SIGHUP: applies what may change and logs what needs a restart; a bad configuration changes nothing."""

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
from common.files import read_file, secret_path
from common.front import BadCertificate
from daemon.core.errors import StorageError
from daemon.settings import Settings, SettingsError, changes, check_files, load
from daemon.upstream.options import BadOptions

log = structlog.get_logger(__name__)

BringIntoForce: TypeAlias = Callable[[], Awaitable[None]]
Prepare: TypeAlias = Callable[[Settings], BringIntoForce]
"""Checks new settings and raises one of `REFUSALS` if they do not work; the returned step applies them."""

FINISH_EVERY = 5.0
"""Seconds between two tries to apply a part, for example one that writes while the disk is full."""

REFUSALS = (SettingsError, BadOptions, BadCertificate)


@dataclass
class ReloadedPart:
    """It is taken anew if something in its `sections`, or in the files that these name, has changed. Otherwise it runs
    on, and a reload calls `unchanged`. A part without sections is always taken."""

    prepare: Prepare
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
            steps = [(part, part.prepare(found.in_force)) for part in concerned]
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
        """Tries the parts again that a reload could not apply, with the settings in force."""
        left, self._unfinished = self._unfinished, []
        for part in left:
            try:
                step = part.prepare(self._settings)
            except REFUSALS as error:  # a file that it names has changed since
                log.error("reload.refused", reason=str(error))  # noqa: TRY400  one line, not a traceback
                continue
            await self._came_into_force(part, step, is_again=True)
        if not self.is_unfinished:
            log.info("reload.finished")

    async def _came_into_force(
        self, part: ReloadedPart, bring_into_force: BringIntoForce, *, is_again: bool = False
    ) -> bool:
        """A part that fails does not stop the others. A StorageError is retried until it is over; any other error is a
        bug of ours and is retried at the next reload, even if nothing has changed."""
        part.source_digest = b""
        try:
            await bring_into_force()
        except StorageError as error:
            self._unfinished.append(part)
            if not is_again:
                log.error("reload.put_off", part=_name(part), reason=str(error))  # noqa: TRY400  no traceback
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
    """SHA-256 of the values in `sections` and of the files that they name."""
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
        return read_file(secret_path(path))
    except OSError:  # the code that needs it reports it
        return b""
