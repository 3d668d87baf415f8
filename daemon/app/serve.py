"""`mcfd run`: starts in an order that announces nothing before it works, and stops in the opposite order."""

import asyncio
import gc
import os
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import structlog

from common import notify, process
from common.files import runtime_folder
from common.front import BadCertificate, FrontError, FrontServer, withdraw
from common.http_server import HttpServer, ServerConfig
from common.sockets import host_names, in_url
from common.turns import run_beside
from common.wire.instants import now_millis
from daemon.api.access.context import ApiDeps
from daemon.api.access.throttle import SandboxShare
from daemon.api.box import Box, Paper
from daemon.api.http.middleware import CrossOrigin
from daemon.api.service import create_api, drawn_routes
from daemon.app.control import controlled
from daemon.app.outward.calls import Calls, answering_calls
from daemon.app.outward.replication import Replication, replicating
from daemon.app.outward.webhooks import Webhooks, posting
from daemon.app.page.commands import page_of
from daemon.app.page.files import MCFD, carry_out_order, is_ordered
from daemon.app.paper import paper_of, print_closures
from daemon.app.reload import ReloadedPart, Reloader
from daemon.app.runtime import Runtime, TaxpayerMismatch, build
from daemon.app.sandbox import sandbox_answers
from daemon.app.status import announce, report
from daemon.app.upkeep.housekeeping import (
    Certificate,
    note_configuration,
    noting_configuration,
    run_housekeeping,
    store_key_uses,
    trim_sandboxes,
    write_uses,
)
from daemon.app.upkeep.line_history import LineHistory, box
from daemon.core.certified_core import CORE_VERSION, core_digest
from daemon.core.errors import StorageError
from daemon.owner import remove_leftovers
from daemon.settings import Settings
from daemon.store.sqlite.disk_failure import ending_on_failure
from daemon.store.sqlite.free_space import BYTES_PER_MB
from daemon.store.tables.meta import read_damage
from daemon.tls import AuthorityError
from daemon.upstream.options import BadOptions
from daemon.usecases.worker.machine_workers import MachineWorkers

log = structlog.get_logger(__name__)

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_UNUSABLE = 3
EXIT_DISK = 74
"""A disk error, as in sysexits.h (EX_IOERR): nothing was tried again."""
STOP_GRACE = 100.0
"""Seconds for exchanges on the line (decision 38); the line's own limits are shorter for a machine that is silent."""
ANSWER_GRACE = 1.0
"""Seconds after that for the answers, which report the outcome."""
GC_THRESHOLD = 2_000
"""New objects between two collections: these take 1 ms on the loop, ten times as many 10 ms or more."""
SWITCH_INTERVAL = 0.0005
"""Seconds that the loop waits at most for another thread (a QR code, a template, rows). Python's default is 5 ms, at
each of a certification's dozen wakings."""


def serve(settings: Settings, front: Path | None = None) -> int:
    """Runs until SIGTERM or SIGINT; returns the exit code. An error that prevents the start is one line in the log.
    `front` is the folder shared with HAProxy's unit."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        with ending_on_failure(settings.storage.path, _end_at_once):
            remove_leftovers(settings.storage.path.parent)
            carry_out_order(settings)
            code = process.run(_serve(settings, front))
    except (BadOptions, BadCertificate, AuthorityError, FrontError, TaxpayerMismatch) as error:
        log.critical("start.refused", reason=str(error))
        return EXIT_USAGE
    except (StorageError, OSError) as error:
        log.critical("start.refused", reason=str(error))
        return EXIT_UNUSABLE
    if is_ordered(settings) and not notify.has_manager():
        # A new process opens the restored ledger. systemd starts one by itself (Restart=always).
        options = [
            *(("--config", str(settings.file)) if settings.file else ()),
            *(("--front", str(front)) if front else ()),
        ]
        os.execv(MCFD[0], [*MCFD, "run", *options])  # noqa: S606  itself
    return code


def _end_at_once(cause: str) -> NoReturn:
    """On the thread that met the failure: no further answer, and no further command to a machine."""
    log.critical("disk.failed", cause=cause)
    os._exit(EXIT_DISK)


@dataclass(frozen=True)
class Signals:
    """The process's signals; handled from the first moment on, since an unhandled SIGHUP would end the process."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self.reload.set)

    def _stop(self, number: int) -> None:
        """The second signal ends the process at once, like a kill (decision 38)."""
        if not self.stop.is_set():
            self.stop.set()
            return
        log.warning("daemon.stopped_at_once", signal=number)
        asyncio.get_running_loop().remove_signal_handler(number)
        os.kill(os.getpid(), number)


