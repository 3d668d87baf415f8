"""Headquarters as a NATS JetStream stream: published, and acknowledged by the stream before it counts as sent.

nats-py, as seen in 2.16: while it reconnects by itself it buffers what is published, so a publish that timed out
is sent later all the same, and after some errors of the server it closes for good. Here a connection lives until
its first trouble; the next try, which the use case makes for ever, opens another. Nothing is buffered
(`pending_size=0`): a try that found no connection has certainly sent nothing, and one that timed out is unknown;
when it comes again, the stream knows it by its `Nats-Msg-Id`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import Header, PubAck

from daemon.core.delivery import Again, Delivered, Delivery, Refused
from daemon.upstream.credentials import Credentials, read_credentials
from daemon.upstream.options import BadOptions, Options, is_loopback, tls_context

SCHEMES = ("nats", "tls")
TOO_LARGE = 10054  # JSStreamMessageExceedsMaximumErr: the stream's own limit on one message
CLOSE_TIMEOUT = 1.0  # after a failed TLS handshake asyncio never tells that the connection is closed
SERVER_TIMEOUT = 5
PING_INTERVAL = 30
HEADER_BYTES = 128  # more than ours; the server counts them into the message, nats-py does not


def open_receiver(options: Options) -> NatsReceiver:
    servers = [part.strip() for part in options.url.split(",")]
    may_be_plain = [_may_be_plain(server, options) for server in servers]
    if options.credentials_file:
        read_credentials(options.credentials_file)  # a damaged one is told at the start, not at the first Z
    return NatsReceiver(servers, options, tls=tls_context(options.tls_ca), plain=all(may_be_plain))


class NatsReceiver:
    def __init__(self, servers: list[str], options: Options, *, tls: ssl.SSLContext, plain: bool) -> None:
        self._servers = servers
        self._options = options
        self._tls = tls
        self._plain = plain
        self._client: _Client | None = None
        self._opening = asyncio.Lock()
        self._complaint = ""

    async def deliver(self, event: bytes, *, report_id: str, subject: str, nim: str) -> Delivery:
        topic = f"{self._options.subject_prefix}.{nim}.{subject}"
        client = None
        self._complaint = ""
        try:
            client = await self._connected()
            ack = await client.publish_acknowledged(topic, event, report_id)
        except nats.js.errors.NoStreamResponseError:
            return Again(f"no stream takes {topic}")
        except nats.js.errors.APIError as error:
            return _judge(error)
        except nats.errors.MaxPayloadError:
            return Refused("larger than the server takes")
        except (OSError, nats.errors.Error, BadOptions) as error:  # a timeout is an OSError, and means unknown
            await self._drop(client)
            return Again(self._explain(error))
        except (ValueError, KeyError, TypeError):
            return Again(f"what answers on {topic} is not a stream")
        return Delivered() if ack.stream else Again(f"what answers on {topic} is not a stream")

    async def aclose(self) -> None:
        await self._drop(self._client)

    async def _connected(self) -> _Client:
        async with self._opening:
            if self._client is None or not self._client.is_connected:
                await self._drop(self._client)
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> _Client:
        file = self._options.credentials_file
        credentials = read_credentials(file) if file else None
        client = _Client(credentials, plain=self._plain, patience=self._options.timeout)
        try:
            async with asyncio.timeout(self._options.timeout):
                await client.connect(
                    servers=list(self._servers),
                    name="mcfd",
                    tls=self._tls,
                    error_cb=self._hear,
                    signature_cb=credentials.sign if credentials else None,
                    user_jwt_cb=credentials.jwt.encode if credentials and credentials.jwt else None,
                    allow_reconnect=False,
                    max_reconnect_attempts=1,  # each server is tried twice
                    reconnect_time_wait=0,
                    connect_timeout=SERVER_TIMEOUT,
                    ping_interval=PING_INTERVAL,
                    pending_size=0,
                )
        except BaseException:
            await _close(client)
            raise
        return client

    async def _drop(self, client: _Client | None) -> None:
        if client is not None:
            if client is self._client:
                self._client = None
            await _close(client)

    async def _hear(self, error: Exception) -> None:
        """What the server complains of between the lines, as a missing permission, belongs to the next failure."""
        self._complaint = str(error)

    def _explain(self, error: Exception) -> str:
        text = str(error) or "no answer in time"
        return f"{text} ({self._complaint})" if self._complaint not in text else text


class _Client(Client):
    """One connection. It says nothing in the clear where encryption is owed, and knows when it is over."""

    def __init__(self, credentials: Credentials | None, *, plain: bool, patience: float) -> None:
        super().__init__()
        self._public_nkey = credentials.public if credentials else None
        self._plain = plain
        self._patience = patience
        self._over = asyncio.Event()

    def _connect_command(self) -> bytes:
        # nats-py takes the server's word for whether to encrypt, even for tls://; this is sent just after.
        if not (self._plain or self._server_info.get("tls_required")):
            raise nats.errors.SecureConnRequiredError
        return super()._connect_command()

    async def _close(self, status: int, do_cbs: bool = True) -> None:
        """Where the last flush fails, nats-py stops half-way: the socket open, and a task waiting on it for ever."""
        try:
            await super()._close(status, do_cbs)
        except (OSError, RuntimeError) as error:
            await self._error_cb(error)
        finally:
            self._over.set()
            for subscription in self._subs.values():
                subscription._stop_processing()  # noqa: SLF001  # what the parent does a few lines later
            self._subs.clear()
            if self._transport:
                self._transport.close()  # type: ignore[no-untyped-call]  # nats-py leaves it without types

    async def publish_acknowledged(self, topic: str, event: bytes, message_id: str) -> PubAck:
        """nats-py waits for an answer to the very end, even when the connection has ended meanwhile."""
        if len(event) + HEADER_BYTES > self.max_payload:
            raise nats.errors.MaxPayloadError
        headers = {Header.MSG_ID.value: message_id}
        publish = self.jetstream().publish(topic, event, timeout=self._patience, headers=headers)
        publishing = asyncio.create_task(publish)
        over = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait({publishing, over}, return_when=asyncio.FIRST_COMPLETED)
            if not publishing.done():
                raise nats.errors.ConnectionClosedError
            return publishing.result()
        finally:
            publishing.cancel()
            over.cancel()
            await asyncio.gather(publishing, over, return_exceptions=True)


def _judge(error: nats.js.errors.APIError) -> Delivery:
    if error.err_code == TOO_LARGE:
        return Refused("larger than the stream takes")
    return Again(f"the stream answers {error.code}: {error.description}")


async def _close(client: Client) -> None:
    # The connection is over either way, and nothing was left in its buffers.
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await client.close()


def _may_be_plain(server: str, options: Options) -> bool:
    """`tls://` always encrypts, `nats://` beyond loopback unless allowed otherwise."""
    try:
        url = urlsplit(server)
        url.port  # noqa: B018  # reading it checks it
    except ValueError as error:
        raise BadOptions(f"upstream.url: {error}") from None
    if url.scheme not in SCHEMES or not url.hostname:
        raise BadOptions("upstream.url: kind nats needs nats://… or tls://…, several with commas between")
    return url.scheme == "nats" and (options.allow_plain or is_loopback(url.hostname))
