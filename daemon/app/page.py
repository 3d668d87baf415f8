"""What the shop's page needs of the box: its keys and people, its backups, what doctor finds."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from pathlib import Path

import msgspec
import structlog

from daemon.api.page.deps import BoxFailed, Copy, Finding, PageDeps
from daemon.app.outward.replication import Replication
from daemon.app.outward.webhooks import Webhooks
from daemon.app.runtime import Runtime
from daemon.app.upkeep.certificate import Certificate
from daemon.core.audit import Actor
from daemon.core.clock import zone
from daemon.language import Language
from daemon.rotation import SUFFIX
from daemon.settings import Settings

log = structlog.get_logger(__name__)

PIECE = 256 * 1024
_MCFD = (sys.executable, "-c", "import sys; from daemon.cli import main; sys.exit(main())")
"""The command of this very program, whatever it is called where it is installed."""
DOCTOR_SECONDS = 30.0
BACKUP_SECONDS = 600.0


def page_of(runtime: Runtime, certificate: Certificate, replication: Replication, webhooks: Webhooks) -> PageDeps:
    store, settings = runtime.store, runtime.settings
    folder = settings.storage.path.parent / "backups"
    return PageDeps(
        keys=store.api_keys,
        people=store.people,
        decisions=store.decisions,
        audit=store.audit,
        zone=zone(settings.reports.timezone),
        tls=certificate.files is not None,
        examine=partial(_examine, settings),
        back_up=partial(_back_up, settings, folder),
        backups=partial(_backups, folder),
        read_backup=partial(_read_backup, folder),
        authority=partial(_authority, settings),
        send_again=partial(_send_again, replication, webhooks),
    )


async def _examine(settings: Settings, language: Language) -> Sequence[Finding]:
    """As the command finds it, beside the daemon: `mcfd doctor` says 1 when something is wrong, which is an answer too."""
    out = await _command(settings, "doctor", "--json", language=language, seconds=DOCTOR_SECONDS, accepted=(0, 1))
    return msgspec.json.decode(out, type=_Examined).checks


class _Examined(msgspec.Struct):
    checks: tuple[Finding, ...]


async def _back_up(settings: Settings, folder: Path) -> str:
    out = await _command(settings, "backup", "--into", str(folder), "--json", seconds=BACKUP_SECONDS)
    return Path(str(msgspec.json.decode(out)["backup"])).name


async def _command(
    settings: Settings, *arguments: str, seconds: float, language: Language = "en", accepted: tuple[int, ...] = (0,)
) -> bytes:
    """A process of its own: its work takes neither the loop's time nor the writer's."""
    file = ("--config", str(settings.file)) if settings.file else ()
    process = await asyncio.create_subprocess_exec(
        *(*_MCFD, *arguments, *file),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "LC_ALL": "en_US.UTF-8" if language == "en" else "fr_FR.UTF-8"},
    )
    try:
        async with asyncio.timeout(seconds):
            out, told = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise BoxFailed(f"mcfd {arguments[0]} took longer than {seconds:.0f} s") from None
    if process.returncode not in accepted:
        log.error("page.command_failed", command=arguments[0], said=told.decode(errors="replace")[-500:])
        raise BoxFailed(f"mcfd {arguments[0]} failed")
    return out


async def _send_again(replication: Replication, webhooks: Webhooks, *, at: int, by: Actor) -> int:
    return await replication.send_again(at=at, by=by) + await webhooks.send_again(at=at, by=by)


def _backups(folder: Path) -> Sequence[Copy]:
    """Newest first."""
    found = [path for path in folder.glob(f"*{SUFFIX}") if path.is_file() and not path.is_symlink()]
    copies = [Copy(path.name, round(path.stat().st_mtime * 1000), path.stat().st_size) for path in found]
    return sorted(copies, key=lambda copy: -copy.at)


async def _read_backup(folder: Path, name: str) -> AsyncGenerator[bytes, None]:
    with (folder / name).open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece


def _authority(settings: Settings) -> bytes:
    """Of the box's own authority; empty without `tls = "internal"`."""
    file = settings.tls_home / "ca.pem"
    return file.read_bytes() if settings.server.tls == "internal" and file.is_file() else b""
