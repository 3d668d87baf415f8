"""Headquarters as a NATS JetStream stream: a closure counts as sent after the stream's acknowledgement.

A connection is used until its first error; the use case's next try opens another. Nothing is buffered: a try without a
connection has certainly sent nothing; after a timeout it is unknown, and the stream recognises the repetition by its
`Nats-Msg-Id`. If the stream claims an id that we have not sent, the closure is sent again under an id that cannot be
guessed; headquarters stores each closure once. A reader of the stream trusts the signature in the headers, as over
HTTPS, never the subject alone."""

from __future__ import annotations

import asyncio
import ssl
import time
import uuid
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec

from common.language import Text, sentence
from common.language.reasons import (
    CONNECTION_FAILED,
    NO_CONNECTION,
    NO_NATS_SERVER,
    NO_REPLY,
    SERVER_TOO_LARGE,
    STREAM_ANSWERED,
    STREAM_MISSING,
    STREAM_NOT_OURS,
    STREAM_TOO_LARGE,
    TOPIC_NO_STREAM,
)
from common.sockets import is_loopback
from common.wire.errors import Denied, MessageTooLarge, NatsError, NoAnswer, NoResponders, NotNats
from common.wire.keys import BadCredentials, Credentials, LaneHeader, SigningKey, decode_public, read_credentials
from common.wire.nats_client import Client
from common.wire.nats_headers import ASK, LANE, MINIMUM, PRESENCE, Acknowledgement, StreamRefusal
from common.wire.nats_pull import open_client
from common.wire.presence import PresenceAnswer, read_answer
from common.wire.signing import sign
from common.wire.upstream_kinds import KINDS
from daemon.core.delivery import Delivered, Delivery, DeliveryRefused, RetryLater
from daemon.core.machine.state import same_machine
from daemon.upstream.options import (
    BadOptions,
    Options,
    certificate_fault,
    connection_fault,
    read_keys,
    signing_time,
    tls_context,
)

TOO_LARGE = 10054  # JSStreamMessageExceedsMaximumErr: the stream's own limit of a message
SERVER_TIMEOUT = 5
OUTDATED = Text(
    "closures go through, but its nats-server {version} has known vulnerabilities: headquarters has to install a newer one ({minimum} or later)"
)
MAX_REMEMBERED = 1000
MAX_ANSWER = 65_536
"""Bytes; answers to a box are a tenth of it."""
MESSAGE_ID = "Nats-Msg-Id"
TROUBLE = (OSError, NatsError, BadOptions)
REPLY_ERRORS = (Denied, NoResponders, MessageTooLarge, msgspec.MsgspecError)
"""Errors after which the connection is still usable."""


def open_receiver(options: Options) -> NatsReceiver:
    servers = [_encrypted(server.strip(), options) for server in options.url.split(",")]
    # Damaged credentials are reported at the start, not at the first Z.
    credentials = _credentials(options)
    keys: list[SigningKey] = [*read_keys(options.key_files)]
    if not keys and credentials is not None:
        keys = [credentials.signing_key]
    if not keys:
        raise BadOptions("upstream: kind nats needs credentials_file or key_file: events are signed")
    return NatsReceiver(servers, options, keys, credentials, tls=tls_context(options.tls_ca))


