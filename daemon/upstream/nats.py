"""Headquarters as a NATS JetStream stream: published, and acknowledged by the stream before it counts as sent.

nats-py, as seen in 2.16: while it reconnects by itself it buffers what is published, so a publish that timed out
is sent later all the same, and after some errors of the server it closes for good. Here a connection lives until
its first trouble; the next try, which the use case makes for ever, opens another. Nothing is buffered
(`pending_size=0`): a try that found no connection has certainly sent nothing, and one that timed out is unknown;
when it comes again, the stream knows it by its `Nats-Msg-Id`. What it knows already without our having sent it is sent once more, under an
id that nobody else can know; headquarters keeps each closure once.

Whoever reads the stream believes the signature in the headers, never the subject alone: it is the same as over HTTPS.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js.api import Header, PubAck
from nats.protocol.parser import Parser

from common.language import Text
from common.network import is_loopback
from common.wire.cancellation import ended
from common.wire.keys import SigningKey
from common.wire.presence import Answer, read_answer
from common.wire.signing import sign
from common.wire.subjects import ASK, PRESENCE
from daemon.core.delivery import Again, Delivered, Delivery, Refused
from daemon.upstream.credentials import Credentials, read_credentials
from daemon.upstream.options import BadOptions, Options, tls_context
from daemon.upstream.signing import read_keys, signing_time

SCHEMES = ("nats", "tls")
TOO_LARGE = 10054  # JSStreamMessageExceedsMaximumErr: the stream's own limit on one message
CLOSE_TIMEOUT = 1.0  # after a failed TLS handshake asyncio never tells that the connection is closed
SERVER_TIMEOUT = 5
PING_INTERVAL = 30
NO_STREAM = Text("what answers on {topic} is not a stream")
NOT_OURS = Text("the stream of {topic} says that it has what was never sent")
NO_SERVER = Text("what answers there is no NATS server")
MOST_REMEMBERED = 1000
MOST_UNREAD = 65_536
"""Bytes of a line or a message that has not come to its end; what a server has to say to a box is a tenth of it."""
HEADER_LINE = len("NATS/1.0\r\n\r\n")
T = TypeVar("T")
_DENIED = re.compile(r'permissions violation for publish to "([^"]+)"', re.IGNORECASE)


def open_receiver(options: Options) -> NatsReceiver:
    servers = [part.strip() for part in options.url.split(",")]
    may_be_plain = [_may_be_plain(server, options) for server in servers]
    # What is damaged is told at the start, not at the first Z.
    credentials = read_credentials(options.credentials_file) if options.credentials_file else None
    keys: list[SigningKey] = [*read_keys(options.key_files)]
    if not keys and credentials is not None:
        keys = [credentials.signing_key]
    if not keys:
        raise BadOptions("upstream: kind nats needs credentials_file or key_file: events are signed")
    return NatsReceiver(servers, options, keys, tls=tls_context(options.tls_ca), plain=all(may_be_plain))


class NatsReceiver:
    def __init__(
        self,
        servers: list[str],
        options: Options,
        keys: Sequence[SigningKey],
        *,
        tls: ssl.SSLContext,
        plain: bool,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._servers = servers
        self._options = options
        self._keys = keys
        self.key_id = keys[0].id
        self._tls = tls
        self._plain = plain
        self._now = now
        self._client: _Client | None = None
        self._opening = asyncio.Lock()
        self._own = uuid.uuid4().hex
        self._ours: dict[str, None] = {}
        """Message ids that the stream has from us, if it has them at all."""

    async def deliver(
        self, event: bytes, *, report_id: str, subject: str, nim: str, since: int = 0, last_sent: int = 0
    ) -> Delivery:
        """`since`: when the event was made (ms). A box whose clock has lost the date signs with that time, not with 1970.
        `last_sent`: when it was delivered before (ms); the stream would otherwise take what is sent anew on purpose for a
        repetition, and drop it."""
        topic = f"{self._options.subject_prefix}.{nim}.{subject}"
        at = signing_time(self._now(), since)
        message_id = "/".join((nim, report_id, *([str(last_sent)] if last_sent else [])))
        signed = sign(self._keys, report_id, at, event)
        delivery, is_known = await self._publish(topic, event, {Header.MSG_ID.value: message_id, **signed})
        if is_known and message_id not in self._ours:
            # Ids count for the whole stream, so that another shop may have used this one first. Nobody else knows the next one.
            message_id = f"{message_id}/{self._own}"
            is_repeated = message_id in self._ours
            self._remember(message_id)
            delivery, is_known = await self._publish(topic, event, {Header.MSG_ID.value: message_id, **signed})
            return Again(str(NOT_OURS(topic=topic))) if is_known and not is_repeated else delivery
        if isinstance(delivery, Delivered):
            self._remember(message_id)
        return delivery

    def _remember(self, message_id: str) -> None:
        self._ours[message_id] = None
        while len(self._ours) > MOST_REMEMBERED:
            del self._ours[next(iter(self._ours))]

    async def _publish(self, topic: str, event: bytes, headers: Mapping[str, str]) -> tuple[Delivery, bool]:
        """What became of it, and whether the stream says that it has a message of this id already."""
        try:
            client = await self._connected()
        except (OSError, nats.errors.Error, BadOptions) as error:
            return Again(str(error) or str(Text("no connection in time"))), False
        try:
            ack = await client.publish_acknowledged(topic, event, headers)
        except Exception as error:
            outcome = _judge(error, topic)
            if outcome is None:
                raise
            if not isinstance(error, _SAID):
                await self._drop(client)
            return outcome, False
        return (Delivered(), bool(ack.duplicate)) if ack.stream else (Again(str(NO_STREAM(topic=topic))), False)

    async def announce(self, presence: bytes, *, nim: str) -> Answer | None:
        """The last word stays in the stream; whoever is there at headquarters answers the same word asked. None when nobody heard."""
        headers = sign(self._keys, str(uuid.uuid4()), int(self._now()), presence)
        try:
            client = await self._connected()
            await _apart(
                client.publish(f"{self._options.subject_prefix}.{nim}.{PRESENCE}", presence, headers=dict(headers))
            )
            ask = f"{self._options.subject_prefix}.{nim}.{ASK}"
            answer = await _apart(client.request(ask, presence, timeout=self._options.timeout, headers=dict(headers)))
        except (OSError, nats.errors.Error, BadOptions):  # no connection, or nobody there at the moment
            return None
        return read_answer(answer.data)

    async def trial(self, event: bytes, *, event_id: str, nim: str) -> Delivery:
        """As far as the servers and their word on certificate and credentials: what is published stays in the stream."""
        del event, event_id, nim
        try:
            await self._connected()
        except BadOptions as error:
            return Refused(str(error))
        except (OSError, nats.errors.Error) as error:
            cause = f"{type(error).__name__}: {error}"
            return Again(str(Text("no connection, or a broken one ({cause})", cause=cause)))
        return Delivered()

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
                connecting = client.connect(
                    servers=list(self._servers),
                    name="mcfd",
                    tls=self._tls,
                    error_cb=client.hear,
                    signature_cb=credentials.sign if credentials else None,
                    user_jwt_cb=credentials.jwt.encode if credentials and credentials.jwt else None,
                    # An inbox of its own, which the servers let nobody else listen at (config/nats/users.conf).
                    inbox_prefix=f"_INBOX.{credentials.public}" if credentials else "_INBOX",
                    allow_reconnect=False,
                    max_reconnect_attempts=1,  # a server that refuses the connection is tried twice
                    reconnect_time_wait=0,
                    connect_timeout=SERVER_TIMEOUT,
                    ping_interval=PING_INTERVAL,
                    pending_size=0,
                )
                await _apart(connecting)
        except BaseException as error:
            await _close(client)
            if isinstance(error, OSError | nats.errors.Error) and client.complaint:
                raise nats.errors.Error(client.explained(error)) from error
            if isinstance(error, _NO_GREETING):
                raise nats.errors.Error(str(NO_SERVER)) from error
            raise
        return client

    async def _drop(self, client: _Client | None) -> None:
        if client is not None:
            if client is self._client:
                self._client = None
            await _close(client)


class _DeniedError(Exception):
    """The server does not let this key publish there: said of one subject, and no trouble of the others."""


_SAID = (_DeniedError, nats.js.errors.APIError, nats.errors.MaxPayloadError, ValueError, KeyError, TypeError)
"""Somebody has answered: the connection is as good as before."""
_NO_GREETING = (ValueError, TypeError, AttributeError, LookupError)
"""What nats-py makes of a greeting without an end, or of another shape than it takes for granted."""


class _BoundedParser(Parser):
    """nats-py's keeps whatever comes until it is whole."""

    async def parse(self, data: bytes = b"") -> None:
        await super().parse(data)
        if len(self.buf) > MOST_UNREAD:
            raise nats.errors.ProtocolError


