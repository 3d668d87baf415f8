"""What tills are shown over the network."""

from __future__ import annotations

from datetime import UTC, datetime

from common.language import Counted, tr
from common.network import is_loopback
from daemon.doctor.finding import CheckResult, fail, ok, warn
from daemon.settings import Settings
from daemon.tls.authority import RENEWED_BEFORE, Shown, read, shown
from daemon.tls.home import SERVER, AuthorityError


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
