"""What the shop's page needs from the box: keys and people, backups, findings of doctor. Commands of mcfd run in
processes of their own, so that they take no time from the loop or the ledger's writer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog

from common import logs
from common.language import Language, Text
from common.wire.instants import now_millis
from daemon import log_words
from daemon.api.access.login import Logins
from daemon.api.page.deps import Finding, HeadquartersInfo, LogLine, PageDeps, Tell, Verified
from daemon.api.page.rendering import BoxFailed, BoxRefused
from daemon.app.outward import joining
from daemon.app.outward.replication import Replication
from daemon.app.outward.webhooks import Webhooks
from daemon.app.page import files
from daemon.app.page.files import MCFD, order_restore
from daemon.app.runtime import Runtime
from daemon.app.upkeep.housekeeping import Certificate
from daemon.core.audit import Actor
from daemon.core.clock import zone
from daemon.core.errors import JoinFailed
from daemon.operations import NoteAction, NoteBackup
from daemon.settings import Settings, load
from daemon.settings.source import is_joined, read_joined
from daemon.store.store import Store

if TYPE_CHECKING:
    from daemon.probe.replies import ProbeFinding

log = structlog.get_logger(__name__)

DOCTOR_SECONDS = 30.0
FRESH_SECONDS = 5.0
"""Seconds that a result is reused: less than any repair takes."""
LONG_SECONDS = 6 * 3600.0
"""Time limit for a command that reads a whole ledger on a slow card."""
MAX_OUTPUT = 500
"""Characters at the end of a command's messages: its last line is shown."""
LOCALES: dict[Language, str] = {"en": "en_US.UTF-8", "fr": "fr_FR.UTF-8"}
IN_USE = Text(
    "this machine is in use: the probe needs its line for itself (enabled = false in its section, then restart)"
)


class _Progress(msgspec.Struct):
    done: int
    of: int


class _Examined(msgspec.Struct):
    checks: tuple[Finding, ...]


