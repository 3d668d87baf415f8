"""`mcfd run`: start in an order in which nothing is promised before it can be kept, and stop in the opposite one."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import structlog
import uvloop

from daemon import notify
from daemon.api.deps import ApiDeps
from daemon.api.server import BadCertificate, HttpServer, ServerConfig
from daemon.api.service import create_api
from daemon.app.certificate import Certificate
from daemon.app.figures import box
from daemon.app.house import House, build, now_millis
from daemon.app.housekeeping import keep_tidy
from daemon.app.reload import Part, Reloader
from daemon.app.replication import Replication, replicating
from daemon.app.status import report
from daemon.app.webhooks import Webhooks, posting
from daemon.core.errors import StorageError
from daemon.settings import Settings
from daemon.tls.home import AuthorityError
from daemon.upstream.options import BadOptions
from daemon.usecases.desk import Desks

log = structlog.get_logger(__name__)

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_UNUSABLE = 3
STOP_GRACE = 10.0
"""For what is on the line."""
ANSWER_GRACE = 1.0
"""And then for the answers, which say what became of it."""
GC_THRESHOLD = 20_000
"""Objects more than at the last look; Python's own 700 is for small programs."""


def serve(settings: Settings) -> int:
    """Runs until SIGTERM or SIGINT; the exit code. What stops the start is one line in the log."""
    try:
        return uvloop.run(_serve(settings))
    except (BadOptions, BadCertificate, AuthorityError) as error:
        log.critical("start.refused", reason=str(error))
        return EXIT_USAGE
    except (StorageError, OSError) as error:
        log.critical("start.refused", reason=str(error))
        return EXIT_UNUSABLE


@dataclass(frozen=True)
class Signals:
    """What was asked for from outside; taken from the first moment on, since an untaken SIGHUP would end the process."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.stop.set)
        loop.add_signal_handler(signal.SIGINT, self.stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.reload.set)


async def _serve(settings: Settings) -> int:
    signals = Signals()
    signals.listen()
    certificate = Certificate(settings)
    certificate.freshen()
    async with AsyncExitStack() as stack:
        house = await stack.enter_async_context(build(settings))
        replication = await stack.enter_async_context(replicating(house))
        webhooks = await stack.enter_async_context(posting(house))
        server = HttpServer(
            create_api(_api_deps(house, replication, webhooks, signals.stop)),
            _server_config(settings, certificate),
        )
        await server.start()
        stack.push_async_callback(server.stop)
        address = f"{'https' if certificate.files else 'http'}://{_in_url(settings.server.host)}:{server.port}"
        reloader = Reloader(
            settings,
            (
                Part(lambda _: certificate.reloading(server)),
                Part(replication.take, ("upstream",)),
                Part(webhooks.take, ("upstream", "webhook")),
            ),
        )
        _beside(stack, report(house, address), "status")
        _beside(stack, reloader.run(signals.reload), "reload")
        _beside(stack, certificate.keep(server), "certificate")
        _beside(stack, keep_tidy(house.store), "housekeeping")
        _settle_memory()
        log.info("started", version=version("mcfd"), host=settings.server.host, port=server.port, address=address)
        notify.ready()
        await _until(signals.stop, server)
        notify.stopping()
        log.info("stopping")
        # Together: what is on the line ends, whoever waits is told so, and the answers still go out.
        await asyncio.gather(server.stop(), *(desk.close(STOP_GRACE) for desk in house.desks))
    log.info("stopped")
    return EXIT_OK


def _settle_memory() -> None:
    """What the start has made stays: the collector need not go through it again and again, for one part in twenty of what
    a certification costs. What comes later is nearly all freed without it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)


def _beside(stack: AsyncExitStack, work: Coroutine[Any, Any, None], name: str) -> None:
    """Work that goes on until the stop."""
    stack.callback(asyncio.get_running_loop().create_task(work, name=name).cancel)


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


def _api_deps(house: House, replication: Replication, webhooks: Webhooks, stopping: asyncio.Event) -> ApiDeps:
    settings = house.settings
    return ApiDeps(
        desks=Desks(house.desks),
        keyring=house.store.key_ring,
        timezone=settings.reports.timezone,
        clock=now_millis,
        allowed_hosts=(*settings.server.allowed_hosts, socket.gethostname().lower()),
        upstream=replication.figures,
        disabled=frozenset(machine.nim for machine in settings.machine if not machine.enabled),
        version=version("mcfd"),
        box=box(house, replication, webhooks),
        bells=house.bus.bells,
        stopping=stopping,
    )


def _server_config(settings: Settings, certificate: Certificate) -> ServerConfig:
    server = settings.server
    cert, key = certificate.files or (None, None)
    return ServerConfig(host=server.host, port=server.port, tls_cert=cert, tls_key=key, grace=STOP_GRACE + ANSWER_GRACE)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
