"""All checks that need a readable configuration, in the order of the output."""

import asyncio
from collections.abc import AsyncGenerator
from importlib.metadata import version

from common.wire.instants import now_millis
from daemon.core.certified_core import core_digest
from daemon.doctor import box
from daemon.doctor.ledger import check_ledger
from daemon.doctor.line import check_line
from daemon.doctor.service import ask, check_front, check_service
from daemon.doctor.wording import CheckResult
from daemon.settings import Settings
from daemon.time_sync import is_synchronised


async def check_all(settings: Settings) -> AsyncGenerator[CheckResult, None]:
    for finding in box.check_secrets(settings):
        yield finding
    now = now_millis()
    service = await asyncio.to_thread(ask, settings.server)
    yield check_service(service, version("mcfd"))
    yield box.check_box_clock()
    yield box.check_disk(settings)
    is_box_right = await is_synchronised()
    lines = await asyncio.gather(
        *(check_line(settings, machine, service, now, is_box_right=is_box_right) for machine in settings.machine)
    )
    found = (*(finding for line in lines for finding in line), *await check_ledger(settings, now))
    # The daemon and the ledger tell the same of a machine in attention.
    once = {(each.nim, each.found): each for each in found}
    for finding in (
        *once.values(),
        box.check_certificate(settings),
        *check_front(settings.server),
        *box.check_isf(settings),
        *box.check_homologation(settings, core_digest()),
        *box.check_upgrade(settings),
        *box.check_company(settings),
        *box.check_logo(settings),
        *await box.check_printer(settings),
    ):
        yield finding
