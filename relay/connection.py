"""Connection to the NATS servers; reconnects after each loss."""

import asyncio
from functools import partial

import structlog

from common.wire.nats_client import Client
from common.wire.nats_pull import NatsServers, connected, sessions
from relay.problems import BoxOffline

log = structlog.get_logger(__name__)


class Connection:
    """`run` connects until cancelled. `generation` increases with each connection: results of an older one may be
    outdated."""

    def __init__(self, options: NatsServers) -> None:
        self._options = options
        self._client: Client | None = None
        self.generation = 0
        self._opened = asyncio.Event()

    @property
    def is_open(self) -> bool:
        return self._client is not None and not self._client.is_closed

    @property
    def client(self) -> Client:
        """The open client. Raises BoxOffline without a connection."""
        if self._client is None or self._client.is_closed:
            raise BoxOffline
        return self._client

    async def opened(self) -> Client:
        """Waits for a connection and returns its client."""
        while not self.is_open:
            self._opened.clear()  # `_use` may not have noticed the loss yet
            await self._opened.wait()
        return self.client

    async def run(self) -> None:
        await sessions("relay", partial(connected, self._options, "mcfd-relay"), self._use)

    async def _use(self, client: Client) -> None:
        self._client = client
        self.generation += 1
        log.info("nats.connected")
        self._opened.set()
        await client.within(asyncio.Event().wait(), None)
