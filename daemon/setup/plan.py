"""What is to be written, as the configuration file that says so."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from common.files import sync_path, write_whole
from common.language import tr
from common.sockets import address_of, box_addresses, host_names, in_url
from daemon.settings import Settings, SettingsError, load
from daemon.setup.previous import Table, merged, written

Network = Literal["local", "https", "plain"]
NETWORKS: tuple[Network, ...] = ("local", "https", "plain")
MODE = 0o640
DEFAULT_BAUDRATE = 115_200
AVAHI = Path("/etc/avahi/services")
ELSEWHERE = "192.0.2.1"
"""A documentation address (RFC 5737): the route to it tells which of our own addresses the network sees. No byte is sent."""


@dataclass(frozen=True, kw_only=True)
class SetupPlan:
    """`machines` are pairs of NIM and port. `network`: who may reach mcfd, and how."""

    machines: tuple[tuple[str, str], ...]
    ledger: Path
    network: Network = "local"
    host: str = ""
    """empty: by the network"""
    port: int = 8480
    baudrate: int = DEFAULT_BAUDRATE
    isf: str = "1"
    operator_id: str = "1"
    operator_name: str = "Caisse 1"
    before: Mapping[str, Any] = field(default_factory=dict)
    """The configuration that is replaced (`--force`): what no question was about stays as it is."""

    @property
    def scheme(self) -> str:
        return "https" if self.network == "https" else "http"

    @property
    def address(self) -> str:
        """To listen on."""
        return self.host or ("127.0.0.1" if self.network == "local" else "0.0.0.0")  # noqa: S104  chosen


def checked(plan: SetupPlan) -> Settings:
    """The settings that a start would have; SettingsError, naming the key, when it would refuse them."""
    with tempfile.TemporaryDirectory(prefix="mcfd-setup-") as folder:
        file = Path(folder) / "mcfd.toml"
        file.write_text(rendered(plan), "utf-8")
        try:
            return load(file, {})
        except SettingsError as error:
            raise SettingsError("", error.key, error.reason) from None


def write(plan: SetupPlan, path: Path) -> Path | None:
    """Puts the configuration in its place; what was there before is kept under the name that comes back."""
    old_file = None
    if path.exists():
        old_file = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S-%f}")  # noqa: DTZ005  for who sits at the box
        old_file.hardlink_to(path)
        sync_path(path.parent)
    # The daemon, which is not root, reads it through the group of its folder (debian/mcfd.tmpfiles).
    group = path.parent.stat().st_gid if os.geteuid() == 0 else -1
    write_whole(path, rendered(plan).encode(), MODE, gid=group)
    return old_file


def rendered(plan: SetupPlan) -> str:
    return "\n".join(_lines(plan)) + "\n"


def tables(plan: SetupPlan) -> Table:
    """The whole configuration, with what is kept of the one before."""
    return merged(_planned_table(plan), dict(plan.before), explicit_host=bool(plan.host))


def _lines(plan: SetupPlan) -> Iterator[str]:
    yield "# " + tr("Written by `mcfd setup`. Every key: `mcfd config doc`; after a change: `mcfd config check`.")
    yield from written(tables(plan))
    if "upstream" not in plan.before:
        yield "\n# " + tr("To send closures to headquarters: a section [upstream], see /etc/mcfd/mcfd.toml.example.")


def _planned_table(plan: SetupPlan) -> Table:
    server: Table = {"host": plan.address, "port": plan.port}
    if plan.network == "https":
        server["tls"] = "internal"
    if plan.network == "plain":
        server["allow_plain_lan"] = True
    machines: list[Table] = []
    for nim, port in plan.machines:
        machine: Table = {"nim": nim, "port": port}
        if plan.baudrate != DEFAULT_BAUDRATE:
            machine["baudrate"] = plan.baudrate
        machines.append(
            {**machine, "isf": plan.isf, "operator_id": plan.operator_id, "operator_name": plan.operator_name}
        )
    return {"server": server, "storage": {"path": str(plan.ledger)}, "machine": machines}


def base_urls(scheme: str, host: str, port: int) -> tuple[str, ...]:
    """By which a till or a browser reaches what listens on `host`: first the address that the shop's network sees, last the host name."""
    return tuple(f"{scheme}://{in_url(name)}:{port}" for name in _reachable_names(host))


def _reachable_names(host: str) -> tuple[str, ...]:
    listening = address_of(host)
    if listening is None or not listening.is_unspecified:
        return (host,)
    own = [str(address) for address in box_addresses() if address.version == listening.version]
    routed = [_routed()] if listening.version == 4 else []  # noqa: PLR2004
    return tuple(dict.fromkeys((*filter(None, routed), *own, _network_name())))


def _network_name() -> str:
    """By which the shop's network knows the box: mDNS's where Avahi is installed."""
    own, local = host_names()
    return local if AVAHI.is_dir() else own


def _routed() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((ELSEWHERE, 9))
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
        return address
