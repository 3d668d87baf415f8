"""A NATS client for one connection: the part of the protocol (docs.nats.io, "Client Protocol") that is needed here.

Why not nats-py 2.16: it parses headers in the task that reads the socket. One header block that it cannot parse ends
that task for ever while `is_connected` stays true, and any box may publish one. It loses cancellations, limits nothing
that it reads, and reports a missing permission to no publisher. There is no public way around any of it
(nats-io/nats.py, pull request 914). Here headers are parsed when read, from any bytes, and an exception in a callback
ends nothing.

A lost connection is not reopened: `is_closed` shows it, and every method then raises ConnectionLost."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import SplitResult

import msgspec
import structlog

from common.turns import ended
from common.wire.errors import ConnectionLost, Denied, MessageTooLarge, NatsError, NoAnswer, NoResponders, NotNats
from common.wire.keys import Credentials, introduction
from common.wire.nats_headers import Headers, format_headers, is_outdated, parse_headers

log = structlog.get_logger(__name__)

PORT = 4222
MAX_MESSAGE = 64 * 1024 * 1024
"""Bytes; no server accepts more."""
NO_RESPONDERS = "503"
ANSWERS = "answers"
"""Part of the subject of an inbox; the next part is the number of the request."""
PING_SECONDS = 30.0
PONG_SECONDS = 10.0
"""A server that does not answer a PING within this time is gone."""
NOT_NATS = "what answers there is no NATS server"
MAX_COMPLAINT = 300
MAX_LINE = 64 * 1024
"""Bytes of a protocol line; INFO of a large cluster is the longest."""
MAX_ADDED = 64 * 1024
"""Bytes of headers that a server adds to a message."""

_DENIED = re.compile(r'permissions violation for publish to "([^"]+)"', re.IGNORECASE)


class Subscription(NamedTuple):
    callback: Callable[[Msg], None]
    most: int


class MessageHead(NamedTuple):
    """Head of a message whose bytes are still arriving. `subscription` is None if there is no reader any more."""

    subscription: Subscription | None
    subject: str
    reply: str
    headers: int
    size: int


class Msg:
    """A message as received; the subjects of messages and replies are only compared, never trusted."""

    def __init__(self, client: Client, head: MessageHead, content: bytearray) -> None:
        self._client = client
        self.subject = head.subject
        self.reply = head.reply
        self.size = head.size
        """Bytes of headers and content. If it is over the subscription's limit, both are empty."""
        self.block = bytes(content[: head.headers])
        """The header block, not parsed."""
        self.data = bytes(content[head.headers :])

    @cached_property
    def headers(self) -> Headers:
        return parse_headers(self.block)

    def ack(self) -> None:
        self._client.publish(self.reply, b"+ACK")

    def nak(self, delay: float) -> None:
        """The message comes again after `delay` seconds."""
        self._client.publish(self.reply, b'-NAK {"delay": %d}' % round(delay * 1e9))


