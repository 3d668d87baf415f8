"""The box's own authority, made or renewed from outside the daemon."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from daemon.ledger_access import change
from daemon.operations import NoteAuthority
from daemon.owner import as_owner
from daemon.settings import Settings
from daemon.settings.check import AUTHORITY
from daemon.tls.authority import Shown, create, read, renew_if_due, shown
from daemon.tls.names import box_names


def make_authority(settings: Settings, *, replace: bool = False) -> Shown:
    """AuthorityError where there is one already, unless it is replaced."""
    with as_owner(settings.tls_home):
        return create(settings.tls_home, _names(settings), datetime.now(UTC), replace=replace)


def ensure_authority(settings: Settings) -> Path:
    """The authority's certificate; made, or its server certificate renewed, where that is needed. AuthorityError, StorageError."""
    root = settings.tls_home / AUTHORITY
    with as_owner(settings.tls_home):
        if exists := root.exists():
            renew_if_due(settings.tls_home, _names(settings), datetime.now(UTC))
    if not exists:
        make_authority(settings)
        note_authority(settings)
    return root


def note_authority(settings: Settings) -> None:
    """In the audit log, where there is a ledger already. StorageError."""
    if not settings.storage.path.exists():
        return
    with as_owner(settings.tls_home):
        fingerprint = shown(read(settings.tls_home / AUTHORITY)).fingerprint
    change(settings, NoteAuthority(str(settings.tls_home), fingerprint))


def _names(settings: Settings) -> tuple[str, ...]:
    return box_names(settings.server.host, settings.server.allowed_hosts)
