"""The way by the relay: relays that may end at any moment, the server between them and the box, and what the box answers calls with. All of it
but the server is the product's own code."""

from __future__ import annotations

import asyncio
import contextvars
import random
import sqlite3
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from simulation.drawn.events import Script
from simulation.nats_server import NatsServer
from simulation.storage.disk import Process
from simulation.virtual_loop import PROCESS

from common.http_server import App
from common.wire.call import RelayedCall
from common.wire.keys import encode_seed
from common.wire.nats_pull import NatsOptions
from daemon.api.access.context import ApiDeps
from daemon.api.access.throttle import WrongKeys
from daemon.api.service import create_api
from daemon.app.outward import calls
from daemon.app.runtime import Runtime
from daemon.core.keys import generate, hash_key
from daemon.settings import Machine, Settings
from daemon.settings.model import Storage, Upstream
from daemon.store.sqlite.file import load
from daemon.store.tables import keys
from relay.api import RelayParts, pass_on
from relay.boxes import Boxes
from relay.connection import Connection
from relay.later import LaterCalls

if TYPE_CHECKING:
    from simulation.box import Box, Life

URL = "nats://127.0.0.1:4222"
STEP = 0.25
"""Seconds between two looks whether tills of the shop's network wait; at the real pace they would be most of a history."""


class NotReached(Exception):
    """There is no relay, or it ended before it answered; `was_sent`: somebody may have heard."""

    def __init__(self, *, was_sent: bool) -> None:
        self.was_sent = was_sent
        super().__init__("the connection broke" if was_sent else "nobody is there")


class HttpAnswer(NamedTuple):
    status: int
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        found = msgspec.json.decode(self.body)
        return found if isinstance(found, dict) else {}


class RelayLife:
    """One life of a relay, connected to the server."""

    def __init__(self, lane: Lane) -> None:
        self.process = Process()
        self._context = contextvars.copy_context()
        self._context.run(PROCESS.set, self.process)
        connection = Connection(NatsOptions(url=URL))
        boxes = Boxes(connection, lane.box.true_seconds)
        later = LaterCalls(connection, boxes)
        self._app = partial(pass_on, RelayParts(connection, boxes, later))
        self._loop = lane.box.loop
        for work in (connection.run(), later.run()):
            self._loop.create_task(work, context=self._context)

    async def request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> HttpAnswer:
        task = self._loop.create_task(_request(self._app, method, path, headers, body), context=self._context)
        try:
            return await task
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if me is not None and me.cancelling():
                raise
            raise NotReached(was_sent=True) from None


class Lane:
    """`keys`: that of the tills outside for each machine, by the name that the configuration has."""

    RELAYS = 2

    def __init__(self, box: Box, script: Script) -> None:
        assert script.lane is not None
        self.box = box
        self.server = NatsServer(box.loop, script.lane, random.Random(f"network {script.seed}"), self._heard)
        box.loop.connect = self.server.connect
        self.relays: list[RelayLife | None] = [None] * self.RELAYS
        self.keys = {part.options.nim: key for part, key in zip(script.machines, KEYS, strict=False)}
        self.least_delay: dict[str, float] = {}
        """Of the calls that each life of the box, by its boot, was given: it cannot know how late it is by more."""
        (box.folder / "box.creds").write_text(encode_seed(b"simulated box ..................."[:32]))

    def begin(self) -> None:
        for number in range(self.RELAYS):
            self.start_relay(number)

    def start_relay(self, number: int) -> None:
        self.box.note(f"relay {number} starts")
        self.relays[number] = RelayLife(self)

    async def kill_relay(self, number: int) -> None:
        life, self.relays[number] = self.relays[number], None
        if life is not None:
            self.box.note(f"relay {number} killed")
            life.process.alive = False
            self.server.ended(life.process)
            await self.box.loop.end(life.process)

    async def end(self) -> None:
        for number in range(self.RELAYS):
            await self.kill_relay(number)

    async def request(
        self, relay: int, method: str, path: str, headers: dict[str, str], body: bytes = b""
    ) -> HttpAnswer:
        life = self.relays[relay]
        if life is None:
            raise NotReached(was_sent=False)
        return await life.request(method, path, headers, body)

    def _heard(self, call: RelayedCall, seconds: float) -> None:
        if not call.sealed:
            self.least_delay[call.boot] = min(seconds, self.least_delay.get(call.boot, seconds))

    def unsure_by(self, life: Life) -> float:
        """Seconds by which that life of the box may take a call for younger than it is."""
        return 0.0 if self.box.synchronised else self.least_delay.get(life.boot, 0.0)

    async def open(self, life: Life) -> calls.Calls:
        """What `app.serve` puts together for calls of the relay."""
        for nim, key in self.keys.items():
            if life.store.key_ring.find(key) is None:
                await life.store.ledger.write(_insert_key, nim, key, self.box.millis())
        upstream = Upstream(kind="nats", url=URL, credentials_file=self.box.folder / "box.creds")
        machines = tuple(Machine(nim, "memory") for nim in self.keys)
        settings = Settings(storage=Storage(path=self.box.ledger), machine=machines, upstream=upstream)
        runtime = Runtime(settings, life.store, workers=list(life.workers.all()), boot=life.boot)
        runtime.clock_watch.synchronised = self.box.synchronised
        deps = ApiDeps(
            workers=life.workers,
            keyring=life.store.key_ring,
            timezone="UTC",
            clock=self.box.millis,
            wrong_keys=WrongKeys(clock=self.box.loop.time),
        )
        opened = calls.Calls(runtime, create_api(deps))
        await opened.prepare(settings)()
        return opened


KEYS = tuple(generate("live") for _ in range(3))
"""Nothing of a history depends on what they are."""


async def _request(app: App, method: str, path: str, headers: dict[str, str], body: bytes) -> HttpAnswer:
    status, found, pieces = 0, bytearray(), [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if pieces:
            return pieces.pop()
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            found.extend(message.get("body", b""))

    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            *((name.lower().encode(), value.encode()) for name, value in headers.items()),
            (b"content-length", b"%d" % len(body)),
        ],
        "client": ("till", 0),
        "server": None,
        "state": {},
    }
    await app(scope, receive, send)
    return HttpAnswer(status, bytes(found))


_NO_TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@contextmanager
def with_lane(script: Script, now: Any) -> Iterator[None]:
    """What relay, box and client of NATS draw and measure is the seed's and the loop's."""
    draw = random.Random(f"lane's pauses {script.seed}")
    with pytest.MonkeyPatch.context() as patch:
        if script.lane is not None:
            patch.setattr("common.wire.nats_pull.random", draw)
            patch.setattr("daemon.app.outward.calls.random", draw)
            patch.setattr(calls, "STEP", STEP)
            patch.setattr(calls, "now_millis", now)
            patch.setattr(ssl, "create_default_context", lambda **_: _NO_TRUST)
            patch.setattr(time, "perf_counter", lambda: now() / 1000)
        yield


def _insert_key(connection: sqlite3.Connection, nim: str, key: str, at: int) -> None:
    """One that is drawn, so that a seed has the same."""
    values = (nim, "live", "outside", hash_key(key), at, "manager", 0, False, "relay", None, 0)
    connection.execute(load(keys.__name__)["insert"], values)
