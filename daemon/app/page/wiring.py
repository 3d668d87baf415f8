"""What the shop's page needs of the box: its keys and people, its backups, what doctor finds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from common import logs
from common.language import Language
from daemon import log_words
from daemon.api.page.deps import LogLine, PageDeps
from daemon.app.outward.replication import Replication
from daemon.app.outward.webhooks import Webhooks
from daemon.app.page import commands, files, first_start
from daemon.app.page.files import order_restore
from daemon.app.runtime import Runtime
from daemon.app.upkeep.certificate import Certificate
from daemon.core.audit import Actor
from daemon.core.clock import zone
from daemon.settings import Settings


def page_of(
    runtime: Runtime, certificate: Certificate, replication: Replication, webhooks: Webhooks, stop: asyncio.Event
) -> PageDeps:
    """`stop` ends the daemon, as a signal does."""
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
    )


async def _restore(settings: Settings, stop: asyncio.Event, copy: str, by: Actor) -> None:
    await asyncio.to_thread(order_restore, settings, copy, by)
    stop.set()


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
