"""All checks, in the order in which a technician would go through them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

from common.language import tr
from daemon.doctor.wording import CheckResult, fail, ok
from daemon.settings import SettingsError, check_files, load


async def examine(config: Path | None) -> AsyncGenerator[CheckResult, None]:
    """Each as soon as it is found, and the first before the others are loaded. Reads only; the line of a machine is left to the daemon when that runs."""
    try:
        settings = load(config)
        check_files(settings)
    except SettingsError as error:
        yield fail(
            "configuration",
            error,
            tr("correct that line, then mcfd config check; no configuration yet: sudo mcfd setup"),
        )
        from daemon.doctor.box import check_box_clock  # noqa: PLC0415  as below

        yield check_box_clock()
        return
    yield ok("configuration", tr("{file} can be read", file=settings.file))
    from daemon.doctor.checks import check_all  # noqa: PLC0415  what is found first is printed first

    async for finding in check_all(settings):
        yield finding
