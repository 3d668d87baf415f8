"""`mcfd-hq run`: starts the database, the watch and the ingress, in this order; stops them in reverse."""

import asyncio
import signal
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path

import structlog

from common import notify, process
from common.front import BadCertificate, FrontError, FrontLimits, FrontServer, check_pair, withdraw
from common.http_server import HttpServer, ServerConfig
from common.login_guard import LoginGuard
from common.settings import SettingsError
from common.turns import run_beside
from headquarters.app.register_copy import RegisterCopy
from headquarters.app.service import create_service
from headquarters.app.settings import HqSettings, join_terms, register_copy
from headquarters.intake.jetstream import JetStreamIntake
from headquarters.intake.joining import JoinTerms
from headquarters.intake.reception import Reception
from headquarters.intake.revocations import NatsRevocations
from headquarters.intake.threads import Threads
from headquarters.page.shared import RULES, Screens
from headquarters.store.database import StoreError
from headquarters.store.store import HqStore
from headquarters.watch import Watch

log = structlog.get_logger(__name__)

EXIT_OK, EXIT_UNUSABLE = 0, 3
GRACE_SECONDS = 10
CERTIFICATE_SECONDS = 60.0
OPEN_AGAIN_SECONDS = 2.0
OPENING_SECONDS = 3600.0
"""Migration from an older version may index millions of rows."""
CONNECTIONS = 2000
DIRECT = FrontLimits(
    connections=CONNECTIONS,
    reserved=CONNECTIONS // 4,
    per_address=500,
    unknown_per_address=250,
    unknown_rate=600,
    unknown_requests=6000,
    unknown_errors=1200,
    server_connections=CONNECTIONS // 2,
)
"""A thousand boxes may share the address of one mobile network."""


def serve(settings: HqSettings, front: Path | None = None) -> int:
    """Runs until SIGTERM or SIGINT and returns the exit code. `front` is the directory shared with HAProxy's unit."""
    try:
        return process.run(_serve(settings, join_terms(settings), front))
    except (OSError, BadCertificate, FrontError, SettingsError) as error:
        log.critical("start.refused", reason=str(error))
        return EXIT_UNUSABLE


async def _serve(settings: HqSettings, terms: JoinTerms, folder: Path | None) -> int:
    stop = asyncio.Event()
    _listen(stop)
    async with AsyncExitStack() as stack:
        threads = Threads()
        stack.callback(threads.close)
        store = HqStore(settings.storage.url)
        stack.callback(store.close)
        reading = Threads()  # readers have threads of their own, so that their number never delays closures
        stack.callback(reading.close)
        copy = RegisterCopy(store.register, register_copy(settings))
        if not await _opened(store, threads, copy, stop):
            return EXIT_OK
        newest = settings.findings.newest_version or version("mcfd")
        reception = Reception(store, threads, settings.zone, newest)
        await stack.enter_async_context(reception.running())
        if settings.nats is not None:
            run_beside(stack, JetStreamIntake(settings.nats, store, threads, reception).run(), "jetstream")
            if terms.issuer is not None:
                run_beside(stack, NatsRevocations(store, reading, settings.nats, terms.issuer).run(), "revocations")
        run_beside(stack, Watch(store, settings.zone, settings.findings, settings.reports.language).run(), "watch")
        is_secure = settings.server.tls_cert is not None
        screens = Screens(store, reading, LoginGuard(RULES), settings.zone, settings.reports.language, is_secure)
        front = await _front(settings, folder)
        if front is not None:
            stack.push_async_callback(front.stop)
            await front.start()
        own = settings.server
        behind = {"port": front.port, "behind": front.socket} if front else {"port": own.port}
        config = ServerConfig(host=own.host, grace=GRACE_SECONDS, **behind)
        server = HttpServer(create_service(store, reading, reception, screens, terms), config)
        await server.start()
        stack.push_async_callback(server.stop)
        _listen(stop)  # again, since uvicorn replaces the handlers at its start
        scheme = "https" if is_secure else "http"
        if front is not None:
            run_beside(stack, _reload_certificate(front, settings), "certificate")
        run_beside(stack, copy.run(threads), "register")
        run_beside(stack, notify.run_watchdog(), "watchdog")
        log.info("headquarters.started", version=version("mcfd"), address=f"{scheme}://{own.host}:{server.port}")
        notify.ready()
        await server.until(stop)
        notify.stopping()
    log.info("headquarters.stopped")
    return EXIT_OK


def _listen(stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)


async def _front(settings: HqSettings, folder: Path | None) -> FrontServer | None:
    """The HAProxy front; None without a certificate, which then is the task of a reverse proxy."""
    server = settings.server
    if server.tls_cert is None or server.tls_key is None:
        await withdraw(folder, server.host, server.port)
        return None
    pem = check_pair(server.tls_cert, server.tls_key)
    return FrontServer(folder, server.host, server.port, pem=pem, limits=DIRECT)


async def _reload_certificate(front: FrontServer, settings: HqSettings) -> None:
    """Reloads the certificate when the files have a valid new pair."""
    server, last_error = settings.server, ""
    while server.tls_cert and server.tls_key:
        await asyncio.sleep(CERTIFICATE_SECONDS)
        try:
            await front.renew(check_pair(server.tls_cert, server.tls_key))
            last_error = ""
        except (BadCertificate, FrontError) as error:
            if str(error) != last_error:
                log.error("certificate.not_renewed", reason=str(error))  # noqa: TRY400  # one line is enough
            last_error = str(error)


async def _opened(store: HqStore, threads: Threads, copy: RegisterCopy, stop: asyncio.Event) -> bool:
    """Waits for the database, which may start later than this service after a power cut. False if stopped
    meanwhile."""
    trouble = ""
    while not stop.is_set():
        try:
            await threads.run_for(OPENING_SECONDS, store.open)
            await threads.run_for(OPENING_SECONDS, copy.heal)
        except StoreError as error:
            if str(error) != trouble:
                trouble = str(error)
                log.error("storage.unavailable", reason=trouble)  # noqa: TRY400  # one line is enough
            await asyncio.sleep(OPEN_AGAIN_SECONDS)
        else:
            return True
    return False
