"""Once a minute: who is late; once an hour: when each shop usually closes; and, each teller for itself, what others have to hear of."""

from __future__ import annotations

import asyncio
import functools
import smtplib
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import tzinfo
from email.message import EmailMessage
from pathlib import Path
from typing import Annotated, ClassVar

import httpx
import msgspec
import structlog

from common.files import read_secret
from common.language import Counted, Language, Text
from common.numbers import SPACE
from common.settings import Port, Section
from common.wire.instants import instant_text, now_millis
from common.wire.keys import signing_key
from common.wire.signing import sign
from headquarters.core.lateness import LOOK_BACK, Habit, from_clock, learn, overdue_day
from headquarters.core.wording import KIND, NEVER, Fact, sentence
from headquarters.store.database import StoreError
from headquarters.store.findings import Silent, StoredFinding, for_programs
from headquarters.store.store import HqStore

log = structlog.get_logger(__name__)

LEARN_SECONDS = 3600.0
LEASE_MILLIS = 120_000
"""Longer than any teller takes for what it is given at once."""
AGAIN_MILLIS = 60_000
FAILURES = 3
"""One after the other: the receiver is away, and the rest waits for the next look."""

SECONDS = 10.0
NOT_OF_THE_FINDING = frozenset({401, 403, 404, 405, 407, 408, 410, 421, 425, 429})
"""Statuses below 500 by which a receiver takes nothing at all, at this moment or for its configuration."""


