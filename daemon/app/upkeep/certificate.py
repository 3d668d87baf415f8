"""What the server shows to tills: files of the operator's, or a certificate of the box's own authority, kept fresh."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import structlog

from common.files import secret_path
from common.front import BadCertificate, FrontError, FrontServer, check_pair
from common.language import Text
from common.language.system import reason
from daemon.app.reload import BringIntoForce
from daemon.settings import Settings
from daemon.tls.names import SERVER, AuthorityError, box_names

log = structlog.get_logger(__name__)

CHECK_SECONDS = 3600.0
"""Often enough for an address that changes (DHCP); a certificate is renewed a month before its end."""


class Certificate:
    """`files` are certificate chain and private key, None without TLS."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._last_error = ""

    @property
    def files(self) -> tuple[Path, Path] | None:
        server = self._settings.server
        if server.tls:
            pem = self._settings.tls_home / SERVER
            return pem, pem
        if server.tls_cert and server.tls_key:
            return secret_path(server.tls_cert), secret_path(server.tls_key)
        return None

    def freshen(self) -> None:
        """Renews what is of our own authority and due; AuthorityError when it cannot be, and then the one there goes on."""
        server = self._settings.server
        if not server.tls:
            return
        from daemon.tls.authority import check_key, renew_if_due  # noqa: PLC0415  # 8 MB that a box without its own TLS is spared

        folder = self._settings.tls_home
        try:
            renewed = renew_if_due(folder, box_names(server.host, server.allowed_hosts), datetime.now(UTC))
            check_key(folder)
        except OSError as error:
            raise AuthorityError(Text("{name}: {found}", name=folder, found=reason(error))) from error
        if renewed:
            log.info("certificate.renewed", until=renewed.until, names=renewed.names, fingerprint=renewed.fingerprint)

    def freshen_at_start(self) -> None:
        """As `freshen`; while the certificate that is there is good, trouble with its authority is logged and stops no start."""
        if not self._settings.server.tls:
            return
        from daemon.tls.authority import is_good  # noqa: PLC0415  as above

        try:
            self.freshen()
        except AuthorityError as error:
            if not is_good(self._settings.tls_home, datetime.now(UTC)):
                raise
            log.warning("certificate.not_renewed", reason=str(error))
            self._last_error = str(error)

    def pem(self) -> bytes | None:
        """Chain and private key; BadCertificate, also when they do not fit each other. None without TLS."""
        return check_pair(*self.files) if self.files else None

    async def keep(self, front: FrontServer | None) -> None:
        """Until cancelled. Trouble is logged when it begins or changes, and certifications go on."""
        while self._settings.server.tls:
            await asyncio.sleep(CHECK_SECONDS)
            await self._refresh(front)

    def reloading(self, front: FrontServer | None) -> BringIntoForce:
        """On SIGHUP: what is in the files now, checked before anything changes."""
        self.pem()

        async def into_force() -> None:
            await self._refresh(front)

        return into_force

    async def _refresh(self, front: FrontServer | None) -> None:
        try:
            self.freshen()
            pem = self.pem()
            if front is not None and pem is not None:
                await front.renew(pem)
        except (AuthorityError, BadCertificate, FrontError) as error:
            if str(error) != self._last_error:
                log.error("certificate.not_renewed", reason=str(error))  # noqa: TRY400  one line, not a traceback
            self._last_error = str(error)
        else:
            self._last_error = ""
