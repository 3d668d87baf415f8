"""What tills are shown over the network."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from common.files import secret_path
from common.language import Counted, tr
from common.sockets import is_loopback
from daemon.doctor.wording import CheckResult, fail, ok, warn
from daemon.settings import Settings
from daemon.settings.check import secret_files
from daemon.tls.authority import RENEWED_BEFORE, Shown, read, shown
from daemon.tls.home import SERVER, AuthorityError
from daemon.upstream.options import BadOptions
from daemon.upstream.signing import read_keys


def check_certificate(settings: Settings, now: datetime | None = None) -> CheckResult:
    server = settings.server
    if not (server.tls or server.tls_cert):
        if is_loopback(server.host):
            return ok("certificate", tr("not needed: this box alone"))
        return warn(
            "certificate",
            tr("{host} in clear: keys cross the network in clear", host=server.host),
            tr('sudo mcfd tls init, then tls = "internal" in [server]'),
        )
    file = server.tls_cert or settings.tls_home / SERVER
    try:
        found = shown(read(file))
    except AuthorityError as error:
        return fail("certificate", error, tr("sudo mcfd tls init, or correct tls_cert in [server]"))
    return _dated(found, now or datetime.now(UTC), internal=bool(server.tls))


def _dated(found: Shown, now: datetime, *, internal: bool) -> CheckResult:
    days = (found.until - now).days
    told = tr(
        Counted(
            "until {until} ({count} day) for {names}",
            "until {until} ({count} days) for {names}",
            days,
            until=f"{found.until:%Y-%m-%d}",
            names=", ".join(found.names),
        )
    )
    todo = (
        tr("the daemon renews it at its start: sudo systemctl restart mcfd")
        if internal
        else tr("have it renewed, replace both files, sudo systemctl reload mcfd")
    )
    if not found.since <= now < found.until:
        return fail("certificate", told, todo)
    # The internal one is renewed when a month is left; a few days of grace for a box that was off.
    if now > found.until - (RENEWED_BEFORE * 0.8 if internal else RENEWED_BEFORE):
        return warn("certificate", told, todo)
    return ok("certificate", told)


OTHERS = 0o077


def check_secrets(settings: Settings) -> Iterator[CheckResult]:
    """Readable by their owner alone, and the ones that sign are keys."""
    found = []
    for at, path in secret_files(settings):
        file = secret_path(path)
        if file.stat().st_mode & OTHERS:
            found.append(
                warn(
                    "secrets",
                    tr("{file} ({key}) can be read by others", file=file, key=at),
                    tr("sudo chmod 600 {file}", file=file),
                )
            )
    upstream = settings.upstream
    if upstream is not None:
        try:
            read_keys([secret_path(path) for path in (upstream.secret_file, upstream.key_file) if path])
        except BadOptions as error:
            found.append(
                fail(
                    "secrets",
                    error,
                    tr("put back the secret that headquarters gave (one line whsec_…), or mcfd upstream keygen"),
                )
            )
    yield from found or [ok("secrets", tr("readable by their owner alone"))]
