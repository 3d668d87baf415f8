"""A connection to headquarters' NATS servers, and the messages of a JetStream consumer, each as soon as it arrives."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import structlog

from common.settings import Section
from common.turns import raise_if_cancelled
from common.wire.errors import NatsError, NoAnswer
from common.wire.keys import BadCredentials, Credentials, read_credentials
from common.wire.nats_client import Client, Msg
from common.wire.nats_headers import MINIMUM

log = structlog.get_logger(__name__)

EXPIRES_SECONDS = 5.0
ANSWER_SECONDS = 5.0
TOGETHER_SECONDS = 0.25
"""Wait for more messages after the first: all together are one transaction."""
MAX_BYTES = 16 * 1024 * 1024
"""Limit of one request: hundreds of a shop's largest messages need not all be in memory."""
ENDED = ("404", "408", "409")
"""The request has ended: no more messages, its time is over, or the server ends it."""
GONE = "Consumer Deleted"
CONNECT_SECONDS = 5
AGAIN_SECONDS = 1.0
NEW_TROUBLE_SECONDS = 60.0
"""After a good session of this length the same error is logged again."""


@contextlib.asynccontextmanager
async def pulling(client: Client, stream: str, durable: str, most: int) -> AsyncIterator[Pull]:
    inbox = client.new_inbox()
    pull = Pull(client, inbox, f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}", most)
    subscription = client.subscribe(inbox, pull.receive)
    try:
        yield pull
    finally:
        client.unsubscribe(subscription)


class Pull:
    """For one task. Requests `most` messages at a time, and the next ones before these are processed. Unacknowledged
    messages come again, as with any consumer."""

    def __init__(self, client: Client, inbox: str, subject: str, most: int) -> None:
        self._client = client
        self._inbox = inbox
        self._next = subject
        self._most = most
        self._here: deque[Msg] = deque()
        self._owed = 0
        """Messages still due from the open request."""
        self._refused = ""
        self._awaited = 1
        self._woken = asyncio.Event()

    def receive(self, msg: Msg) -> None:
        """Called by the client: a message, or the end of a request. Anything with a reply subject is a message."""
        if msg.reply:
            self._owed -= 1
            self._here.append(msg)
            if len(self._here) < self._awaited and self._owed > 0:
                return
        else:
            self._owed = 0
            status, description = msg.headers.status, msg.headers.description
            if status not in ENDED or description == GONE:
                self._refused = f"{self._next}: {status} {description}"
        self._woken.set()

    async def next_messages(self) -> list[Msg]:
        """One or more messages; none after some seconds without any. NatsError if the server is silent or refuses."""
        if not self._here:
            self._ask()
            await self._wait(EXPIRES_SECONDS + ANSWER_SECONDS, 1)
        if self._here:
            await self._wait(TOGETHER_SECONDS, self._most)
        found = [self._here.popleft() for _ in range(min(len(self._here), self._most))]
        if found:
            self._ask()
        return found

    def return_rest(self) -> None:
        """Messages that were not taken come again at once, to any instance that requests them."""
        with contextlib.suppress(NatsError):  # the connection is lost: they come again later
            while self._here:
                self._here.popleft().nak(0.0)

    def _ask(self) -> None:
        if self._owed > 0:
            return
        self._owed = self._most  # an upper limit: no message marks the end
        request = {"batch": self._most, "max_bytes": MAX_BYTES, "expires": int(EXPIRES_SECONDS * 1e9)}
        self._client.publish(self._next, msgspec.json.encode(request), reply=self._inbox)

    async def _wait(self, seconds: float, count: int) -> None:
        """Waits for `count` messages, the end of the request, or the time limit; NoAnswer if one was due by then."""
        end = asyncio.get_running_loop().time() + seconds
        self._awaited = count
        while len(self._here) < count and self._owed > 0:
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            self._woken.clear()
            with contextlib.suppress(NoAnswer):
                await self._client.within(self._woken.wait(), left)
        if self._refused:
            raise NatsError(self._refused)
        if not self._here and self._owed > 0:
            raise NoAnswer(f"{self._next}: no answer in time")


class NatsServers(Section, frozen=True):
    """`url` may be several addresses, separated by commas."""

    url: str
    credentials_file: Path | None = None
    tls_ca: Path | None = None


class NatsOptions(NatsServers, frozen=True):
    """`durable` is the name of the consumer that all instances share."""

    durable: str = "headquarters"


async def connected(options: NatsServers, name: str = "mcfd-hq", credentials: Credentials | None = None) -> Client:
    """Connects with those credentials, or the options' own. Raises OSError, NatsError or BadCredentials. A lost
    connection does not come back, so that its user first reads what it may have missed."""
    if credentials is None and options.credentials_file is not None:
        credentials = read_credentials(options.credentials_file, "nats.credentials_file")
    servers = [server.strip() for server in options.url.split(",")]
    context = ssl.create_default_context(cafile=options.tls_ca)
    return await open_client(servers, credentials, context, name=name, seconds=CONNECT_SECONDS)


async def sessions(
    of: str,
    opened: Callable[[], Awaitable[Client]],
    session: Callable[[Client], Awaitable[None]],
    expected: tuple[type[Exception], ...] = (),
) -> None:
    """Runs sessions, each with its own connection, one after the other until cancelled; any error ends one."""

    async def run_session() -> None:
        client = await opened()
        try:
            await session(client)
        finally:
            await client.close()

    await run_repeatedly(run_session, (OSError, BadCredentials, *expected), "nats.lost", of=of)


async def run_repeatedly(
    run: Callable[[], Awaitable[None]], expected: tuple[type[Exception], ...], event: str, **context: str
) -> None:
    """Runs `run` again and again until cancelled, also after errors. An error is logged as `event`: not again while it
    stays the same, and with a traceback unless it is a NatsError or one of the `expected`."""
    logged, clock = "", asyncio.get_running_loop().time
    while True:
        raise_if_cancelled()
        began = clock()
        try:
            await run()
        except Exception as error:  # whatever one message has caused, the others go on
            reason = f"{type(error).__name__}: {error}"
            if reason != logged or clock() - began >= NEW_TROUBLE_SECONDS:
                logged = reason
                log.exception(event, reason=reason, exc_info=not isinstance(error, (NatsError, *expected)), **context)
        await asyncio.sleep(AGAIN_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311  # spreads reconnections


async def open_client(
    servers: list[str], signer: Credentials | None, context: ssl.SSLContext, *, name: str, seconds: float
) -> Client:
    """Connects to the first server that accepts. Raises the last server's OSError or NatsError if none does."""
    failure: Exception = NatsError("no server is named")
    for server in servers:
        client = Client()
        try:
            async with asyncio.timeout(seconds):
                await client.open(urlsplit(server if "://" in server else f"nats://{server}"), signer, context, name)
        except (OSError, NatsError, ValueError) as error:
            await client.close()
            failure = error if str(error) else NoAnswer(f"{server}: no answer in time")
        except BaseException:
            await client.close()
            raise
        else:
            if client.outdated:
                log.warning("nats.outdated", version=client.outdated, minimum=MINIMUM)
            return client
    raise failure
