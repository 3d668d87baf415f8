"""Headquarters as a NATS JetStream stream: published, and acknowledged by the stream before it counts as sent.

A connection lives until its first trouble; the next try, which the use case makes for ever, opens another. Nothing is buffered: a try
that found no connection has certainly sent nothing, and one that timed out is unknown; when it comes again, the stream knows it by its
`Nats-Msg-Id`. What it knows already without our having sent it is sent once more, under an id that cannot be guessed; headquarters
keeps each closure once.

A reader of the stream believes the signature in the headers, never the subject alone: it is the same as over HTTPS.
"""

from __future__ import annotations

import asyncio
import ssl
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
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
from common.wire.keys import BadCredentials, Credentials, LaneWord, SigningKey, decode_public, read_credentials
from common.wire.nats_client import Client
from common.wire.nats_headers import ASK, LANE, MINIMUM, PRESENCE, Acknowledgement, StreamRefusal
from common.wire.nats_pull import open_client
from common.wire.presence import PresenceAnswer, read_answer
from common.wire.signing import sign
from common.wire.upstream_kinds import KINDS
from daemon.core.delivery import Again, Delivered, Delivery, DeliveryRefused
from daemon.core.machine.state import same_machine
from daemon.upstream.options import BadOptions, Options, read_keys, signing_time, tls_context

TOO_LARGE = 10054  # JSStreamMessageExceedsMaximumErr: the stream's own limit on one message
SERVER_TIMEOUT = 5
OUTDATED = Text(
    "closures go through, but its nats-server {version} has known vulnerabilities: headquarters has to install a newer one ({minimum} or later)"
)
MOST_REMEMBERED = 1000
MOST_ANSWER = 65_536
"""Bytes; what a server has to say to a box is a tenth of it."""
MESSAGE_ID = "Nats-Msg-Id"
TROUBLE = (OSError, NatsError, BadOptions)
REPLY_ERRORS = (Denied, NoResponders, MessageTooLarge, msgspec.MsgspecError)
"""The connection is as good as before."""


