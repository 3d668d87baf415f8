"""The box's status: for `systemctl status mcfd` the address and the state of each machine; for the shop's network
Avahi's service file, which the unit installs (packaging/box/announce)."""

import asyncio
from pathlib import Path
from typing import Final

from common import notify
from common.files import write_whole
from common.language import ambient, tr, translate
from common.sockets import is_loopback
from daemon.app.runtime import Runtime
from daemon.core.machine.state import short_nim
from daemon.settings import Server
from daemon.usecases.worker.machine_worker import MachineWorker

STATUS_SECONDS = 1.0
LONGEST = 120
"""Characters of one machine's trouble, at most."""

FILE: Final = "mcfd.service"
SERVICE: Final = """\
<?xml version="1.0" standalone="no"?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<!-- Written by mcfd at each start ([server] announce). -->
<service-group>
  <name replace-wildcards="yes">mcfd on %h</name>
  <service>
    <type>_mcfd._tcp</type>
    <port>{port}</port>
    <txt-record>path=/v1</txt-record>
    <txt-record>schema=/schema</txt-record>
    <txt-record>tls={tls}</txt-record>
  </service>
</service-group>
"""


async def report(runtime: Runtime, address: str) -> None:
    """Until cancelled. The loop that does the work also feeds the watchdog: a loop that hangs stops feeding it."""
    interval = notify.watchdog_interval()
    last_text = ""
    while True:
        if interval is not None:
            notify.watchdog()
        text = status_line(runtime, address)
        if text != last_text:
            notify.status(text)
            last_text = text
        await asyncio.sleep(min(interval or STATUS_SECONDS, STATUS_SECONDS))


def status_line(runtime: Runtime, address: str) -> str:
    off = {short_nim(machine.nim) for machine in runtime.settings.machine if not machine.enabled}
    workers = [worker for worker in runtime.workers if worker.book.mode == "live"]
    disk = [str(translate(trouble, ambient()))[:LONGEST]] if (trouble := runtime.disk_trouble()) else []
    return "; ".join([address, *disk, *(_machine(worker, off=short_nim(worker.book.nim) in off) for worker in workers)])


def _machine(worker: MachineWorker, *, off: bool) -> str:
    if off:
        return tr("{nim}: switched off in the configuration", nim=worker.book.nim)
    if worker.obstacle:
        return tr(
            "{nim}: needs a decision, mcfd machine settle ({found})",
            nim=worker.book.nim,
            found=worker.obstacle.in_language(ambient())[:LONGEST],
        )
    if not worker.connected:
        return tr(
            "{nim}: offline ({why})", nim=worker.book.nim, why=worker.offline_reason.in_language(ambient())[:LONGEST]
        )
    return tr("{nim}: certifies", nim=worker.book.nim)


def announce(server: Server, folder: Path | None) -> None:
    """Writes Avahi's service file into the unit's folder, if there is one. A box on loopback is not announced."""
    if folder is None:
        return
    if server.announce and not is_loopback(server.host):
        write_whole(folder / FILE, SERVICE.format(port=server.port, tls=int(server.has_tls)).encode(), 0o644)
    else:
        (folder / FILE).unlink(missing_ok=True)
