"""Connection to the NATS servers; reconnects after each loss."""

from __future__ import annotations

import asyncio
import random

import structlog

from common.wire.errors import NatsError, NoAnswer
from common.wire.keys import BadCredentials
from common.wire.nats_client import Client
from common.wire.nats_pull import NatsServers, connected
from relay.problems import BoxOffline

log = structlog.get_logger(__name__)

AGAIN_SECONDS = 1.0
LOOK_SECONDS = 5.0


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
            await self._opened.wait()
        return self.client

    async def run(self) -> None:
        last_error = ""
        while True:
            try:
                self._client = await connected(self._options, "mcfd-relay")
                self.generation += 1
                last_error = ""
                log.info("nats.connected")
                self._opened.set()
                await self._until_lost(self._client)
            except (OSError, NatsError, BadCredentials, TimeoutError) as error:
                if str(error) != last_error:
                    last_error = str(error)
                    log.error("nats.unavailable", reason=last_error)  # noqa: TRY400  # one line is enough
            finally:
                self._opened.clear()
                if self._client is not None:
                    await self._client.close()
            await asyncio.sleep(AGAIN_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311  # spreads reconnections

    async def _until_lost(self, client: Client) -> None:
        while True:
            try:
                await client.within(asyncio.Event().wait(), LOOK_SECONDS)
            except NoAnswer:
                continue
