"""What the shop's page needs of the box: its keys and people, its backups, what doctor finds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from common import logs
from common.language import Language
from daemon import log_words
from daemon.api.page.deps import HeadquartersShown, LogLine, PageDeps
from daemon.api.page.rendering import BoxRefused
from daemon.app.outward import joining
from daemon.app.outward.replication import Replication
from daemon.app.outward.webhooks import Webhooks
from daemon.app.page import commands, files, first_start
from daemon.app.page.files import order_restore
from daemon.app.runtime import Runtime
from daemon.app.upkeep.box_clock import now_millis
from daemon.app.upkeep.certificate import Certificate
from daemon.core.audit import Actor
from daemon.core.clock import zone
from daemon.core.errors import JoinFailed
from daemon.operations import NoteJoined
from daemon.settings import Settings, load
from daemon.settings.joined import is_joined, read_joined


def page_of(
    runtime: Runtime,
    certificate: Certificate,
    replication: Replication,
    webhooks: Webhooks,
    *,
    stop: Callable[[], None],
    reload: Callable[[], None],
) -> PageDeps:
    """`stop` ends the daemon, and `reload` has the settings read again, as signals do."""
    store, settings = runtime.store, runtime.settings
    home = settings.storage.path.parent
    copies, made = home / "backups", home / "exports"
    return PageDeps(
        keys=store.api_keys,
        people=store.people,
        decisions=store.decisions,
        audit=store.audit,
        zone=zone(settings.reports.timezone),
        tls=certificate.files is not None,
        examine=commands.Doctor(settings),
        back_up=partial(commands.back_up, settings, store, copies),
        verify=partial(commands.verify, settings),
        backups=partial(files.backups, copies),
        archives=partial(files.archives, copies),
        read_backup=partial(files.read, copies),
        restore=partial(_restore, settings, stop),
        export=partial(files.export, settings, made),
        exports=partial(files.exports, made),
        read_export=partial(files.read, made),
        authority=partial(_authority, settings),
        labels=settings.labels_in,
        support=settings.company.support,
        log_lines=_log_lines,
        probe=partial(first_start.probe_unused, runtime),
        send_again=partial(_send_again, replication, webhooks),
        headquarters=partial(_headquarters, settings),
        join=partial(_join, runtime, reload),
        leave=partial(_leave, runtime, reload),
    )


async def _restore(settings: Settings, stop: Callable[[], None], copy: str, by: Actor) -> None:
    await asyncio.to_thread(order_restore, settings, copy, by)
    stop()


def _headquarters(settings: Settings) -> HeadquartersShown:
    is_configured = settings.upstream is not None and not is_joined(settings)
    if is_configured and settings.upstream is not None:
        return HeadquartersShown(settings.upstream.url, is_configured=True)
    joined = read_joined(settings.joined_home)
    return HeadquartersShown("" if joined is None else joined.headquarters)


async def _join(runtime: Runtime, reload: Callable[[], None], code: str, url: str, by: Actor) -> None:
    try:
        joined = await joining.join(await asyncio.to_thread(load, runtime.settings.file), code, url)
    except JoinFailed as error:
        raise BoxRefused(*error.args) from None
    await NoteJoined(joined.headquarters).carry_out(runtime.store, at=now_millis(), by=by)
    reload()


async def _leave(runtime: Runtime, reload: Callable[[], None], by: Actor) -> None:
    if await asyncio.to_thread(joining.leave, runtime.settings):
        await NoteJoined("").carry_out(runtime.store, at=now_millis(), by=by)
        reload()


async def _send_again(replication: Replication, webhooks: Webhooks, *, at: int, by: Actor) -> int:
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
    """Of the box's own authority; empty without `tls = "internal"`."""
    file = settings.tls_home / "ca.pem"
    return file.read_bytes() if settings.server.tls == "internal" and file.is_file() else b""
