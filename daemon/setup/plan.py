"""What is to be written, as the configuration file that says so."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from daemon.files import sync_folder, write_whole
from daemon.language import tr
from daemon.settings import Settings, SettingsError, load

Network = Literal["local", "https", "plain"]
NETWORKS: tuple[Network, ...] = ("local", "https", "plain")
MODE = 0o640
DEFAULT_BAUDRATE = 115_200


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`machines` are pairs of NIM and port. `network`: who may reach mcfd, and how."""

    machines: tuple[tuple[str, str], ...]
    ledger: Path
    network: Network = "local"
    host: str = "127.0.0.1"
    port: int = 8480
    baudrate: int = DEFAULT_BAUDRATE
    isf: str = "1"
    operator_id: str = "1"
    operator_name: str = "Caisse 1"

    @property
    def scheme(self) -> str:
        return "https" if self.network == "https" else "http"


def default_host(network: Network) -> str:
    return "127.0.0.1" if network == "local" else "0.0.0.0"  # noqa: S104  asked for


def checked(plan: Plan) -> Settings:
    """The settings that a start would have; SettingsError, naming the key, when it would refuse them."""
    with tempfile.TemporaryDirectory(prefix="mcfd-setup-") as folder:
        file = Path(folder) / "mcfd.toml"
        file.write_text(rendered(plan), "utf-8")
        try:
            return load(file, {})
        except SettingsError as error:
            raise SettingsError("", error.key, error.reason) from None


def write(plan: Plan, path: Path) -> Path | None:
    """Puts the configuration in its place; what was there before is kept under the name that comes back."""
    kept = None
    if path.exists():
        kept = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S}")  # noqa: DTZ005  for who sits at the box
        kept.hardlink_to(path)
        sync_folder(path.parent)
    # The daemon, which is not root, reads it through the group of its folder (systemd/mcfd.tmpfiles).
    group = path.parent.stat().st_gid if os.geteuid() == 0 else -1
    write_whole(path, rendered(plan).encode(), MODE, gid=group)
    return kept


def rendered(plan: Plan) -> str:
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield "# " + tr("Written by `mcfd setup`. Every key: `mcfd config doc`; after a change: `mcfd config check`.")
    yield "\n[server]"
    yield _line("host", plan.host)
    yield _line("port", plan.port)
    if plan.network == "https":
        yield _line("tls", "internal")
    if plan.network == "plain":
        yield _line("allow_plain_lan", True)
    yield "\n[storage]"
    yield _line("path", str(plan.ledger))
    for nim, port in plan.machines:
        yield "\n[[machine]]"
        yield _line("nim", nim)
        yield _line("port", port)
        if plan.baudrate != DEFAULT_BAUDRATE:
            yield _line("baudrate", plan.baudrate)
        yield _line("isf", plan.isf)
        yield _line("operator_id", plan.operator_id)
        yield _line("operator_name", plan.operator_name)
    yield "\n# " + tr("To send closures to headquarters: a section [upstream], see /etc/mcfd/mcfd.toml.example.")


def _line(key: str, value: str | int) -> str:
    """JSON's texts, numbers and truths are TOML's too."""
    return f"{key} = {msgspec.json.encode(value).decode()}"
