"""Revokes boxes at the NATS servers within a second, for a revocation by any instance or command.

Servers admit boxes by the shops' account, which lists the revoked users. It is compared with the register after each
change and every minute, since a server may have been offline or restored."""

import asyncio
import time
from typing import Any

import msgspec
import structlog

from common.wire.errors import NatsError
from common.wire.keys import credentials_of
from common.wire.nats_client import Client
from common.wire.nats_pull import NatsOptions, connected, sessions
from headquarters.core.nats_accounts import LOOKUP, UPDATE, NatsIssuer
from headquarters.intake.threads import Threads
from headquarters.store.database import StoreError
from headquarters.store.store import HqStore

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.5
COMPARE_SECONDS = 60.0
ANSWER_SECONDS = 5.0
OK = 200


class NatsRevocations:
    def __init__(self, store: HqStore, threads: Threads, options: NatsOptions, issuer: NatsIssuer) -> None:
        self._store = store
        self._threads = threads
        self._options = options
        self._issuer = issuer

    async def run(self) -> None:
        """Runs until cancelled; retries after errors."""
        await sessions("revocations", self._connected, self._follow, (StoreError,))

    async def _connected(self) -> Client:
        return await connected(self._options, "mcfd-hq accounts", credentials_of(self._issuer.updater))

    async def _follow(self, client: Client) -> None:
        clock = asyncio.get_running_loop().time
        compared, at = -1, clock()
        while True:
            revision = await self._threads.run(self._store.register.revision)
            if revision != compared or clock() - at > COMPARE_SECONDS:
                await self._compare(client)
                compared, at = revision, clock()
            await asyncio.sleep(LOOK_SECONDS)

    async def _compare(self, client: Client) -> None:
        users = await self._threads.run(self._store.joining.nats_users)
        present = await client.request(LOOKUP.format(account=self._issuer.shops), b"", ANSWER_SECONDS)
        account = self._issuer.shops_jwt(present.data.decode("ascii"), users.valid, users.revoked, int(time.time()))
        if account is None:
            return
        answer = await client.request(UPDATE, account.encode(), ANSWER_SECONDS)
        update = msgspec.json.decode(answer.data, type=dict[str, Any])
        if update.get("data", {}).get("code") != OK:
            error = update.get("error", {})
            raise NatsError(f"the server does not take the account: {error.get('description') or error.get('message')}")
        log.info("revocations.updated", revoked=len(users.revoked))
