"""A nats-server in memory, for the real clients of box and relay: the protocol, requests without anybody there, the stream of presences and the work
queue CALLS as config/nats has them. On the way a call, or an answer, may be lost, doubled, late or overtaken."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, NamedTuple

import msgspec
from simulation.drawn.events import LanePart
from simulation.virtual_loop import PROCESS, VirtualLoop

from common.wire.call import RelayedCall, read_call
from common.wire.errors import BadEvent
from common.wire.nats_client import Client
from common.wire.nats_headers import CALL, CALLS_CONSUMER, CALLS_STREAM, LATER, PRESENCE, PRESENCE_STREAM, parse_headers

INFO = b'INFO {"version":"2.12.6","max_payload":1048576,"headers":true,"nonce":"simulated"}\r\n'
NEXT = f"$JS.API.CONSUMER.MSG.NEXT.{CALLS_STREAM}.{CALLS_CONSUMER}"
ACK = f"$JS.ACK.{CALLS_STREAM}.{CALLS_CONSUMER}."
DIRECT = "$JS.API.DIRECT.GET."
ACK_WAIT = 300.0
"""Seconds until a message comes again that was not acknowledged (config/nats/relay.json)."""
NEARLY_AT_ONCE, LATE = 0.05, 120.0
"""Seconds a message takes, and one that is late, at the most."""


class Message(NamedTuple):
    subject: str
    reply: str
    block: bytes
    data: bytes


class Waiting(msgspec.Struct):
    """A message of CALLS; it is not given to anybody before `due` (loop time)."""

    seq: int
    message: Message
    due: float


class Wanted(msgspec.Struct):
    """A request for messages of CALLS, until it has as many as it asked for."""

    inbox: str
    left: int


class Line:
    """One connection, as the transport of its client. Whose process has ended, sends and hears nothing more."""

    def __init__(self, server: NatsServer, client: Client) -> None:
        self._server = server
        self._client = client
        self._context = copy_context()
        self.process: Any = PROCESS.get()
        self._buffer = bytearray()
        self._head: tuple[str, str, int, int] | None = None
        self._heard_at = 0.0
        self.subscriptions: dict[int, str] = {}
        self.is_open = True

    def write(self, data: bytes) -> None:
        if not self.is_open or not self.process.alive:
            return
        self._buffer += data
        while self._took_one():
            pass

    def _took_one(self) -> bool:
        if self._head is not None:
            subject, reply, headers, size = self._head
            if len(self._buffer) < size + 2:
                return False
            content = bytes(self._buffer[:size])
            del self._buffer[: size + 2]
            self._head = None
            self._server.published(Message(subject, reply, content[:headers], content[headers:]))
            return True
        end = self._buffer.find(b"\r\n")
        if end < 0:
            return False
        line = bytes(self._buffer[:end]).decode()
        del self._buffer[: end + 2]
        verb, *words = line.split(" ")
        match verb:
            case "PING":
                self.send(b"PONG\r\n")
            case "SUB":
                self.subscriptions[int(words[-1])] = words[0]
            case "UNSUB":
                self.subscriptions.pop(int(words[0]), None)
            case "PUB":
                self._head = (words[0], words[1], 0, int(words[-1]))
            case "HPUB":
                self._head = (words[0], words[1], int(words[-2]), int(words[-1]))
        return True

    def send(self, data: bytes) -> None:
        """In its order."""
        loop = self._server.loop
        self._heard_at = max(self._heard_at, loop.now + self._server.moment())
        loop.call_at(self._heard_at, self._hear, data, context=self._context)

    def _hear(self, data: bytes) -> None:
        if self.is_open and self.process.alive:
            self._client.data_received(data)

    def hand(self, sid: int, message: Message) -> None:
        sizes = f"{len(message.block)} {len(message.block) + len(message.data)}" if message.block else len(message.data)
        words = f"{'HMSG' if message.block else 'MSG'} {message.subject} {sid} {message.reply} {sizes}"
        self.send(b"%b\r\n%b%b\r\n" % (words.replace("  ", " ").encode(), message.block, message.data))

    def cut(self) -> None:
        """Both sides see it."""
        if self.is_open:
            self.abort()
            self._server.loop.call_soon(self._client.connection_lost, None, context=self._context)

    def abort(self) -> None:
        self.is_open = False
        if self in self._server.lines:
            self._server.lines.remove(self)

    close = abort


class NatsServer:
    """`heard` is given each call that reaches a box, with the seconds that it took."""

    def __init__(
        self, loop: VirtualLoop, part: LanePart, draw: random.Random, heard: Callable[[RelayedCall, float], None]
    ) -> None:
        self.loop = loop
        self.part = part
        self.doubled_until = 0.0
        """When what comes twice has come (seconds of the loop)."""
        self.lines: list[Line] = []
        self.on_their_way = 0
        """Late messages that are to come."""
        self._draw = draw
        self._heard = heard
        self._context = copy_context()
        self._presences: dict[str, Message] = {}
        self._calls: list[Waiting] = []
        self._ids: dict[str, int] = {}
        self._wanted: list[Wanted] = []

    def heal(self) -> None:
        self.part = LanePart(0.0, 0.0, 0.0)

    def connect(self, factory: Callable[[], Client]) -> tuple[Line, Client]:
        client = factory()
        line = Line(self, client)
        self.lines.append(line)
        client.connection_made(line)  # type: ignore[arg-type]  # what a client uses of a transport
        line.send(INFO)
        return line, client

    def cut_all(self) -> None:
        for line in [*self.lines]:
            line.cut()

    def ended(self, process: object) -> None:
        """The connections of a process that is gone."""
        for line in [*self.lines]:
            if line.process is process:
                line.abort()

    def moment(self) -> float:
        return NEARLY_AT_ONCE * self._draw.random() ** 3

    @property
    def waiting(self) -> int:
        return len(self._calls)

    def _later(self, seconds: float, work: Callable[..., object], *arguments: Any) -> None:
        """The sender may be gone then."""
        self.loop.call_later(seconds, work, *arguments, context=self._context)

    # -- what is published --------------------------------------------------------------------------------------------------

    def published(self, message: Message) -> None:
        subject = message.subject
        if subject == NEXT:
            self._want(message)
        elif subject.startswith(ACK):
            self._acknowledged(int(subject.removeprefix(ACK)), message.data)
        elif subject.startswith(DIRECT):
            self._answer(message.reply, *self._found(subject.removeprefix(DIRECT), message.data))
        elif subject.endswith(f".{LATER}"):
            self._answer(message.reply, b"", self._stored(message))
        elif subject.endswith(f".{PRESENCE}"):
            self._presences[subject] = message
        else:
            self._pass_on(message)

    def _pass_on(self, message: Message) -> None:
        """A call, or the answer to one."""
        chance, part = self._draw.random(), self.part
        if chance < part.loses:
            return
        if chance < part.loses + part.delays:
            self.on_their_way += 1
            self._later(LATE * self._draw.random() ** 2, self._come_late, message, self.loop.now)
            return
        self._later(self.moment(), self._come_in_time, message, self.loop.now)
        if self._draw.random() < part.doubles:
            wait = 3.0 * self._draw.random()
            self.doubled_until = max(self.doubled_until, self.loop.now + wait)
            self._later(wait, self._route, message, self.loop.now)

    def _come_late(self, message: Message, sent_at: float) -> None:
        self.on_their_way -= 1
        self._route(message, sent_at)

    def _come_in_time(self, message: Message, sent_at: float) -> None:
        """A message without a subscriber is reported to the requester that waits for an answer; a late or repeated one is not."""
        if not self._route(message, sent_at) and message.reply:
            self._answer(message.reply, b"NATS/1.0 503\r\n\r\n", b"")

    def _route(self, message: Message, sent_at: float) -> bool:
        """Whether somebody takes it."""
        takers = [
            (line, sid)
            for line in [*self.lines]
            for sid, subject in line.subscriptions.items()
            if subject in (message.subject, f"{message.subject.rpartition('.')[0]}.*")
        ]
        is_call = message.subject.endswith(f".{CALL}") and message.data
        for line, sid in takers:
            if is_call:
                self._note(message.data, sent_at)
            line.hand(sid, message)
        return bool(takers)

    def _note(self, content: bytes, sent_at: float) -> None:
        try:
            self._heard(read_call(content), self.loop.now - sent_at)
        except BadEvent:
            raise AssertionError("a relay sent what is no call") from None

    def _answer(self, inbox: str, block: bytes, data: bytes) -> None:
        self._later(self.moment(), self._route, Message(inbox, "", block, data), self.loop.now)

    # -- streams --------------------------------------------------------------------------------------------------------------

    def _found(self, name: str, request: bytes) -> tuple[bytes, bytes]:
        if name == CALLS_STREAM:
            seq = json.loads(request)["seq"]
            message = next((each.message for each in self._calls if each.seq == seq), None)
        else:
            message = self._presences.get(name.removeprefix(f"{PRESENCE_STREAM}."))
        return (message.block, message.data) if message else (b"NATS/1.0 404 Message Not Found\r\n\r\n", b"")

    def _stored(self, message: Message) -> bytes:
        name = parse_headers(message.block).get("Nats-Msg-Id") or ""
        is_listed = name in self._ids
        if not is_listed:
            self._ids[name] = len(self._ids) + 1
            self._calls.append(Waiting(self._ids[name], message._replace(reply=""), self.loop.now))
            self._give()
        return json.dumps({"stream": CALLS_STREAM, "seq": self._ids[name], "duplicate": is_listed}).encode()

    def _want(self, message: Message) -> None:
        request = json.loads(message.data)
        wanted = Wanted(message.reply, request["batch"])
        self._wanted.append(wanted)
        self._later(request["expires"] / 1e9, self._expire, wanted)
        self._give()

    def _expire(self, wanted: Wanted) -> None:
        if wanted in self._wanted:
            self._wanted.remove(wanted)
            self._answer(wanted.inbox, b"NATS/1.0 408 Request Timeout\r\n\r\n", b"")

    def _give(self) -> None:
        inboxes = {subject for line in self.lines for subject in line.subscriptions.values()}
        self._wanted = [wanted for wanted in self._wanted if wanted.left and wanted.inbox in inboxes]
        for each in self._calls:
            if self._wanted and each.due <= self.loop.now:
                self._wanted[0].left -= 1
                self._hand(self._wanted[0].inbox, each)
                each.due = self.loop.now + ACK_WAIT
                self._later(ACK_WAIT, self._give)
                self._wanted = [wanted for wanted in self._wanted if wanted.left]

    def _hand(self, inbox: str, each: Waiting) -> None:
        message = each.message._replace(reply=f"{ACK}{each.seq}")
        for line in [*self.lines]:
            for sid, subject in line.subscriptions.items():
                if subject == inbox:
                    line.hand(sid, message)

    def _acknowledged(self, seq: int, word: bytes) -> None:
        if word.startswith(b"+ACK"):
            self._calls = [each for each in self._calls if each.seq != seq]
            return
        seconds = json.loads(word.removeprefix(b"-NAK "))["delay"] / 1e9
        for each in self._calls:
            if each.seq == seq:
                each.due = self.loop.now + seconds
                self._later(seconds, self._give)
