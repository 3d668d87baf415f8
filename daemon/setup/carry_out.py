"""Carries out a setup, for terminal and page: all that can fail comes before the configuration is put in place, so that
an interrupted setup is simply repeated."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from common.passwords import hash_password, make_password
from common.sockets import box_names
from daemon.core.machine.state import same_machine
from daemon.ledger_access import change, read_rows
from daemon.operations import CreateFirstPerson, CreateKey, NoteAction
from daemon.owner import as_owner
from daemon.settings import Settings
from daemon.settings.check import AUTHORITY
from daemon.setup.plan import SetupPlan, base_urls, checked, write
from daemon.setup.request import FirstPerson, MachineAccess, SetupResult

if TYPE_CHECKING:
    from daemon.core.keys import ApiKey
    from daemon.tls.authority import CertificateInfo


def carry_out(
    plan: SetupPlan, place: Path, *, label: str | None, person: FirstPerson | None, authority: Path | None = None
) -> SetupResult:
    """Makes authority, keys with that label (None: no keys), first person, configuration. `authority` is the folder of
    one that browsers have seen; a new box takes it over. SettingsError, AuthorityError, StorageError, OSError."""
    from daemon.store.tables.keys import list_keys  # noqa: PLC0415  rarely needed

    settings = checked(plan)
    root = ensure_authority(settings, authority) if settings.server.tls else None
    older = read_rows(settings, list_keys) if settings.storage.path.exists() else ()
    urls = base_urls(plan.scheme, plan.address, plan.port)
    machines = tuple(_access(settings, urls[0], nim, older, label) for nim, _ in plan.machines)
    new_person, session = _first_person(settings, person) if person else (None, "")
    return SetupResult(
        config=place,
        previous=write(plan, place),
        root=root,
        machines=machines,
        person=new_person,
        session=session,
        scheme=plan.scheme,
        host=plan.address,
        port=plan.port,
        urls=urls,
    )


def _access(settings: Settings, url: str, nim: str, older: Sequence[ApiKey], label: str | None) -> MachineAccess:
    key = "" if label is None else change(settings, CreateKey(nim, "live", label), make=True)
    names = [
        f"{each.id} ({each.label})" if each.label else str(each.id)
        for each in older
        if same_machine(each.nim, nim) and not each.revoked_at
    ]
    return MachineAccess(nim, url, key, tuple(names))


def _first_person(settings: Settings, person: FirstPerson) -> tuple[FirstPerson | None, str]:
    """The new person and their session's cookie. A person left by an interrupted setup gets the given password."""
    password, token = person.password or make_password(), secrets.token_urlsafe(32)
    session = hashlib.sha256(token.encode()).digest() if person.password else None
    if not change(settings, CreateFirstPerson(person.name, hash_password(password), session), make=True):
        return None, ""
    return FirstPerson(person.name, password), token if session else ""


def make_authority(settings: Settings, *, replace: bool = False) -> CertificateInfo:
    """Raises AuthorityError if there is one already, unless `replace`."""
    from daemon.tls.authority import create  # noqa: PLC0415  # cryptography, for TLS only

    with as_owner(settings.tls_home):
        return create(settings.tls_home, _names(settings), datetime.now(UTC), replace=replace)


def ensure_authority(settings: Settings, ready: Path | None = None) -> Path:
    """Returns the path of the authority's certificate. If necessary, takes it over from `ready`, makes it, or renews
    its server certificate. Raises AuthorityError, StorageError, OSError."""
    from daemon.tls.authority import renew_if_due, take_over  # noqa: PLC0415  # cryptography, for TLS only

    root = settings.tls_home / AUTHORITY
    with as_owner(settings.tls_home):
        is_new = not root.exists()
        if is_new and ready:
            take_over(ready, settings.tls_home)
        if root.exists():
            renew_if_due(settings.tls_home, _names(settings), datetime.now(UTC))
    if not root.exists():
        make_authority(settings)
    if is_new:
        note_authority(settings)
    return root


def note_authority(settings: Settings) -> None:
    """Adds it to the audit log, if there is a ledger. Raises StorageError."""
    if not settings.storage.path.exists():
        return
    from daemon.tls.authority import describe, read  # noqa: PLC0415  # cryptography, for TLS only

    with as_owner(settings.tls_home):
        fingerprint = describe(read(settings.tls_home / AUTHORITY)).fingerprint
    change(settings, NoteAction("authority.created", str(settings.tls_home), {"fingerprint": fingerprint}))


def _names(settings: Settings) -> tuple[str, ...]:
    return box_names(settings.server.host, settings.server.allowed_hosts)