class _Client(Client):
    """One connection. It says nothing in the clear where encryption is owed, and knows when it is over."""

    def __init__(self, credentials: Credentials | None, *, plain: bool, patience: float) -> None:
        super().__init__()
        self._public_nkey = credentials.public if credentials else None
        self._plain = plain
        self._patience = patience
        self._ps = _BoundedParser(self)
        self._over = asyncio.Event()
        self._denied: dict[str, asyncio.Future[None]] = {}
        self.complaint = ""
        """What the server last complained of that was of no single subject."""

    async def hear(self, error: Exception) -> None:
        """What the server says between the lines. A missing permission belongs to whoever publishes there, nobody else."""
        denied = _DENIED.search(str(error))
        if denied is None:
            self.complaint = str(error)
            return
        waiting = self._denied.get(denied[1].lower())
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def explained(self, error: BaseException) -> str:
        text = str(error) or "no answer in time"
        return f"{text} ({self.complaint})" if self.complaint and self.complaint not in text else text

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
            if self._transport:
                self._transport.close()  # type: ignore[no-untyped-call]  # nats-py leaves it without types

    async def publish_acknowledged(self, topic: str, event: bytes, headers: Mapping[str, str]) -> PubAck:
        """nats-py waits for an answer to the very end, even when the connection has ended or the server has said no."""
        if len(event) + _size(headers) > self.max_payload:  # the server counts the headers in, nats-py does not
            raise nats.errors.MaxPayloadError
        publish = self.jetstream().publish(topic, event, timeout=self._patience, headers=dict(headers))
        publishing = asyncio.create_task(publish)
        over = asyncio.create_task(self._over.wait())
        # nats-py hands on what the server says in small letters.
        denied = self._denied[topic.lower()] = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait({publishing, over, denied}, return_when=asyncio.FIRST_COMPLETED)
            if denied.done():
                raise _DeniedError(f"permissions violation: this key may not publish on {topic}")
            if not publishing.done():
                raise nats.errors.Error(self.explained(nats.errors.ConnectionClosedError()))
            return publishing.result()
        finally:
            del self._denied[topic.lower()]
            await _end(publishing, over)


