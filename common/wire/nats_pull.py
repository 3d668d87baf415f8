"""A connection to the NATS servers of headquarters, and the messages of a JetStream consumer: as many as there are and as soon as they are there."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import structlog

from common.settings import Section
from common.wire.errors import NatsError, NoAnswer
from common.wire.keys import Credentials, read_credentials
from common.wire.nats_client import Client, Msg
from common.wire.nats_headers import MINIMUM

log = structlog.get_logger(__name__)

EXPIRES_SECONDS = 5.0
ANSWER_SECONDS = 5.0
TOGETHER_SECONDS = 0.25
"""Given to others after a first message: what comes together is one transaction."""
MOST_BYTES = 16 * 1024 * 1024
"""Of one request: one shop's largest messages by the hundred need not all be in memory."""
ENDED = ("404", "408", "409")
"""A request has come to its end: there is nothing more, its time is over, or the server gives no more on it."""
GONE = "Consumer Deleted"
CONNECT_SECONDS = 5


@contextlib.asynccontextmanager
async def pulling(client: Client, stream: str, durable: str, most: int, *, waits: bool = True) -> AsyncIterator[Pull]:
    """Without `waits` what is there is taken, and nothing is requested ahead."""
    inbox = client.new_inbox()
    pull = Pull(client, inbox, f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}", most, waits=waits)
    subscription = client.subscribe(inbox, pull.heard)
    try:
        yield pull
    finally:
        client.unsubscribe(subscription)


class Pull:
    """For one task. Asks for `most` messages at a time, and for the next ones before these are at work; what is not acknowledged comes
    again, as with any consumer."""

    def __init__(self, client: Client, inbox: str, subject: str, most: int, *, waits: bool) -> None:
        self._client = client
        self._inbox = inbox
        self._next = subject
        self._most = most
        self._waits = waits
        self._here: deque[Msg] = deque()
        self._owed = 0
        """Messages of the request that is out."""
        self._refused = ""
        self._awaited = 1
        self._woken = asyncio.Event()

    def heard(self, msg: Msg) -> None:
        """Called by the client: a message, or the end of a request. What has a reply is a message, whatever its headers say."""
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

    async def take(self) -> list[Msg]:
        """At least one, or none after some seconds without any, or at once. NatsError when the server does not answer, or refuses."""
        if not self._here:
            self._ask()
            await self._wait(EXPIRES_SECONDS + ANSWER_SECONDS, 1)
        if self._here:
            await self._wait(TOGETHER_SECONDS, self._most)
        found = [self._here.popleft() for _ in range(min(len(self._here), self._most))]
        if found and self._waits:
            self._ask()
        return found

    def give_back(self) -> None:
        """What is here and was not taken comes again at once, to whoever requests it."""
        with contextlib.suppress(NatsError):  # the connection is gone: it comes again later
            while self._here:
                self._here.popleft().nak(0.0)

    def _ask(self) -> None:
        if self._owed > 0 and self._waits:
            return
        self._owed = self._most  # of what is there: no message marks the end
        how = {"expires": int(EXPIRES_SECONDS * 1e9)} if self._waits else {"no_wait": True}
        request = {"batch": self._most, "max_bytes": MOST_BYTES, **how}
        self._client.publish(self._next, msgspec.json.encode(request), reply=self._inbox)

    async def _wait(self, seconds: float, count: int) -> None:
        """Until so many are here, the request has ended, or the time is over, which is an error while there is none and one is owed."""
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
    """`url` may be several, with commas."""

    url: str
    credentials_file: Path | None = None
    tls_ca: Path | None = None


class NatsOptions(NatsServers, frozen=True):
    """`durable` names the consumers that all instances share."""

    durable: str = "headquarters"


async def connected(options: NatsServers, name: str = "mcfd-hq", credentials: Credentials | None = None) -> Client:
    """With those credentials, or the options' own. OSError, NatsError or BadCredentials when it cannot be had. One that is lost does not come back by itself, so that the caller
    uses it begins with what may have been missed."""
    if credentials is None and options.credentials_file is not None:
        credentials = read_credentials(options.credentials_file, "nats.credentials_file")
    servers = [server.strip() for server in options.url.split(",")]
    context = ssl.create_default_context(cafile=options.tls_ca)
    return await open_client(servers, credentials, context, name=name, seconds=CONNECT_SECONDS)


async def open_client(
    servers: list[str], signer: Credentials | None, context: ssl.SSLContext, *, name: str, seconds: float
) -> Client:
    """The first of the servers that takes us. OSError or NatsError of the last one when none does."""
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
