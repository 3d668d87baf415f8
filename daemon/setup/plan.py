"""The plan of a setup and its configuration file. `setup --force` keeps all settings that it does not prompt for."""

import os
import socket
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from common.files import sync_path, write_whole
from common.language import tr
from common.sockets import address_of, box_addresses, host_names, in_url, is_loopback
from daemon.core.machine.state import same_machine
from daemon.settings import Settings, SettingsError, load

Table = dict[str, Any]
SERVER_QUESTIONS = ("host", "port", "tls", "allow_plain_lan", "tls_cert", "tls_key")
"""Who may reach mcfd, and how: one question for all of these keys."""


def previous(file: Path) -> Table:
    """The existing configuration; empty if there is none, or it is unreadable."""
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def network_of(table: Table) -> Literal["local", "https", "plain"] | None:
    """Who may reach mcfd with such a configuration; None without one."""
    if "server" not in table and "machine" not in table:
        return None
    server = table.get("server", {})
    if server.get("tls") or server.get("tls_cert"):
        return "https"
    return "local" if is_loopback(str(server.get("host", "127.0.0.1"))) else "plain"


def machine_before(old: Table, nim: str) -> Table:
    found = [each for each in old.get("machine", ()) if same_machine(str(each.get("nim", "")), nim)]
    return dict(found[0]) if found else {}


def merged(new: Table, old: Table, *, explicit_host: bool = False) -> Table:
    """`new` has the findings and answers of setup; all other settings come from `old`."""
    others = {name: value for name, value in old.items() if name not in ("server", "storage", "machine")}
    before = {key: value for key, value in old.get("server", {}).items() if key not in SERVER_QUESTIONS}
    if new["server"].get("tls") is None:
        before.pop("tls_folder", None)
    if network_of(new) == network_of(old):  # no question covers its address or a foreign certificate
        is_new = ("host", "port") if explicit_host else ("port",)
        before = {**old.get("server", {})}
        new = {**new, "server": {key: value for key, value in new["server"].items() if key in is_new}}
    machines = [{**machine_before(old, each["nim"]), **each} for each in new["machine"]]
    return {
        "server": {**before, **new["server"]},
        "storage": {**old.get("storage", {}), **new["storage"]},
        "machine": machines,
        **others,
    }


def differences(old: Table, new: Table) -> Iterator[tuple[str, Any, Any]]:
    """Path, old and new value of each changed key; None for a missing one."""
    before, after = dict(_flat(old, "")), dict(_flat(new, ""))
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            yield path, before.get(path), after.get(path)


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flat(each, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        for index, each in enumerate(value):
            yield from _flat(each, f"{path}[{each.get('nim', index)}]")
    else:
        yield path, value


def written(tables: Table) -> Iterator[str]:
    """The lines of the file: one table for each section; inner tables are inline."""
    for name, value in tables.items():
        for each in value if isinstance(value, list) else [value]:
            yield f"\n[[{name}]]" if isinstance(value, list) else f"\n[{name}]"
            for key, setting in each.items():
                yield f"{key} = {_value(setting)}"


def _value(value: Any) -> str:
    """Strings, numbers, booleans and lists are the same in JSON and TOML; tables are not."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return msgspec.json.encode(value).decode()


Network = Literal["local", "https", "plain"]
NETWORKS: tuple[Network, ...] = ("local", "https", "plain")
MODE = 0o640
DEFAULT_BAUDRATE = 115_200
AVAHI = Path("/etc/avahi/services")
ELSEWHERE = "192.0.2.1"
"""A documentation address (RFC 5737): the route to it shows which own address the network sees. No byte is sent."""


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
    """The configuration to be replaced (`--force`): settings without a question stay."""

    @property
    def scheme(self) -> str:
        return "https" if self.network == "https" else "http"

    @property
    def address(self) -> str:
        """The address to listen on."""
        return self.host or ("127.0.0.1" if self.network == "local" else "0.0.0.0")  # noqa: S104  chosen


def checked(plan: SetupPlan) -> Settings:
    """The settings of a start with this plan. Raises SettingsError, naming the key, if it would be refused."""
    _check_spares(plan)
    with tempfile.TemporaryDirectory(prefix="mcfd-setup-") as folder:
        file = Path(folder) / "mcfd.toml"
        file.write_text(rendered(plan), "utf-8")
        try:
            return load(file, {})
        except SettingsError as error:
            raise SettingsError("", error.key, error.reason) from None


def _check_spares(plan: SetupPlan) -> None:
    """SettingsError for the spare of a machine that has not answered, with what a person may do."""
    for index, machine in enumerate(tables(plan)["machine"]):
        first = str(machine.get("spare_for") or "")
        if first and not any(same_machine(nim, first) for nim, _ in plan.machines):
            reason = tr(
                "{first}, whose spare {spare} is, has not answered. To sell with the spare, leave the configuration as it is: "
                'sudo mcfd machine take-over {first} --reason "…". If {first} is gone for good, take spare_for of {spare} out of the '
                "configuration, or write the NIM of the new machine there, and run this again",
                first=first,
                spare=machine["nim"],
            )
            raise SettingsError("", f"machine[{index}].spare_for", reason)


def write(plan: SetupPlan, path: Path) -> Path | None:
    """Writes the configuration; returns the new name of the old file, if there was one."""
    old_file = None
    if path.exists():
        old_file = path.with_name(f"{path.name}.{datetime.now():%Y%m%d-%H%M%S-%f}")  # noqa: DTZ005  local time
        old_file.hardlink_to(path)
        sync_path(path.parent)
    # The daemon, which is not root, reads it as the group of its folder (debian/mcfd.tmpfiles).
    group = path.parent.stat().st_gid if os.geteuid() == 0 else -1
    write_whole(path, rendered(plan).encode(), MODE, gid=group)
    return old_file


def rendered(plan: SetupPlan) -> str:
    return "\n".join(_lines(plan)) + "\n"


def tables(plan: SetupPlan) -> Table:
    """The whole configuration, including what stays from the old one."""
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
    """URLs of a server on `host`: first the address that the shop's network sees, last the host name."""
    return tuple(f"{scheme}://{in_url(name)}:{port}" for name in _reachable_names(host))


def _reachable_names(host: str) -> tuple[str, ...]:
    listening = address_of(host)
    if listening is None or not listening.is_unspecified:
        return (host,)
    own = [str(address) for address in box_addresses() if address.version == listening.version]
    routed = [_routed()] if listening.version == 4 else []  # noqa: PLR2004
    name, local = host_names()
    return tuple(dict.fromkeys((*filter(None, routed), *own, local if AVAHI.is_dir() else name)))


def _routed() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((ELSEWHERE, 9))
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
        return address
