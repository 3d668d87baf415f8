"""What `setup --force` keeps of the configuration that it replaces: every setting that it does not ask about."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from common.sockets import is_loopback
from daemon.core.machine.state import same_machine

Table = dict[str, Any]
SERVER_QUESTIONS = ("host", "port", "tls", "allow_plain_lan", "tls_cert", "tls_key")
"""Who may reach mcfd, and how: one question for all of them."""


def previous(file: Path) -> Table:
    """The configuration as it stands there; empty when there is none, or it cannot be read."""
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def network_of(table: Table) -> Literal["local", "https", "plain"] | None:
    """Who may reach the mcfd of such a configuration; None where there is none."""
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
    """`new` is what setup found and the answers to its questions; `old` gives what it says nothing about."""
    others = {name: value for name, value in old.items() if name not in ("server", "storage", "machine")}
    before = {key: value for key, value in old.get("server", {}).items() if key not in SERVER_QUESTIONS}
    if new["server"].get("tls") is None:
        before.pop("tls_folder", None)
    if network_of(new) == network_of(old):  # its address, and a foreign certificate, are in no question
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
    """Path of each key that is not the same any more, what it was and what it is; None where it is not there."""
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
    """The lines of the file: one table for each section, tables in them on one line."""
    for name, value in tables.items():
        for each in value if isinstance(value, list) else [value]:
            yield f"\n[[{name}]]" if isinstance(value, list) else f"\n[{name}]"
            for key, setting in each.items():
                yield f"{key} = {_value(setting)}"


def _value(value: Any) -> str:
    """JSON's texts, numbers, truths and lists are TOML's too; its tables are not."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return msgspec.json.encode(value).decode()