class Watch:
    """Methods that block run on a thread; `run` is for ever."""

    def __init__(self, store: HqStore, zone: tzinfo, options: Findings, tellers: Sequence[Notifier]) -> None:
        self._store = store
        self._zone = zone
        self._options = options
        self._tellers = tellers
        self._learnt = float("-inf")

    async def run(self) -> None:
        """A slow receiver delays no check and no other receiver."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._again_and_again(self._look))
            for teller in self._tellers:
                group.create_task(self._again_and_again(functools.partial(self._tell, teller)))

    async def _again_and_again(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except StoreError as error:
                log.warning("watch.postponed", reason=str(error))
            except Exception:  # whatever it is, the others go on, and this again at the next look
                log.exception("watch.failed")
            await asyncio.sleep(self._options.look_every)

    async def _look(self) -> None:
        await asyncio.to_thread(self.look)

    def look(self, now: int | None = None) -> None:
        now = now if now is not None else now_millis()
        if time.monotonic() - self._learnt > LEARN_SECONDS:
            self.learn(now)
            self._learnt = time.monotonic()
        late = {}
        for silent in self._store.watching.silent(now - int(self._options.silent_after * 1000), now):
            fact = self._late(silent, now)
            if fact is not None:
                late[silent.machine] = fact
        self._store.watching.settle_late(late, now)

    def learn(self, now: int) -> None:
        since = now - int(LOOK_BACK.total_seconds() * 1000)
        instants = self._store.figures.instants(since)
        habits = {machine: learn(found, self._zone, now) for machine, found in instants}
        self._store.watching.learnt({machine: habit for machine, habit in habits.items() if habit is not None})

    def _late(self, silent: Silent, now: int) -> Fact | None:
        habit = _habit(silent)
        day = overdue_day(habit, silent.closed_at, self._zone, now) if habit else None
        if day is None:
            return None
        if not silent.closed_at and not silent.heard_at:
            return Fact("late", "", {"what": "never", "day": day})
        return Fact("late", "", {"since": _since(silent.closed_at), "silent": _since(silent.heard_at), "day": day})

    async def tell(self, now: int | None = None) -> None:
        """Each teller what it has to tell; of one that fails, the findings come again."""
        await asyncio.gather(*(self._tell(teller, now) for teller in self._tellers))

    async def _tell(self, teller: Notifier, at: int | None = None) -> None:
        """The worst first, also before those that were found earlier; until there is none left, or the receiver does not answer."""
        store, failures = self._store.findings, 0
        while failures < FAILURES:
            now = at if at is not None else now_millis()
            findings: list[StoredFinding] = await asyncio.to_thread(
                store.claim_notifications,
                older_than=now - int(self._options.tell_after * 1000),
                now=now,
                lease=LEASE_MILLIS,
                limit=teller.at_once,
                teller=teller.name,
            )
            if not findings:
                return
            error = await _failure_of(teller, findings)
            if error is None:
                failures = 0
                await asyncio.to_thread(store.mark_notified, findings, teller.name)
            else:
                log.warning("finding.not_told", reason=str(error), count=len(findings))
                failures = 0 if error.is_listening else failures + 1
                again = functools.partial(store.postpone, now=now, again=AGAIN_MILLIS, is_refused=error.is_refused)
                await asyncio.to_thread(again, findings, teller.name)


async def _failure_of(teller: Notifier, findings: Sequence[StoredFinding]) -> NotificationFailed | None:
    """Why they did not go; None when they went."""
    try:
        await teller.tell(findings)
    except NotificationFailed as error:
        return error
    except Exception as error:  # of a library, or a file that is no text
        log.exception("finding.teller_failed", teller=teller.name)
        return NotificationFailed(f"{teller.name}: {type(error).__name__}")
    return None


def _habit(silent: Silent) -> Habit | None:
    """As a person has set it, on the days that are known; else as learnt."""
    days = silent.usual_days or 0b1111111
    if silent.closes_at is not None:
        return Habit(from_clock(silent.closes_at), days)
    return Habit(silent.usual_at, days) if silent.usual_at is not None else None


def _since(at: int) -> str:
    return instant_text(at)[:16].replace("T", " ") if at else NEVER


class NotificationFailed(Exception):
    """Which receiver was not reached, and why. `is_refused`: an answer came, so that it may be these findings that are not taken; `is_listening`: it says
    that others would be."""

    def __init__(self, reason: str, *, is_refused: bool = False, is_listening: bool = False) -> None:
        super().__init__(reason)
        self.is_refused = is_refused
        self.is_listening = is_listening


class Mail(Section, frozen=True):
    """Through an SMTP server that takes mail from here; `starttls` when it offers it, and always before a password."""

    to: tuple[str, ...]
    sender: str
    host: str = "localhost"
    port: Port = 25
    starttls: bool = True
    user: str = ""
    password_file: Path | None = None


class WebhookNotifier(Section, frozen=True):
    """One POST for each, signed as closures are (Standard Webhooks) with the `whsec_…` in `secret_file`. Any 2xx is an answer."""

    at_once: ClassVar[int] = 1
    """How many findings `tell` takes."""
    url: str
    secret_file: Path

    @property
    def name(self) -> str:
        """The same after a restart: its notifications are recorded under it."""
        return f"webhook {self.url}"

    async def tell(self, findings: Sequence[StoredFinding]) -> None:
        """NotificationFailed when they did not go; all or none of them went."""
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


class MailNotifier(Mail, frozen=True, kw_only=True):
    """One mail for all of them."""

    language: Language
    at_once: int = 500

    @property
    def name(self) -> str:
        return "mail"

    async def tell(self, findings: Sequence[StoredFinding]) -> None:
        try:
            await asyncio.to_thread(self._send, self._mail(findings))
        except (OSError, smtplib.SMTPException) as error:
            raise NotificationFailed(f"mail by {self.host}: {error}") from None

    def _mail(self, findings: Sequence[StoredFinding]) -> EmailMessage:
        mail = EmailMessage()
        subject = Counted("mcfd: {count} finding", "mcfd: {count} findings", len(findings)).in_language(self.language)
        mail["Subject"] = subject.replace(SPACE, " ")
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.to)
        mail.set_content("\n".join(_line(finding, self.language) for finding in findings) + "\n")
        return mail

    def _send(self, mail: EmailMessage) -> None:
        with smtplib.SMTP(self.host, self.port, timeout=SECONDS) as server:
            server.ehlo()
            if self.starttls and (self.user or server.has_extn("starttls")):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
            if self.user and self.password_file is not None:
                server.login(self.user, read_secret(self.password_file).decode())
            server.send_message(mail)


Notifier = WebhookNotifier | MailNotifier


class Findings(Section, frozen=True):
    """`look_every` and the others in seconds. `tell_after`: a finding that solves itself sooner is not sent. `silent_after`: a shop that
    has not closed in time is late when it has not been heard of for that long. `newest_version`: what boxes should have; empty, the
    version of headquarters itself."""

    tell_after: Annotated[float, msgspec.Meta(ge=0, le=31_536_000)] = 120
    silent_after: Annotated[float, msgspec.Meta(ge=0, le=31_536_000)] = 3600
    look_every: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 60
    newest_version: str = ""
    webhook: tuple[WebhookNotifier, ...] = ()
    mail: Mail | None = None


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Read once: to read the authorities takes longer than a POST."""
    return ssl.create_default_context()


def _line(finding: StoredFinding, language: Language) -> str:
    solved = Text("solved").in_language(language) if finding.solved_at is not None else "!"
    words = f"{KIND[finding.kind].in_language(language)}: {sentence(finding.kind, finding.facts, language)}"
    shop = f"{finding.label} ({finding.nim})" if finding.label else finding.nim
    return f"[{solved}] {shop} – {words} ({instant_text(finding.found_at)})"


def _id(finding: StoredFinding) -> str:
    """The same when it is sent again."""
    return f"finding-{finding.id}-{'open' if finding.solved_at is None else 'solved'}"


def _event(finding: StoredFinding) -> dict[str, object]:
    solved = finding.solved_at is not None
    data = for_programs(finding)
    at = data["solved_at"] if solved else data["found_at"]
    return {"type": "finding.solved" if solved else "finding.opened", "timestamp": at, "data": data}
