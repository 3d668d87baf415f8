"""The box on the shop's network: the service file for Avahi, which the unit puts in its place (packaging/box/announce)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from common.files import write_whole
from common.sockets import is_loopback
from daemon.settings import Server

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


def announce(server: Server, folder: Path | None) -> None:
    """In the folder of what the unit takes up; None without one. A box that serves itself alone is announced to nobody."""
    if folder is None:
        return
    if server.announce and not is_loopback(server.host):
        write_whole(folder / FILE, SERVICE.format(port=server.port, tls=int(server.has_tls)).encode(), 0o644)
    else:
        (folder / FILE).unlink(missing_ok=True)