class NatsReceiver:
    def __init__(
        self,
        servers: list[str],
        options: Options,
        keys: Sequence[SigningKey],
        credentials: Credentials | None,
        *,
        tls: ssl.SSLContext,
    ) -> None:
        self.credentials = credentials
        self.servers = servers
        self._options = options
        self._keys = keys
        self.key_id = keys[0].id
        self._tls = tls
        self._client: Client | None = None
        self._opening = asyncio.Lock()
        self._own = uuid.uuid4().hex
        self._ours: dict[str, None] = {}
        """Message ids that we have sent to the stream, whether or not it has them."""

    async def deliver(
        self, event: bytes, *, report_id: str, subject: str, nim: str, since: int = 0, last_sent: int = 0
    ) -> Delivery:
        """`since`: time of the event in ms. A box whose clock has lost the date signs with that time, not with 1970.
        `last_sent`: time of an earlier delivery in ms; part of the id, or the stream would drop a repetition."""
        topic = f"{self.place(self.name_of(nim))}.{subject}"
        at = signing_time(time.time(), since)
        message_id = "/".join((nim, report_id, *([str(last_sent)] if last_sent else [])))
        signed = sign(self._keys, report_id, at, event)
        delivery, is_duplicate = await self._publish(topic, event, {MESSAGE_ID: message_id, **signed})
        if is_duplicate and message_id not in self._ours:
            # Ids are shared in the whole stream: another shop may have used this one. The next one is random.
            message_id = f"{message_id}/{self._own}"
            is_repeated = message_id in self._ours
            self._remember(message_id)
            delivery, is_duplicate = await self._publish(topic, event, {MESSAGE_ID: message_id, **signed})
            return RetryLater(STREAM_NOT_OURS(topic=topic)) if is_duplicate and not is_repeated else delivery
        if isinstance(delivery, Delivered):
            self._remember(message_id)
        return delivery

    def _remember(self, message_id: str) -> None:
        self._ours[message_id] = None
        while len(self._ours) > MAX_REMEMBERED:
            del self._ours[next(iter(self._ours))]

    async def _publish(self, topic: str, event: bytes, headers: Mapping[str, str]) -> tuple[Delivery, bool]:
        """The delivery, and whether the stream reports a duplicate id."""
        try:
            client = await self._connected()
        except TROUBLE as error:
            return RetryLater(_cause(error, NO_CONNECTION)), False
        try:
            answer = await client.request(topic, event, self._options.timeout, headers, MAX_ANSWER)
            ack = msgspec.json.decode(answer.data, type=Acknowledgement)
        except (OSError, NatsError, msgspec.MsgspecError) as error:
            if not isinstance(error, REPLY_ERRORS):  # the stream may or may not have it
                await self._drop(client)
            return _failure(error, topic), False
        return _outcome(ack, topic), ack.duplicate

    async def announce(self, presence: bytes, *, nim: str) -> PresenceAnswer | None:
        """Publishes the presence, which the stream stores, and requests headquarters' answer; None without one."""
        headers = self.presence_headers(presence, nim)
        place = self.place(self.name_of(nim))
        try:
            client = await self._connected()
            client.publish(f"{place}.{PRESENCE}", presence, headers=headers)
            answer = await client.request(f"{place}.{ASK}", presence, self._options.timeout, headers, MAX_ANSWER)
        except TROUBLE:  # no connection, or no listener at the moment
            return None
        return read_answer(answer.data)

    def presence_headers(self, presence: bytes, nim: str) -> dict[str, str]:
        """Signature, and the data for the relay if the box has a key for it."""
        headers = sign(self._keys, str(uuid.uuid4()), int(time.time()), presence)
        key_ids = self._options.lane_keys(nim) if self.credentials is not None else ()
        if self.credentials is not None and key_ids:
            headers[LANE] = LaneHeader(decode_public(self.credentials.public), tuple(key_ids)).header()
        return headers

    def place(self, name: str) -> str:
        """First parts of the subjects of that name."""
        return f"{self._options.subject_prefix}.{name}"

    def name_of(self, nim: str) -> str:
        """The name in subjects: the configured one, with the suffix of the time of joining."""
        return next((each for each in self._options.nims if same_machine(each, nim)), nim)

    async def listen(self) -> Client:
        """A separate connection for calls of the relay. Raises OSError, NatsError or BadOptions."""
        credentials = _credentials(self._options)
        async with asyncio.timeout(self._options.timeout):
            return await open_client(self.servers, credentials, self._tls, name="mcfd calls", seconds=SERVER_TIMEOUT)

    async def trial(self, event: bytes, *, event_id: str, nim: str) -> Delivery:
        """Tests only the servers, certificate and credentials: a published message would stay in the stream."""
        del event, event_id, nim
        try:
            client = await self._connected()
        except BadOptions as error:
            return DeliveryRefused(sentence(error))
        except (OSError, NatsError) as error:
            return RetryLater(_cause(error, NO_CONNECTION))
        return RetryLater(OUTDATED(version=client.outdated, minimum=MINIMUM)) if client.outdated else Delivered()

    async def aclose(self) -> None:
        await self._drop(self._client)

    async def _connected(self) -> Client:
        async with self._opening:
            if self._client is None or self._client.is_closed:
                await self._drop(self._client)
                credentials = _credentials(self._options)
                async with asyncio.timeout(self._options.timeout):
                    self._client = await open_client(
                        self.servers, credentials, self._tls, name="mcfd", seconds=SERVER_TIMEOUT
                    )
            return self._client

    async def _drop(self, client: Client | None) -> None:
        if client is not None:
            if client is self._client:
                self._client = None
            await client.close()


def _failure(error: Exception, topic: str) -> Delivery:
    """As over HTTP (`daemon.upstream.options`): only a fault in the event itself parks it."""
    match error:
        case MessageTooLarge():
            return DeliveryRefused(SERVER_TOO_LARGE)
        case NoResponders():
            return RetryLater(STREAM_MISSING(topic=topic))
        case msgspec.MsgspecError():
            return RetryLater(TOPIC_NO_STREAM(topic=topic))
    return RetryLater(_cause(error, NO_REPLY))


def _outcome(ack: Acknowledgement, topic: str) -> Delivery:
    if ack.error is None or ack.error == StreamRefusal():
        return Delivered() if ack.stream else RetryLater(TOPIC_NO_STREAM(topic=topic))
    if ack.error.err_code == TOO_LARGE:
        return DeliveryRefused(STREAM_TOO_LARGE)
    return RetryLater(STREAM_ANSWERED(code=ack.error.code, cause=ack.error.description))


def _cause(error: Exception, no_answer: Text) -> Text:
    match error:
        case NotNats():
            return NO_NATS_SERVER
        case NoAnswer() | TimeoutError():
            return no_answer
        case OSError():
            return certificate_fault(error) or CONNECTION_FAILED(cause=connection_fault(error))
    return certificate_fault(error) or sentence(error) or no_answer


def _credentials(options: Options) -> Credentials | None:
    if options.credentials_file is None:
        return None
    try:
        return read_credentials(options.credentials_file, "upstream.credentials_file")
    except BadCredentials as error:
        raise BadOptions(sentence(error)) from None


def _encrypted(server: str, options: Options) -> str:
    """`tls://` always encrypts; `nats://` too beyond loopback, unless `allow_plain`."""
    try:
        url = urlsplit(server)
        url.port  # noqa: B018  # raises ValueError if invalid
    except ValueError as error:
        raise BadOptions(f"upstream.url: {error}") from None
    if url.scheme not in KINDS["nats"].schemes or not url.hostname:
        raise BadOptions("upstream.url: kind nats needs nats://… or tls://…, several with commas between")
    return server if options.allow_plain or is_loopback(url.hostname) else url._replace(scheme="tls").geturl()
