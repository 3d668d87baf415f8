"""What `mcfd setup` does, at a terminal and in the page: whatever can fail comes before the configuration is put in its place."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from common.passwords import hash_password, make_password
from daemon.cli.failures import Failure
from daemon.cli.ledger import now, whoever_types, with_ledger
from daemon.cli.setup_shown import Done, Login
from daemon.core.machine.nim import same_machine
from daemon.language import tr
from daemon.settings import Settings

if TYPE_CHECKING:
    from daemon.setup.plan import Network, Plan
    from daemon.setup.search import Asked
    from daemon.store import Store


@dataclass(frozen=True)
class Wanted:
    """What the command line says; None and empty where it says nothing."""

    config: Path
    ports: tuple[str, ...]
    baudrate: int
    nims: tuple[str, ...]
    network: Network | None
    host: str | None
    http_port: int
    ledger: Path
    isf: str | None
    operator_id: str
    operator_name: str | None
    key: bool
    label: str
    person: str | None
    yes: bool
    force: bool
    as_json: bool

    @property
    def may_ask(self) -> bool:
        return not self.yes and not self.as_json and sys.stdin.isatty()


def check_place(wanted: Wanted) -> Path:
    """Where the configuration goes, before a port is touched for nothing."""
    place = wanted.config.absolute()
    try:
        exists = place.exists()
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise Failure(tr("{folder} cannot be written to: run it with sudo", folder=place.parent)) from None
    if exists and not wanted.force:
        raise Failure(tr("{path} exists already; --force replaces it and keeps the old one beside it", path=place))
    if not os.access(place.parent, os.W_OK):
        raise Failure(tr("{folder} cannot be written to: run it with sudo", folder=place.parent))
    return place


def authority(settings: Settings) -> Path | None:
    """The root certificate that tills have to trust; one that is there already stays."""
    if not settings.server.tls:
        return None
    from daemon.cli.commands.box.tls import ensure

    return ensure(settings, datetime.now(UTC))


def set_up(wanted: Wanted, plan: Plan, settings: Settings, asked: Asked) -> Done:
    from daemon.setup.address import base_url

    key, old = "", tuple[str, ...]()
    if settings.storage.path.exists():
        found = with_ledger(settings, lambda store: store.api_keys.list_keys())
        old = tuple(
            f"{each.id} ({each.label})" if each.label else str(each.id)
            for each in found
            if same_machine(each.nim, asked.nim) and not each.revoked_at
        )
    if wanted.key:
        key = with_ledger(
            settings, lambda store: store.api_keys.create(asked.nim, "live", wanted.label, at=now()), make=True
        )
    return Done(asked, base_url(plan.scheme, plan.host, plan.port), key, old)


def first_person(name: str, settings: Settings) -> Login | None:
    """The technician who lets the others in; nobody is made where there is somebody already, or without a name."""
    if not name:
        return None
    password = make_password()
    hashed = hash_password(password)

    async def make(store: Store) -> bool:
        if any(not person.disabled_at for person in await store.people.all()):
            return False
        await store.people.create(name, "technician", hashed, at=now(), by=whoever_types())
        return True

    return Login(name, password) if with_ledger(settings, make, make=True) else None
