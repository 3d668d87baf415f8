"""Notifications of findings by webhook and mail, as configured."""

import asyncio
import functools
import smtplib
import ssl
import time
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate, make_msgid, parseaddr
from pathlib import Path
from typing import Annotated, ClassVar

import httpx
import msgspec
import structlog

from common.files import read_secret
from common.language import Counted, Language, Text
from common.numbers import SPACE
from common.settings import Port, Section
from common.wire.instants import instant_text
from common.wire.keys import signing_key
from common.wire.signing import sign
from headquarters.core.wording import KIND, sentence
from headquarters.store.findings import StoredFinding, for_programs

log = structlog.get_logger(__name__)

SECONDS = 10.0
NOT_OF_THE_FINDING = frozenset({401, 403, 404, 405, 407, 408, 410, 421, 425, 429})
"""Statuses below 500 of a receiver that would refuse any finding, now or as it is configured."""


class NotificationFailed(Exception):
    """The receiver and the reason. `is_refused`: it answered, so that these findings may be the reason; `is_listening`:
    by its answer it would accept others."""

    def __init__(self, reason: str, *, is_refused: bool = False, is_listening: bool = False) -> None:
        super().__init__(reason)
        self.is_refused = is_refused
        self.is_listening = is_listening


class WebhookNotifier(Section, frozen=True):
    """One POST per finding, signed like closures (Standard Webhooks) with the `whsec_…` in `secret_file`. Any 2xx
    confirms it."""

    at_once: ClassVar[int] = 1
    """Number of findings per call of `tell`."""
    url: str
    secret_file: Path

    @property
    def name(self) -> str:
        """Identifies its recorded notifications, also after a restart."""
        return f"webhook {self.url}"

    async def notify(self, findings: Sequence[StoredFinding], language: Language) -> None:
        """Sends all or none. Raises NotificationFailed."""
        del language  # it has the sentences in English, and the facts
        try:
            key = signing_key(read_secret(self.secret_file).decode())
        except (OSError, ValueError) as error:
            raise NotificationFailed(f"{self.secret_file}: {error}") from None
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False, verify=_trusted()) as client:
            for finding in findings:
                body = msgspec.json.encode(_event(finding))
                headers = sign([key], _id(finding), int(time.time()), body) | {"content-type": "application/json"}
                try:
                    async with asyncio.timeout(SECONDS):
                        answer = await client.post(self.url, content=body, headers=headers)
                except (httpx.HTTPError, TimeoutError) as error:
                    raise NotificationFailed(f"{self.url}: {type(error).__name__}") from None
                if not answer.is_success:
                    is_listening = answer.is_client_error and answer.status_code not in NOT_OF_THE_FINDING
                    reason = f"{self.url} answers {answer.status_code}"
                    raise NotificationFailed(reason, is_refused=True, is_listening=is_listening)


class MailNotifier(Section, frozen=True):
    """One mail with all findings, by an SMTP server; `starttls` if the server offers it, and always before a
    password."""

    at_once: ClassVar[int] = 500
    name: ClassVar[str] = "mail"
    to: tuple[str, ...]
    sender: str
    host: str = "localhost"
    port: Port = 25
    starttls: bool = True
    user: str = ""
    password_file: Path | None = None

    async def notify(self, findings: Sequence[StoredFinding], language: Language) -> None:
        try:
            await asyncio.to_thread(self._send, self._mail(findings, language))
        except (OSError, smtplib.SMTPException) as error:
            raise NotificationFailed(f"mail by {self.host}: {error}") from None

    def _mail(self, findings: Sequence[StoredFinding], language: Language) -> EmailMessage:
        mail = EmailMessage()
        subject = Counted("mcfd: {count} finding", "mcfd: {count} findings", len(findings)).in_language(language)
        mail["Subject"] = subject.replace(SPACE, " ")
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.to)
        mail["Date"] = formatdate()
        mail["Message-ID"] = make_msgid(domain=parseaddr(self.sender)[1].rpartition("@")[2] or self.host)
        mail.set_content("\n".join(_line(finding, language) for finding in findings) + "\n")
        return mail

    def _send(self, mail: EmailMessage) -> None:
        with smtplib.SMTP(self.host, self.port, timeout=SECONDS) as server:
            server.ehlo()
            if self.starttls and (self.user or server.has_extn("starttls")):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
            if self.user and self.password_file is not None:
                server.login(self.user, read_secret(self.password_file).decode())
            for address, (code, reason) in server.send_message(mail).items():  # of several addresses; of all it raises
                log.warning("mail.address_refused", address=address, reason=f"{code} {reason.decode(errors='replace')}")


Notifier = WebhookNotifier | MailNotifier


class Findings(Section, frozen=True):
    """Times in seconds. `tell_after`: a finding that is solved automatically sooner is not sent. `silent_after`: a shop
    that has not closed in time is late if it was silent for that long. `newest_version` of boxes; empty means the
    version of headquarters."""

    tell_after: Annotated[float, msgspec.Meta(ge=0, le=31_536_000)] = 120
    silent_after: Annotated[float, msgspec.Meta(ge=0, le=31_536_000)] = 3600
    look_every: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 60
    newest_version: str = ""
    webhook: tuple[WebhookNotifier, ...] = ()
    mail: MailNotifier | None = None


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Cached: reading the certificate authorities takes longer than a POST."""
    return ssl.create_default_context()


def _line(finding: StoredFinding, language: Language) -> str:
    solved = Text("solved").in_language(language) if finding.solved_at is not None else "!"
    words = f"{KIND[finding.kind].in_language(language)}: {sentence(finding.kind, finding.facts, language)}"
    shop = f"{finding.label} ({finding.nim})" if finding.label else finding.nim
    return f"[{solved}] {shop} – {words} ({instant_text(finding.found_at)})"


def _id(finding: StoredFinding) -> str:
    """The same if it is sent again; numbers begin anew in a lost database."""
    return f"finding-{finding.id}-{finding.found_at}-{'open' if finding.solved_at is None else 'solved'}"


def _event(finding: StoredFinding) -> dict[str, object]:
    solved = finding.solved_at is not None
    data = for_programs(finding)
    at = data["solved_at"] if solved else data["found_at"]
    return {"type": "finding.solved" if solved else "finding.opened", "timestamp": at, "data": data}
