"""`mcfd-relay`: its configuration, its command line, and `mcfd-relay run`, which starts the NATS connection, the
delivery of stored sales and the HTTP server and stops them in reverse order."""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import click
import msgspec
import structlog

from common import logs, notify, process
from common.http_server import HttpServer, ServerConfig
from common.settings import Port, Section, SettingsError, load
from common.turns import run_beside
from common.wire.call import ANSWER_SECONDS
from common.wire.nats_pull import NatsServers
from relay.api import RelayParts, create_relay
from relay.boxes import Boxes
from relay.connection import Connection
from relay.later import LaterCalls

log = structlog.get_logger(__name__)

DEFAULT = Path("/etc/mcfd-relay/relay.toml")
EXIT_OK, EXIT_CONFIG, EXIT_UNUSABLE = 0, 2, 3


class RelayServer(Section, frozen=True):
    """Port 0 selects a free port. The relay belongs behind a load balancer or web server with a certificate.
    `answer_seconds` is the time limit for a box's answer; it must be shorter if the load balancer's own limit is."""

    host: str = "127.0.0.1"
    port: Port = 8491
    answer_seconds: Annotated[float, msgspec.Meta(ge=1, le=ANSWER_SECONDS)] = ANSWER_SECONDS


class RelaySettings(Section, frozen=True):
    nats: NatsServers
    server: RelayServer = RelayServer()


@click.group()
@click.version_option(package_name="mcfd", message="mcfd-relay %(version)s")
def cli() -> None:
    """Le relais : l'API de chaque boîtier à une seule adresse. / The relay: the API of every box at one address."""


@cli.command()
@click.option("--config", type=click.Path(path_type=Path), default=DEFAULT, show_default=True, help="TOML file.")
def run(config: Path) -> None:
    """Pass requests on to boxes; until SIGTERM."""
    try:
        settings = load(config, RelaySettings)
    except SettingsError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_CONFIG)
    logs.configure()
    sys.exit(serve(settings))


def serve(settings: RelaySettings) -> int:
    """Runs until SIGTERM or SIGINT and returns the exit code."""
    try:
        return process.run(_serve(settings))
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


def main() -> None:
    cli()
