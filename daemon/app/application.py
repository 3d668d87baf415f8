"""What is served over HTTP: API and page on what runs, HAProxy before them, and the calls of the relay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from common.front import FrontServer, withdraw
from common.http_server import HttpServer, ServerConfig
from common.sockets import host_names
from common.wire.instants import now_millis
from daemon.api.access.context import ApiDeps
from daemon.api.access.login import Logins
from daemon.api.access.throttle import SandboxShare
from daemon.api.box import Box, Paper
from daemon.api.http.middleware import CrossOrigin
from daemon.api.service import create_api
from daemon.app.outward.calls import Calls, answering_calls
from daemon.app.outward.replication import Replication, Webhooks
from daemon.app.page.commands import page_of
from daemon.app.runtime import Runtime
from daemon.app.sandbox import sandbox_answers
from daemon.app.status import announce
from daemon.app.upkeep.housekeeping import Certificate, write_uses
from daemon.app.upkeep.line_history import LineHistory, box
from daemon.settings import Settings
from daemon.store.tables.meta import read_damage
from daemon.usecases.worker.machine_workers import MachineWorkers

ANSWER_GRACE = 1.0
"""Seconds for the answers after what was on the line (`serve.STOP_GRACE`), which say what became of it."""


class Application(NamedTuple):
    deps: ApiDeps
    calls: Calls
    front: FrontServer | None
    server: HttpServer


async def open_application(
    stack: AsyncExitStack,
    runtime: Runtime,
    *,
    replication: Replication,
    webhooks: Webhooks,
    history: LineHistory,
    certificate: Certificate,
    paper: Paper,
    stopping: asyncio.Event,
    reload: Callable[[], None],
    folder: Path | None,
) -> Application:
    """It answers when this returns; `stack` ends it. `folder` is the one shared with HAProxy's unit."""
    settings = runtime.settings
    deps = _api_deps(runtime, box(runtime, replication, webhooks, history), replication, stopping, paper)
    stack.push_async_callback(write_uses, deps, runtime.store)
    page = page_of(runtime, certificate, replication, webhooks, stop=stopping.set, reload=reload)
    stack.push_async_callback(page.jobs.close)
    app = create_api(deps, page)
    await sandbox_answers(runtime.workers)
    calls = await stack.enter_async_context(answering_calls(runtime, app))
    front = await _front(stack, settings, certificate, folder)
    server = HttpServer(app, _server_config(settings, front))
    await server.start()
    stack.push_async_callback(server.stop)
    return Application(deps, calls, front, server)


def _api_deps(
    runtime: Runtime, figures: Box, replication: Replication, stopping: asyncio.Event, paper: Paper
) -> ApiDeps:
    settings = runtime.settings
    return ApiDeps(
        workers=MachineWorkers(runtime.workers, runtime.retired),
        keyring=runtime.store.key_ring,
        timezone=settings.reports.timezone,
        clock=now_millis,
        allowed_hosts=(*settings.server.allowed_hosts, *host_names()),
        public_url=settings.server.public_url or "",
        cross_origin=CrossOrigin(settings.server.allowed_origins),
        upstream=replication.figures,
        disabled=frozenset(machine.nim for machine in settings.machine if not machine.enabled),
        version=version("mcfd"),
        box=figures,
        notifier=runtime.event_bus.notifier,
        paper=paper,
        stopping=stopping,
        logins=Logins(runtime.store.ledger, now_millis),
        sandbox=SandboxShare(let_pass=runtime.tills_first.let_pass),
        sandboxes=runtime.sandboxes,
        damage=lambda: runtime.store.retention.peek(read_damage).all,
        disk=runtime.disk_trouble,
    )


async def _front(
    stack: AsyncExitStack, settings: Settings, certificate: Certificate, folder: Path | None
) -> FrontServer | None:
    """None where the configuration wants nothing in between."""
    server = settings.server
    announce(server, folder)
    if not server.is_proxied:
        await withdraw(folder, server.host, server.port)
        return None
    front = FrontServer(folder, server.host, server.port, pem=certificate.pem())
    stack.push_async_callback(front.stop)
    await front.start()
    return front


def _server_config(settings: Settings, front: FrontServer | None) -> ServerConfig:
    return ServerConfig(
        host=settings.server.host,
        port=front.port if front else settings.server.port,
        behind=front.socket if front else None,
        grace=ANSWER_GRACE,
    )
