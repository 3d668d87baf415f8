"""What `systemctl status mcfd` shows below the unit: where mcfd serves, and how each machine is."""

from __future__ import annotations

import asyncio

from daemon import notify, texts
from daemon.app.house import House
from daemon.usecases.desk import Desk

STATUS_SECONDS = 1.0
LONGEST = 120
"""Characters of one machine's trouble."""


async def report(house: House, address: str) -> None:
    """Until cancelled; also feeds the watchdog, from the loop that does the work: one that hangs does not say that it is well."""
    interval = notify.watchdog_interval()
    told = ""
    while True:
        if interval is not None:
            notify.watchdog()
        text = status_line(house, address)
        if text != told:
            notify.status(text)
            told = text
        await asyncio.sleep(min(interval or STATUS_SECONDS, STATUS_SECONDS))


def status_line(house: House, address: str) -> str:
    off = {machine.nim for machine in house.settings.machine if not machine.enabled}
    desks = [desk for desk in house.desks if desk.book.mode == "live"]
    return "; ".join([address, *(_machine(desk, off=desk.book.nim in off) for desk in desks)])


def _machine(desk: Desk, *, off: bool) -> str:
    if off:
        return texts.SWITCHED_OFF(nim=desk.book.nim)
    if desk.attention:
        return texts.NEEDS_ATTENTION(nim=desk.book.nim, found=desk.attention[:LONGEST])
    if not desk.connected:
        return texts.NOT_CONNECTED(nim=desk.book.nim, why=desk.offline_reason[:LONGEST])
    return texts.CERTIFIES(nim=desk.book.nim)
