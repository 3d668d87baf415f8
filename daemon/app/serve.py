"""`mcfd run`: start in an order in which nothing is promised before it can be kept, and stop in the opposite one."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import AsyncExitStack
from importlib.metadata import version

import structlog

from daemon import notify
from daemon.api.deps import ApiDeps, Figures
from daemon.api.server import HttpServer, ServerConfig
from daemon.api.service import create_api
from daemon.app.house import House, build, now_millis
from daemon.app.replication import replicating
from daemon.core.errors import StorageError
from daemon.settings import Settings
from daemon.upstream.options import BadOptions
from daemon.usecases.desk import Desks

log = structlog.get_logger(__name__)

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_UNUSABLE = 3
STOP_GRACE = 10.0


def serve(settings: Settings) -> int:
    """Runs until SIGTERM or SIGINT; the exit code. What stops the start is one line in the log."""
    try:
        return asyncio.run(_serve(settings))
    except BadOptions as error:
        log.critical("start.refused", reason=str(error))
        return EXIT_USAGE
    except (StorageError, OSError) as error:
        log.critical("start.refused", reason=str(error))
        return EXIT_UNUSABLE


async def _serve(settings: Settings) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        house = await stack.enter_async_context(build(settings))
        figures = await stack.enter_async_context(replicating(house))
        server = HttpServer(create_api(_api_deps(house, figures)), _server_config(settings))
        await server.start()
        stack.push_async_callback(server.stop)
        watchdog = loop.create_task(_watchdog(), name="watchdog")
        stack.callback(watchdog.cancel)
        log.info("started", version=version("mcfd"), host=settings.server.host, port=server.port)
        notify.ready()
        await _until(stop, server)
        notify.stopping()
        log.info("stopping")
        # Together: what is on the line ends, whoever waits is told so, and the answers still go out.
        await asyncio.gather(server.stop(), *(desk.close(STOP_GRACE) for desk in house.desks))
    log.info("stopped")
    return EXIT_OK


async def _until(stop: asyncio.Event, server: HttpServer) -> None:
    """Until a signal, or until the server ends by itself, which is an error."""
    waiting = {asyncio.ensure_future(stop.wait()), asyncio.ensure_future(server.failed())}
    try:
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in waiting:
            task.cancel()


async def _watchdog() -> None:
    """From the loop that does the work: a loop that hangs does not say that it is well."""
    interval = notify.watchdog_interval()
    while interval is not None:
        notify.watchdog()
        await asyncio.sleep(interval)


def _api_deps(house: House, figures: Figures) -> ApiDeps:
    settings = house.settings
    return ApiDeps(
        desks=Desks(house.desks),
        keyring=house.store.key_ring,
        timezone=settings.reports.timezone,
        clock=now_millis,
        allowed_hosts=(*settings.server.allowed_hosts, socket.gethostname().lower()),
        upstream=figures,
        disabled=frozenset(machine.nim for machine in settings.machine if not machine.enabled),
        version=version("mcfd"),
    )


def _server_config(settings: Settings) -> ServerConfig:
    server = settings.server
    return ServerConfig(
        host=server.host, port=server.port, tls_cert=server.tls_cert, tls_key=server.tls_key, grace=STOP_GRACE
    )
