"""`mcfd-relay run`: starts the NATS connection, the delivery of stored sales and the HTTP server; stops them in
reverse order."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from importlib.metadata import version

import structlog

from common import event_loop, notify
from common.http_server import HttpServer, ServerConfig
from common.turns import run_beside
from common.wire.call import ANSWER_SECONDS
from relay.api import RelayParts, create_relay
from relay.boxes import Boxes
from relay.connection import Connection
from relay.later import LaterCalls
from relay.settings import RelaySettings

log = structlog.get_logger(__name__)

EXIT_OK, EXIT_UNUSABLE = 0, 3


def serve(settings: RelaySettings) -> int:
    """Runs until SIGTERM or SIGINT and returns the exit code."""
    try:
        return event_loop.run(_serve(settings))
    except OSError as error:
        log.critical("start.refused", reason=str(error))
        return EXIT_UNUSABLE


async def _serve(settings: RelaySettings) -> int:
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        connection = Connection(settings.nats)
        boxes = Boxes(connection, seconds=settings.server.answer_seconds)
        later = LaterCalls(connection, boxes)
        run_beside(stack, connection.run(), "nats")
        run_beside(stack, later.run(), "later")
        # Running calls are answered before the stop: a client with a broken connection has to ask again.
        config = ServerConfig(host=settings.server.host, port=settings.server.port, grace=ANSWER_SECONDS)
        server = HttpServer(create_relay(RelayParts(connection, boxes, later)), config)
        await server.start()
        stack.push_async_callback(server.stop)
        for number in (signal.SIGTERM, signal.SIGINT):  # after uvicorn, which takes them at its start
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        run_beside(stack, notify.run_watchdog(), "watchdog")
        log.info("relay.started", version=version("mcfd"), address=f"http://{settings.server.host}:{server.port}")
        notify.ready()
        await server.until(stop)
        notify.stopping()
    log.info("relay.stopped")
    return EXIT_OK
