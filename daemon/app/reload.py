"""SIGHUP: the configuration is read again; what may change does, the rest is named, and a bad file changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import structlog

from daemon import logs, notify
from daemon.api.server import BadCertificate
from daemon.settings import Settings, SettingsError, changes, check_files, load
from daemon.upstream.options import BadOptions

log = structlog.get_logger(__name__)

BringIntoForce: TypeAlias = Callable[[], Awaitable[None]]
Part: TypeAlias = Callable[[Settings], BringIntoForce]
"""Looks at new settings, raises (`REFUSALS`) if it cannot work with them, and changes nothing before it is called back."""

REFUSALS = (SettingsError, BadOptions, BadCertificate)


class Reloader:
    def __init__(self, settings: Settings, parts: Sequence[Part]) -> None:
        self._settings = settings
        self._parts = parts

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
            steps = [part(found.in_force) for part in self._parts]
        except REFUSALS as error:
            log.error("reload.refused", reason=str(error))  # noqa: TRY400  one line, not a traceback
            return
        self._settings = found.in_force
        logs.set_level(found.in_force.logs.level)
        for step in steps:
            await step()
        log.info("reloaded", changed=found.reloaded)
        if found.restart:
            log.warning("reload.needs_restart", keys=found.restart)
