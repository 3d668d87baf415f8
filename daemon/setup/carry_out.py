"""A setup carried out, for terminal and page: whatever can fail comes before the configuration is put in its place, so that a setup
that broke off is simply done again."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from common.passwords import hash_password, make_password
from daemon.core.machine.nim import same_machine
from daemon.ledger_access import now, shell_user, with_ledger
from daemon.settings import Settings
from daemon.setup.address import base_url
from daemon.setup.authority import ensure_authority
from daemon.setup.plan import SetupPlan, checked, write
from daemon.setup.request import FirstPerson, MachineAccess, SetupResult

if TYPE_CHECKING:
    from daemon.core.keys import ApiKey
    from daemon.store import Store


def carry_out(plan: SetupPlan, place: Path, *, label: str | None, person: FirstPerson | None) -> SetupResult:
    """Authority, keys with that label (None: no keys), first person, configuration. SettingsError, AuthorityError, StorageError, OSError."""
    settings = checked(plan)
    root = ensure_authority(settings) if settings.server.tls else None
    older = with_ledger(settings, lambda store: store.api_keys.list_keys()) if settings.storage.path.exists() else ()
    machines = tuple(_access(settings, plan, nim, older, label) for nim, _ in plan.machines)
    made, session = _first_person(settings, person) if person else (None, "")
    return SetupResult(
        config=place,
        previous=write(plan, place),
        root=root,
        machines=machines,
        person=made,
        session=session,
        scheme=plan.scheme,
        host=plan.address,
        port=plan.port,
    )


def _access(settings: Settings, plan: SetupPlan, nim: str, older: Sequence[ApiKey], label: str | None) -> MachineAccess:
    key = ""
    if label is not None:
        key = with_ledger(settings, lambda store: store.api_keys.create(nim, "live", label, at=now()), make=True)
    names = [
        f"{each.id} ({each.label})" if each.label else str(each.id)
        for each in older
        if same_machine(each.nim, nim) and not each.revoked_at
    ]
    return MachineAccess(nim, base_url(plan.scheme, plan.address, plan.port), key, tuple(names))


def _first_person(settings: Settings, person: FirstPerson) -> tuple[FirstPerson | None, str]:
    """Who was made, and what the cookie of their session holds. One who brings a password and whom a setup that broke off has left gets
    this password."""
    password = person.password or make_password()
    hashed, token, by = hash_password(password), secrets.token_urlsafe(32), shell_user()

    async def make(store: Store) -> str | None:
        at = now()
        if not person.password and any(not known.disabled_at for known in await store.people.all()):
            return None
        known = store.people.find(person.name)
        if known is None or known[0].disabled_at or known[0].role != "technician":
            await store.people.create(person.name, "technician", hashed, at=at, by=by)
        else:
            await store.people.set_password(person.name, hashed, at=at, by=by)
        if not person.password:
            return ""
        if made := store.people.find(person.name):
            digest = hashlib.sha256(token.encode()).digest()
            await store.people.open_session(made[0].id, person.name, digest, at=at, by=by)
        return token

    session = with_ledger(settings, make, make=True)
    return (None, "") if session is None else (FirstPerson(person.name, password), session)