def open_receiver(options: Options) -> NatsReceiver:
    servers = [_encrypted(server.strip(), options) for server in options.url.split(",")]
    # Damage is reported at the start, not at the first Z.
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
        now: Callable[[], float] = time.time,
    ) -> None:
        self.credentials = credentials
        self.servers = servers
        self._options = options
        self._keys = keys
        self.key_id = keys[0].id
        self._tls = tls
        self._now = now
        self._client: Client | None = None
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
        topic = f"{self.place(self.name_of(nim))}.{subject}"
        at = signing_time(self._now(), since)
        message_id = "/".join((nim, report_id, *([str(last_sent)] if last_sent else [])))
        signed = sign(self._keys, report_id, at, event)
        delivery, is_duplicate = await self._publish(topic, event, {MESSAGE_ID: message_id, **signed})
        if is_duplicate and message_id not in self._ours:
            # Ids count for the whole stream, so that another shop may have used this one first. The next one is random.
            message_id = f"{message_id}/{self._own}"
            is_repeated = message_id in self._ours
            self._remember(message_id)
            delivery, is_duplicate = await self._publish(topic, event, {MESSAGE_ID: message_id, **signed})
            return Again(STREAM_NOT_OURS(topic=topic)) if is_duplicate and not is_repeated else delivery
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
        except TROUBLE as error:
            return Again(_cause(error, NO_CONNECTION)), False
        try:
            answer = await client.request(topic, event, self._options.timeout, headers, MOST_ANSWER)
            ack = msgspec.json.decode(answer.data, type=Acknowledgement)
        except (OSError, NatsError, msgspec.MsgspecError) as error:
            if not isinstance(error, REPLY_ERRORS):  # whether the stream has it is unknown
                await self._drop(client)
            return _failure(error, topic), False
        return _outcome(ack, topic), ack.duplicate

    async def announce(self, presence: bytes, *, nim: str) -> PresenceAnswer | None:
        """The last word stays in the stream; headquarters answers the same message sent as a request. None without an answer."""
        headers = self.presence_headers(presence, nim)
        place = self.place(self.name_of(nim))
        try:
            client = await self._connected()
            client.publish(f"{place}.{PRESENCE}", presence, headers=headers)
            answer = await client.request(f"{place}.{ASK}", presence, self._options.timeout, headers, MOST_ANSWER)
        except TROUBLE:  # no connection, or no listener at the moment
            return None
        return read_answer(answer.data)

    def presence_headers(self, presence: bytes, nim: str) -> dict[str, str]:
        """Signed; with what the relay has to know of a box that has a key for it."""
        headers = sign(self._keys, str(uuid.uuid4()), int(self._now()), presence)
        key_ids = self._options.lane_keys(nim) if self.credentials is not None else ()
        if self.credentials is not None and key_ids:
            headers[LANE] = LaneWord(decode_public(self.credentials.public), tuple(key_ids)).header()
        return headers

    def place(self, name: str) -> str:
        """How the subjects of that name begin."""
        return f"{self._options.subject_prefix}.{name}"

    def name_of(self, nim: str) -> str:
        """In subjects: as the configuration has it, with the suffix that it had when the box joined."""
        return next((each for each in self._options.nims if same_machine(each, nim)), nim)

    async def listen(self) -> Client:
        """A connection of its own, for the calls of the relay. OSError, NatsError or BadOptions where there is none."""
        credentials = _credentials(self._options)
        async with asyncio.timeout(self._options.timeout):
            return await open_client(self.servers, credentials, self._tls, name="mcfd calls", seconds=SERVER_TIMEOUT)

    async def trial(self, event: bytes, *, event_id: str, nim: str) -> Delivery:
        """As far as the servers and their word on certificate and credentials: what is published stays in the stream."""
        del event, event_id, nim
        try:
            client = await self._connected()
        except BadOptions as error:
            return DeliveryRefused(sentence(error))
        except (OSError, NatsError) as error:
            cause = f"{type(error).__name__}: {error}"
            return Again(CONNECTION_FAILED(cause=cause))
        return Again(OUTDATED(version=client.outdated, minimum=MINIMUM)) if client.outdated else Delivered()

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
    """The same table as over HTTP (`daemon.upstream.options`): parked is only what is wrong in the event itself."""
    match error:
        case MessageTooLarge():
            return DeliveryRefused(SERVER_TOO_LARGE)
        case NoResponders():
            return Again(STREAM_MISSING(topic=topic))
        case msgspec.MsgspecError():
            return Again(TOPIC_NO_STREAM(topic=topic))
    return Again(_cause(error, NO_REPLY))


def _outcome(ack: Acknowledgement, topic: str) -> Delivery:
    if ack.error is None or ack.error == StreamRefusal():
        return Delivered() if ack.stream else Again(TOPIC_NO_STREAM(topic=topic))
    if ack.error.err_code == TOO_LARGE:
        return DeliveryRefused(STREAM_TOO_LARGE)
    return Again(STREAM_ANSWERED(code=ack.error.code, cause=ack.error.description))


def _cause(error: Exception, no_answer: Text) -> Text:
    match error:
        case NotNats():
            return NO_NATS_SERVER
        case NoAnswer() | TimeoutError():
            return no_answer
    return sentence(error) or no_answer


def _credentials(options: Options) -> Credentials | None:
    if options.credentials_file is None:
        return None
    try:
        return read_credentials(options.credentials_file, "upstream.credentials_file")
    except BadCredentials as error:
        raise BadOptions(str(error)) from None


def _encrypted(server: str, options: Options) -> str:
    """`tls://` always encrypts, and so does `nats://` beyond loopback unless `allow_plain` says otherwise."""
    try:
        url = urlsplit(server)
        url.port  # noqa: B018  # reading it checks it
    except ValueError as error:
        raise BadOptions(f"upstream.url: {error}") from None
    if url.scheme not in KINDS["nats"].schemes or not url.hostname:
        raise BadOptions("upstream.url: kind nats needs nats://… or tls://…, several with commas between")
    return server if options.allow_plain or is_loopback(url.hostname) else url._replace(scheme="tls").geturl()
