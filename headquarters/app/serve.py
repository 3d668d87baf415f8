"""`mcfd-hq run`: database first, then what keeps an eye on it, then the ways in; stopped in the opposite order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from importlib.metadata import version
from typing import Any

import msgspec
import structlog
import uvloop

from common import notify
from common.login_guard import LoginGuard
from common.wire.cancellation import ended
from headquarters.app.register_copy import RegisterCopy
from headquarters.app.server import HttpServer
from headquarters.app.service import create_service
from headquarters.app.settings import HqSettings, register_copy
from headquarters.findings.tell import MailTeller, Teller, WebhookTeller
from headquarters.findings.watch import Watch, WatchPace
from headquarters.intake.connection import NatsOptions
from headquarters.intake.jetstream import JetStreamIntake
from headquarters.intake.reception import Reception
from headquarters.intake.threads import Threads
from headquarters.page.shared import RULES, Screens
from headquarters.store.database import StoreError
from headquarters.store.store import HqStore

log = structlog.get_logger(__name__)

EXIT_OK, EXIT_UNUSABLE = 0, 3
OPEN_AGAIN_SECONDS = 2.0


def serve(settings: HqSettings) -> int:
    """Runs until SIGTERM or SIGINT; the exit code."""
    try:
        return uvloop.run(_serve(settings))
    except OSError as error:
        log.critical("start.refused", reason=str(error))
        return EXIT_UNUSABLE


async def _serve(settings: HqSettings) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        threads = Threads()
        stack.callback(threads.close)
        store = HqStore(settings.storage.url)
        stack.callback(store.close)
        # Who reads has threads and connections of their own: however many they are, closures come in.
        readers, reading = HqStore(settings.storage.url, beside=store), Threads()
        stack.callback(readers.close)
        stack.callback(reading.close)
        copy = RegisterCopy(store.register, register_copy(settings))
        if not await _opened(store, threads, copy, stop):
            return EXIT_OK
        newest = settings.findings.newest_version or version("mcfd")
        reception = Reception(store, threads, settings.zone, newest)
        await stack.enter_async_context(reception.running())
        if settings.nats is not None:
            intake = JetStreamIntake(NatsOptions(**msgspec.structs.asdict(settings.nats)), store, threads, reception)
            _beside(stack, intake.run(), "jetstream")
        told = settings.findings
        pace = WatchPace(every=told.look_every, tell_after=told.tell_after, silent_after=told.silent_after)
        _beside(stack, Watch(readers, settings.zone, pace, _tellers(settings)).run(), "watch")
        is_secure = settings.server.tls_cert is not None
        screens = Screens(readers, reading, LoginGuard(RULES), settings.zone, settings.reports.language, is_secure)
        server = HttpServer(create_service(readers, reading, reception, screens), settings.server)
        await server.start()
        stack.push_async_callback(server.stop)
        _beside(stack, copy.keep(threads), "register")
        _beside(stack, _watchdog(), "watchdog")
        log.info("started", version=version("mcfd"), address=server.address)
        notify.ready()
        await _until(stop, server)
        notify.stopping()
    log.info("stopped")
    return EXIT_OK


def _tellers(settings: HqSettings) -> list[Teller]:
    tellers: list[Teller] = [WebhookTeller(hook.url, hook.secret_file) for hook in settings.findings.webhook]
    mail = settings.findings.mail
    if mail is not None:
        named = {name: getattr(mail, name) for name in mail.__struct_fields__}
        tellers.append(MailTeller(**named, language=settings.reports.language))
    return tellers


async def _opened(store: HqStore, threads: Threads, copy: RegisterCopy, stop: asyncio.Event) -> bool:
    """A database that is not there yet is waited for: after a power cut it may come up later than we do."""
    trouble = ""
    while not stop.is_set():
        try:
            await threads.run(store.open)
            await threads.run(copy.heal)
        except StoreError as error:
            if str(error) != trouble:
                trouble = str(error)
                log.error("storage.unavailable", reason=trouble)  # noqa: TRY400  # one line is enough
            await asyncio.sleep(OPEN_AGAIN_SECONDS)
        else:
            return True
    return False


def _beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None], name: str) -> None:
    """Work that goes on until the stop."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    stack.push_async_callback(ended, task)


async def _watchdog() -> None:
    every = notify.watchdog_interval()
    while every is not None:
        notify.watchdog()
        await asyncio.sleep(every)


async def _until(stop: asyncio.Event, server: HttpServer) -> None:
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait((stopped, server.task), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
