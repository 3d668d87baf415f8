"""All checks, in the order in which somebody at the box would go through them."""

from __future__ import annotations

import asyncio
import time
from importlib.metadata import version
from pathlib import Path

from daemon.doctor.box import check_box_clock, check_disk
from daemon.doctor.certificate import check_certificate
from daemon.doctor.configuration import check_secrets
from daemon.doctor.finding import Finding, fail, ok
from daemon.doctor.ledger import check_ledger
from daemon.doctor.line import check_line
from daemon.doctor.paper import check_isf, check_printer
from daemon.doctor.service import ask, check_service
from daemon.language import tr
from daemon.settings import Settings, SettingsError, check_files, load


async def examine(config: Path | None) -> list[Finding]:
    """Reads only; the line of a machine is left to the daemon when that runs."""
    try:
        settings = load(config)
        check_files(settings)
    except SettingsError as error:
        return [
            fail(
                "configuration",
                error,
                tr("correct that line, then mcfd config check; no configuration yet: sudo mcfd setup"),
            ),
            check_box_clock(),
        ]
    return [ok("configuration", tr("{file} can be read", file=settings.file)), *await _examine(settings)]


async def _examine(settings: Settings) -> list[Finding]:
    now = time.time_ns() // 1_000_000
    service = await asyncio.to_thread(ask, settings.server)
    lines = await asyncio.gather(*(check_line(settings, machine, service, now) for machine in settings.machine))
    ledger = await check_ledger(settings, now)
    return [
        *check_secrets(settings),
        check_service(service, version("mcfd")),
        check_box_clock(),
        check_disk(settings),
        *(finding for line in lines for finding in line),
        *ledger,
        check_certificate(settings),
        *check_isf(settings),
        *await check_printer(settings),
    ]