class Answers:
    """Answers to one request, for one task; `subject` is the request's."""

    def __init__(self, client: Client, subject: str, most: int) -> None:
        self._client = client
        self.subject = subject
        self.subscription = Subscription(self.put, most)
        self._here: deque[Msg | NatsError] = deque()
        self._awaited: asyncio.Future[None] | None = None

    def put(self, answer: Msg | NatsError) -> None:
        self._here.append(answer)
        self._wake()

    def _wake(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    def __bool__(self) -> bool:
        """Whether an answer is here."""
        return bool(self._here)

    async def next(self, seconds: float) -> Msg:
        """Raises NoAnswer, Denied or ConnectionLost."""
        if not self._here:
            if self._client.is_closed:
                raise self._client.lost()
            loop = asyncio.get_running_loop()
            self._awaited = loop.create_future()
            timer = loop.call_later(seconds, self._wake)  # asyncio.timeout costs twice as much
            try:
                await self._awaited
            finally:
                timer.cancel()
            if not self._here:
                raise self._client.no_answer()
        answer = self._here.popleft()
        if isinstance(answer, NatsError):
            raise answer
        return answer


class Client(asyncio.Protocol):
    def __init__(self) -> None:
        self._inbox = ""
        self._transport: asyncio.WriteTransport | None = None
        self._buffer = bytearray()
        self._head: MessageHead | None = None
        self._skip = 0
        """Bytes still to come that are dropped."""
        self._subscriptions: dict[int, Subscription] = {}
        self._answers: dict[str, Answers] = {}
        """By inbox."""
        self._sid = 0
        self._number = 0
        self._pongs: deque[asyncio.Future[None]] = deque()
        self._info: dict[str, Any] = {}
        self._most_payload = MAX_MESSAGE
        """The server's limit for a message with its headers, in bytes."""
        self._greeted = asyncio.Event()
        self._closed = asyncio.Event()
        self._complaint = ""
        self._is_nats = True
        self._watching: asyncio.Task[None] | None = None

    @property
    def outdated(self) -> str:
        """The server's version if it is too old to use, else empty."""
        version = str(self._info.get("version", ""))
        return version if is_outdated(version) else ""

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def new_inbox(self) -> str:
        """Unique to this connection: instances share their key."""
        return f"{self._inbox}.{self._next_number()}"

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def publish(self, subject: str, data: bytes, reply: str = "", headers: Mapping[str, str] | None = None) -> None:
        block = format_headers(headers) if headers else b""
        if len(block) + len(data) > self._most_payload:
            raise MessageTooLarge(f"larger than the {self._most_payload} bytes that the server takes")
        sizes = b"%d %d" % (len(block), len(block) + len(data)) if headers else b"%d" % len(data)
        verb = b"HPUB" if headers else b"PUB"
        self._write(b"%b %b %b %b\r\n%b%b\r\n" % (verb, subject.encode(), reply.encode(), sizes, block, data))

    def subscribe(self, subject: str, callback: Callable[[Msg], None], queue: str = "", most: int = MAX_MESSAGE) -> int:
        """Calls `callback` for each message; it must not wait. A message of more than `most` bytes comes without its
        content. Returns the subscription's number."""
        self._sid += 1
        self._subscriptions[self._sid] = Subscription(callback, most)
        self._write(f"SUB {subject} {queue} {self._sid}\r\n".encode())
        return self._sid

    def unsubscribe(self, sid: int) -> None:
        self._subscriptions.pop(sid, None)
        with contextlib.suppress(ConnectionLost):
            self._write(b"UNSUB %d\r\n" % sid)

    async def request(
        self,
        subject: str,
        data: bytes,
        seconds: float,
        headers: Mapping[str, str] | None = None,
        most: int = MAX_MESSAGE,
    ) -> Msg:
        """Raises NoAnswer, Denied, NoResponders, TooLarge, ConnectionLost. An answer of over `most` bytes is empty."""
        with self.exchange(subject, data, headers, most) as answers:
            answer = await answers.next(seconds)
        if answer.headers.status == NO_RESPONDERS:
            raise NoResponders(f"no responder on {subject}")
        return answer

    @contextlib.contextmanager
    def exchange(
        self, subject: str, data: bytes, headers: Mapping[str, str] | None = None, most: int = MAX_MESSAGE
    ) -> Iterator[Answers]:
        """A request and its answers. One subscription of the connection receives the answers to all requests."""
        inbox = f"{self._inbox}.{ANSWERS}.{self._next_number()}"
        answers = self._answers[inbox] = Answers(self, subject, most)
        try:
            self.publish(subject, data, inbox, headers)
            yield answers
        finally:
            del self._answers[inbox]

    async def ping(self, seconds: float = PONG_SECONDS) -> None:
        """Returns when the server has processed all earlier writes."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pongs.append(done)
        self._write(b"PING\r\n")
        await self.within(done, seconds)

    async def within(self, work: Any, seconds: float | None) -> Any:
        """The result of `work`. Raises NoAnswer, or ConnectionLost as soon as the connection has ended."""
        working, over = asyncio.ensure_future(work), asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait({working, over}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise self.lost() if self.is_closed else self.no_answer()
        finally:
            working.cancel()
            over.cancel()

    async def close(self) -> None:
        if self._watching is not None:
            await ended(self._watching)
        if self._transport is not None:
            self._transport.close()
        self._closed.set()

    async def open(self, url: SplitResult, signer: Credentials | None, context: ssl.SSLContext, name: str) -> None:
        """Raises OSError or NatsError. `tls://` never sends anything unencrypted."""
        loop = asyncio.get_running_loop()
        host = url.hostname or ""
        transport, _ = await loop.create_connection(lambda: self, host, url.port or PORT)
        await self.within(self._greeted.wait(), PONG_SECONDS)
        if url.scheme == "tls" or self._info.get("tls_required"):
            if not (self._info.get("tls_required") or self._info.get("tls_available")) or self._buffer:
                raise NatsError("the server does not encrypt")
            upgraded = await loop.start_tls(transport, self, context, server_hostname=host)
            if upgraded is None:
                raise ConnectionLost("the connection has ended")
            self._transport = upgraded
        own = uuid.uuid4().hex
        self._inbox = f"_INBOX.{signer.public}.{own}" if signer is not None else f"_INBOX.{own}"
        self._write(b"CONNECT %b\r\n" % msgspec.json.encode(introduction(url, signer, self._info, name)))
        self._write(f"SUB {self._inbox}.{ANSWERS}.* 0\r\n".encode())
        await self.ping()
        self._watching = loop.create_task(self._watch())

    async def _watch(self) -> None:
        """Ends the connection when the server no longer answers."""
        with contextlib.suppress(NatsError):
            while True:
                await asyncio.sleep(PING_SECONDS)
                await self.ping()
        self._end("no answer to PING")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # of a TCP connection

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(str(exc) if exc else "the server has ended the connection")

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            del self._buffer[: self._read()]
        except Exception as error:  # noqa: BLE001  # whatever it is, a connection that is no longer read has to end
            self._is_nats = self._greeted.is_set() and not isinstance(error, NotNats)
            self._end(f"{type(error).__name__}: {error}" if self._is_nats else NOT_NATS)

    def _read(self) -> int:
        """Reads whole lines and messages; returns their number of bytes."""
        at, buffer = 0, self._buffer
        while True:
            if self._skip:
                skipped = min(self._skip, len(buffer) - at)
                self._skip -= skipped
                at += skipped
                if self._skip:
                    return at
            if self._head is None:
                end = buffer.find(b"\r\n", at)
                if end < 0:
                    if len(buffer) - at > MAX_LINE:
                        raise NotNats("a line without an end")
                    return at
                line = bytes(buffer[at:end])
                at = end + 2
                self._line(line)
            elif len(buffer) - at < self._head.size + 2:
                return at
            else:
                head, self._head = self._head, None
                self._hand_on(head, buffer[at : at + head.size])
                at += head.size + 2

    def _hand_on(self, head: MessageHead, content: bytearray) -> None:
        if head.subscription is not None:
            _call(head.subscription.callback, Msg(self, head, content))

    def _line(self, line: bytes) -> None:
        what, _, rest = line.partition(b" ")
        match what.upper():
            case b"MSG" | b"HMSG":
                self._message(line.decode("utf-8", "replace").split(" "))
            case b"PING":
                self._write(b"PONG\r\n")
            case b"PONG":
                if self._pongs:
                    done = self._pongs.popleft()
                    if not done.done():
                        done.set_result(None)
            case b"-ERR":
                self._error(rest.decode("utf-8", "replace")[:MAX_COMPLAINT].strip("' "))
            case b"INFO":
                self._info = msgspec.json.decode(rest, type=dict[str, Any])
                self._most_payload = min(MAX_MESSAGE, int(self._info.get("max_payload", MAX_MESSAGE)))
                self._greeted.set()
            case b"+OK":
                pass
            case _:
                raise NotNats(NOT_NATS)

    def _error(self, complaint: str) -> None:
        log.warning("nats.error", reason=complaint)
        denied = _DENIED.search(complaint)
        if denied is None:
            self._complaint = complaint
            return
        for answers in self._answers.values():
            if answers.subject.lower() == denied[1].lower():
                answers.put(Denied(f"permissions violation: this key may not publish on {answers.subject}"))

    def _message(self, words: list[str]) -> None:
        """`MSG subject sid [reply] size`, `HMSG subject sid [reply] headers size`: separated by single spaces."""
        size = int(words.pop())
        headers = int(words.pop()) if words[0].upper() == "HMSG" else 0
        _, subject, sid, *reply = words
        if not 0 <= headers <= size <= self._most_payload + MAX_ADDED:
            raise NatsError("a message larger than the server allows")
        answers = self._answers.get(subject)
        subscription = answers.subscription if answers is not None else self._subscriptions.get(int(sid))
        self._head = MessageHead(subscription, subject, " ".join(reply), headers, size)
        if subscription is None or size > subscription.most:
            head, self._head = self._head, None
            self._skip = size + 2
            self._hand_on(head, bytearray())

    def _write(self, data: bytes) -> None:
        if self.is_closed or self._transport is None:
            raise self.lost()
        self._transport.write(data)

    def _end(self, reason: str) -> None:
        if not self.is_closed:
            self._complaint = self._complaint or reason
            self._closed.set()
            for answers in self._answers.values():
                answers.put(self.lost())
            if self._transport is not None:
                self._transport.abort()

    def no_answer(self) -> NatsError:
        return NoAnswer(self._complaint or "no answer in time")

    def lost(self) -> NatsError:
        """The reason for the end of the connection."""
        return (ConnectionLost if self._is_nats else NotNats)(self._complaint or "the connection has ended")


def _call(callback: Callable[[Msg], None], msg: Msg) -> None:
    try:
        callback(msg)
    except Exception:
        log.exception("nats.callback_failed", subject=msg.subject[:100])