def _size(headers: Mapping[str, str]) -> int:
    """Of the headers as they go over the line."""
    return HEADER_LINE + sum(len(name) + len(value) + len(": \r\n") for name, value in headers.items())


def _judge(error: Exception, topic: str) -> Delivery | None:
    """The same table as over HTTP (`daemon.upstream.verdict`): parked is only what is wrong in the event itself. None for what
    is a mistake of ours."""
    if isinstance(error, nats.js.errors.APIError) and error.err_code == TOO_LARGE:
        return Refused(str(Text("larger than the stream takes")))
    if isinstance(error, nats.errors.MaxPayloadError):
        return Refused(str(Text("larger than the server takes")))
    told = _told(error, topic)
    return None if told is None else Again(told)


def _told(error: Exception, topic: str) -> str | None:
    match error:
        case nats.js.errors.NoStreamResponseError():
            return str(Text("no stream takes {topic}", topic=topic))
        case nats.js.errors.APIError():
            return str(Text("the stream answers {code}: {cause}", code=error.code, cause=error.description))
        case ValueError() | KeyError() | TypeError():
            return str(NO_STREAM(topic=topic))
        case OSError() | nats.errors.Error() | _DeniedError():  # a timeout is an OSError, and means unknown
            return str(error) or str(Text("no answer in time"))
    return None


async def _close(client: Client) -> None:
    # The connection is over either way, and nothing was left in its buffers.
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_TIMEOUT):
            await _apart(client.close())


async def _apart(work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives, in a task of its own, which is cancelled with its caller. nats-py drops a cancellation in several
    places, and so does `asyncio.wait_for` of Python 3.11 when the result comes at the same moment: a task that awaits it directly
    goes on as if nobody had stopped it, and the daemon's stop waits for ever."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task})
        return task.result()
    finally:
        await _end(task)


async def _end(*tasks: asyncio.Task[Any]) -> None:
    await ended(*(task for task in tasks if not task.done()))
    await asyncio.gather(*tasks, return_exceptions=True)  # their errors count as seen


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
