"""What tills are shown over the network."""

from __future__ import annotations

from datetime import UTC, datetime

from daemon.doctor import wording
from daemon.doctor.finding import Finding, fail, ok, warn
from daemon.settings import Settings
from daemon.settings.check import is_loopback
from daemon.tls.authority import RENEWED_BEFORE, Shown, read, shown
from daemon.tls.home import SERVER, AuthorityError


def check_certificate(settings: Settings, now: datetime | None = None) -> Finding:
    server = settings.server
    if not (server.tls or server.tls_cert):
        if is_loopback(server.host):
            return ok("certificate", wording.LOOPBACK_ONLY)
        return warn("certificate", wording.PLAIN_LAN(host=server.host), wording.PLAIN_LAN_ADVICE)
    file = server.tls_cert or settings.tls_home / SERVER
    try:
        found = shown(read(file))
    except AuthorityError as error:
        return fail("certificate", error, wording.NO_CERTIFICATE_ADVICE)
    return _dated(found, now or datetime.now(UTC), internal=bool(server.tls))


def _dated(found: Shown, now: datetime, *, internal: bool) -> Finding:
    days = (found.until - now).days
    told = wording.CERTIFICATE_UNTIL(until=f"{found.until:%Y-%m-%d}", days=days, names=", ".join(found.names))
    todo = wording.RENEWED_BY_DAEMON if internal else wording.RENEW_IT
    if not found.since <= now < found.until:
        return fail("certificate", told, todo)
    # The internal one is renewed when a month is left; a few days of grace for a box that was off.
    if now > found.until - (RENEWED_BEFORE * 0.8 if internal else RENEWED_BEFORE):
        return warn("certificate", told, todo)
    return ok("certificate", told)