async def _serve(settings: Settings, folder: Path | None) -> int:
    signals = Signals()
    signals.listen()
    certificate = Certificate(settings)
    async with AsyncExitStack() as stack:
        # Both beside the ledger's check: the machines' first replies are still handled at once.
        fresh = asyncio.create_task(certificate.freshen_at_start())
        routes = asyncio.create_task(asyncio.to_thread(drawn_routes, with_page=True))
        runtime = await stack.enter_async_context(build(settings))
        replication = await stack.enter_async_context(replicating(runtime))
        webhooks = await stack.enter_async_context(posting(runtime))
        paper = paper_of(settings)
        await print_closures(runtime, paper)
        await note_configuration(runtime.store, settings)
        workers = MachineWorkers(runtime.workers, runtime.retired)
        wakes, reload = (replication.wake_all, webhooks.wake_all), signals.reload.set
        await stack.enter_async_context(controlled(runtime.store, settings, workers, wakes, reload))
        history = LineHistory(runtime)
        deps = _api_deps(runtime, box(runtime, replication, webhooks, history), replication, signals.stop, paper)
        page = page_of(runtime, certificate, replication, webhooks, stop=signals.stop.set, reload=reload)
        stack.push_async_callback(write_uses, deps.uses, page.logins.uses, runtime.store)
        stack.push_async_callback(page.jobs.close)
        await routes
        app = create_api(deps, page)
        await sandbox_answers(runtime.workers)
        calls = await stack.enter_async_context(answering_calls(runtime, app))
        await fresh
        front = await _front(stack, settings, certificate, folder)
        server = HttpServer(app, _server_config(settings, front))
        await server.start()
        stack.push_async_callback(server.stop)
        signals.listen()  # again: uvicorn sets its own handlers at its start
        address = f"{'https' if certificate.files else 'http'}://{in_url(settings.server.host)}:{server.port}"
        parts = (ReloadedPart(lambda _: certificate.reloading(front)), *_outward(replication, calls, webhooks))
        reloader = Reloader(settings, (*parts, ReloadedPart(noting_configuration(runtime.store))))
        run_beside(stack, report(runtime, address), "status")
        run_beside(stack, reloader.run(signals.reload), "reload")
        run_beside(stack, certificate.run(front), "certificate")
        run_beside(stack, run_housekeeping(runtime.store), "housekeeping")
        run_beside(stack, trim_sandboxes(runtime.store, settings.sandbox.max_size_mb * BYTES_PER_MB), "sandbox")
        run_beside(stack, history.run(), "line history")
        run_beside(stack, store_key_uses(deps.uses, page.logins.uses, runtime.store), "uses")
        _settle_memory()
        notify.ready()
        running = {"version": version("mcfd"), "core": f"{CORE_VERSION} {await asyncio.to_thread(core_digest)}"}
        log.info("daemon.started", **running, host=settings.server.host, port=server.port, address=address)
        await server.until(signals.stop)
        notify.stopping()
        log.info("daemon.stopping")
        # Together: exchanges on the line end, waiting requests are refused, and the answers are still sent.
        await server.stop(asyncio.gather(*(worker.close(STOP_GRACE) for worker in runtime.all_workers)))
    log.info("daemon.stopped")
    return EXIT_OK


def _outward(replication: Replication, calls: Calls, webhooks: Webhooks) -> tuple[ReloadedPart, ...]:
    return (
        ReloadedPart(replication.prepare, ("upstream",), replication.offer_parked),
        ReloadedPart(calls.prepare, ("upstream",)),
        ReloadedPart(webhooks.prepare, ("upstream", "webhook"), webhooks.offer_parked),
    )


def _settle_memory() -> None:
    """Exempts the objects of the start from collection: scanning them again costs 5 % of a certification. Later objects
    are nearly all freed by their reference counts. A collection before would free 370 objects in 50 ms."""
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    gc.enable()


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
        sandbox=SandboxShare(yield_to_tills=runtime.tills_first.yield_to_tills),
        sandboxes=runtime.sandboxes,
        damage=lambda: runtime.store.retention.peek(read_damage).all,
        disk=runtime.disk_trouble,
    )


async def _front(
    stack: AsyncExitStack, settings: Settings, certificate: Certificate, folder: Path | None
) -> FrontServer | None:
    """HAProxy in front of the server; None if the configuration needs none."""
    server = settings.server
    announce(server, runtime_folder())
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
