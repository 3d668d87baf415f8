"""Boxes that are revoked are cut off at the NATS servers, within a second, by any instance or command.

The servers let boxes in by the account of the shops, which names the users that it does not let in. What the register says is compared with it whenever
the register has changed, and once a minute: a server may have been away, or put back."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import structlog

from common.wire.errors import NatsError
from common.wire.keys import credentials_of
from common.wire.nats_client import Client
from common.wire.nats_pull import NatsOptions, connected
from headquarters.core.nats_accounts import LOOKUP, UPDATE, NatsIssuer
from headquarters.intake.stream import sessions
from headquarters.intake.threads import Threads
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
        """For ever; what could not be done is tried again."""
        updater = self._issuer.updater
        await sessions(
            "revocations", lambda: connected(self._options, "mcfd-hq accounts", credentials_of(updater)), self._follow
        )

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