class Doctor:
    """Findings of `mcfd doctor`, in a process beside the daemon. Each run starts Python: requests at the same time, or
    within `FRESH_SECONDS`, share one result."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()
        self._found: dict[Language, tuple[float, Sequence[Finding]]] = {}

    async def __call__(self, language: Language) -> Sequence[Finding]:
        async with self._turn:
            at, found = self._found.get(language, (0.0, ()))
            now = asyncio.get_running_loop().time()
            if not found or now - at > FRESH_SECONDS:
                found = await _examine(self._settings, language)
                self._found[language] = (asyncio.get_running_loop().time(), found)
            return found


async def _examine(settings: Settings, language: Language) -> Sequence[Finding]:
    """`mcfd doctor` exits with 1 if something is wrong, which is a result too."""
    out = await _command(settings, "doctor", "--json", language=language, seconds=DOCTOR_SECONDS, accepted=(0, 1))
    return msgspec.json.decode(out, type=_Examined).checks


async def back_up(settings: Settings, store: Store, folder: Path, by: Actor, tell: Tell) -> str:
    out = await _command(settings, "backup", "--into", str(folder), "--json", "--progress", "--unnoted", tell=tell)
    file = Path(str(msgspec.json.decode(out)["backup"]))
    await NoteBackup(str(file), is_whole=False, is_away=False).carry_out(store, at=now_millis(), by=by)
    return file.name


async def verify(settings: Settings, tell: Tell) -> Verified:
    """Exit code 1 (something is wrong) is a result too."""
    out = await _command(settings, "verify", "--json", "--progress", tell=tell, accepted=(0, 1))
    return msgspec.json.decode(out, type=Verified)


async def _command(
    settings: Settings,
    *arguments: str,
    seconds: float = LONG_SECONDS,
    language: Language | None = None,
    accepted: tuple[int, ...] = (0,),
    tell: Tell = lambda _, __: None,
) -> bytes:
    """Runs mcfd, by default in `server.language`, and returns its stdout. The process has always ended on return.
    Raises BoxFailed with its last message."""
    file = ("--config", str(settings.file)) if settings.file else ()
    process = await asyncio.create_subprocess_exec(
        *(*MCFD, *arguments, *file),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "LC_ALL": LOCALES[language or settings.server.language]},
    )
    assert process.stdout  # noqa: S101  a pipe, above
    assert process.stderr  # noqa: S101
    try:
        async with asyncio.timeout(seconds):
            out, messages = await asyncio.gather(process.stdout.read(), _listen(process.stderr, tell))
            await process.wait()
    except TimeoutError:
        raise BoxFailed(f"mcfd {arguments[0]} took longer than {seconds:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode not in accepted:
        log.error("page.command_failed", command=arguments[0], output=messages)
        last = messages.strip().rpartition("\n")[2].removeprefix("mcfd: ")
        raise BoxFailed(last or f"mcfd {arguments[0]} failed")
    return out


async def _listen(stream: asyncio.StreamReader, tell: Tell) -> str:
    """Passes progress on to `tell`; returns the end of all other output on stderr."""
    text = ""
    while line := await stream.readline():
        try:
            progress = msgspec.json.decode(line, type=_Progress)
        except msgspec.DecodeError:
            text = (text + line.decode(errors="replace"))[-MAX_OUTPUT:]
        else:
            tell(progress.done, progress.of)
    return text


def page_of(
    runtime: Runtime,
    certificate: Certificate,
    replication: Replication,
    webhooks: Webhooks,
    *,
    stop: Callable[[], None],
    reload: Callable[[], None],
) -> PageDeps:
    """`stop` ends the daemon and `reload` reads the settings again, as signals do."""
    store, settings = runtime.store, runtime.settings
    home = settings.storage.path.parent
    copies, exports = home / "backups", home / "exports"
    return PageDeps(
        ledger=store.ledger,
        decisions=store.decisions,
        logins=Logins(store.ledger, now_millis),
        zone=zone(settings.reports.timezone),
        tls=certificate.files is not None,
        examine=Doctor(settings),
        back_up=partial(back_up, settings, store, copies),
        verify=partial(verify, settings),
        backups=partial(files.backups, copies),
        archives=partial(files.archives, copies),
        read_backup=partial(files.read, copies),
        restore=partial(_restore, settings, stop),
        export=partial(files.export, settings, exports),
        exports=partial(files.exports, exports),
        read_export=partial(files.read, exports),
        authority=partial(_authority, settings),
        labels=settings.labels_in,
        support=settings.company.support,
        certificate_end=lambda: certificate.end,
        log_lines=_log_lines,
        probe=partial(_probe_unused, runtime),
        send_again=partial(_send_again, replication, webhooks),
        headquarters=partial(_headquarters, settings),
        join=partial(_join, runtime, reload),
        leave=partial(_leave_headquarters, runtime, reload),
    )


async def _restore(settings: Settings, stop: Callable[[], None], copy: str, keep_newer: bool, by: Actor) -> None:
    await asyncio.to_thread(order_restore, settings, copy, by, keep_newer=keep_newer)
    stop()


async def _probe_unused(runtime: Runtime, nim: str) -> list[ProbeFinding]:
    """Only for a machine that is disabled in the configuration: then no other program uses its line."""
    machine = runtime.settings.find_machine(nim)
    if machine is None or machine.enabled:
        raise BoxRefused(IN_USE)
    from daemon.app.page.first_start import probed  # noqa: PLC0415  with all of a setup, which a daemon does not need

    return await probed(str(machine.port), machine.baudrate)


def _headquarters(settings: Settings) -> HeadquartersInfo:
    is_configured = settings.upstream is not None and not is_joined(settings)
    if is_configured and settings.upstream is not None:
        return HeadquartersInfo(settings.upstream.url, is_configured=True)
    joined = read_joined(settings.joined_home)
    return HeadquartersInfo("" if joined is None else joined.headquarters)


async def _join(runtime: Runtime, reload: Callable[[], None], code: str, url: str, by: Actor) -> None:
    try:
        joined = await joining.join(await asyncio.to_thread(load, runtime.settings.file), code, url)
    except JoinFailed as error:
        raise BoxRefused(*error.args) from None
    await NoteAction("upstream.joined", joined.headquarters).carry_out(runtime.store, at=now_millis(), by=by)
    reload()


async def _leave_headquarters(runtime: Runtime, reload: Callable[[], None], by: Actor) -> None:
    if await asyncio.to_thread(joining.leave, runtime.settings):
        await NoteAction("upstream.left", "").carry_out(runtime.store, at=now_millis(), by=by)
        reload()


async def _send_again(replication: Replication, webhooks: Webhooks, at: int, by: Actor) -> int:
    return await replication.send_again(at=at, by=by) + await webhooks.send_again(at=at, by=by)


def _log_lines(language: Language) -> Sequence[LogLine]:
    return [
        LogLine(
            at=round(event["at"] * 1000),
            level=str(event.get("level", "")),
            words=log_words.words(event, language),
            values=log_words.values({name: value for name, value in event.items() if name != "at"}),
        )
        for event in reversed(logs.RECENT)
    ]


def _authority(settings: Settings) -> bytes:
    """The certificate of the box's own authority; empty without `tls = "internal"`."""
    file = settings.tls_home / "ca.pem"
    return file.read_bytes() if settings.server.tls == "internal" and file.is_file() else b""
