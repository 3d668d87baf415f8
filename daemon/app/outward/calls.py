"""Calls of the relay (decision 46): from `mcf.<NIM>.call` to the API in this process, and the reply back.

The box listens only while a key for the relay exists. The API answers as on the shop's network; the differences are in
`api.access.relayed`. A call takes its place (`CallPlaces`) before any work for it begins."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import structlog

from common.language import Text, preferred
from common.problems import new_request_id
from common.turns import ended
from common.wire.call import (
    MAX_CALL,
    MAX_HEADERS,
    MAX_REPLY,
    RelayedCall,
    RelayedReply,
    encode,
    key_id_of,
    read_call,
)
from common.wire.errors import BadEvent
from common.wire.instants import now_millis
from common.wire.keys import Credentials, NotSealed, unseal
from common.wire.nats_headers import CALL, PRESENCE
from daemon.api.access.relayed import RELAYED, RelayedRequest
from daemon.api.problems import problem_answer
from daemon.api.refusals import TooLarge
from daemon.app.outward.presence import PresenceSource
from daemon.app.outward.replication import calls as calls_receiver
from daemon.app.outward.replication import subject_names
from daemon.app.reload import BringIntoForce
from daemon.app.runtime import Runtime
from daemon.core.clock import Clock
from daemon.core.errors import InvalidRequest, MachineBusy
from daemon.core.machine.state import same_machine, short_nim
from daemon.settings import Settings
from daemon.usecases.worker.machine_worker import MachineWorker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from common.wire.nats_client import Client, Msg
    from daemon.upstream.nats import NatsReceiver

log = structlog.get_logger(__name__)

App = Callable[[Any, Any, Any], Awaitable[None]]

OF_ONE_NIM: Final = 8
OF_ONE_KEY: Final = 2
"""Calls that are answered at the same time, at most."""
LOOK_SECONDS: Final = 2.0
"""Seconds between two checks whether a key for the relay exists and whether the machines' names have changed."""
AGAIN_SECONDS: Final = (1.0, 30.0)
"""Seconds before the connection is tried again: the first wait and the longest."""
TILLS_FIRST_SECONDS: Final = 15.0
"""Seconds that a relayed call lets waiting tills of the shop's network go first; then it queues as they do."""
STEP: Final = 0.005
READING_SECONDS: Final = 3600.0
"""Seconds that the most advanced time of a relay is valid: a relay with a wrong clock does not block calls for good."""
STOP_SECONDS: Final = 1.0
ME: Final = "/v1/me"
_ME: Final = re.compile(r"/v1/mcf/[^/]+/me")
"""`/v1/me` as it is sent to the relay: with a NIM, by which the relay finds the box."""
LARGE: Final = Text("the answer is larger than the relay passes on; ask for a smaller page")
DONE_BUT_LARGE: Final = Text(
    "this was done, and its answer is larger than the relay passes on; it can be read on the shop's network"
)
NOT_FOR_THIS_BOX: Final = Text("not for the key that this box has now")
BUSY: Final = Text("too many requests for this machine are under way through the relay; nothing was sent")


class CallPlaces:
    """Limits the calls in progress: `OF_ONE_NIM` for a NIM and `OF_ONE_KEY` for a key."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()

    def take(self, nim: str, key: str) -> bool:
        if self.taken[nim] >= OF_ONE_NIM or self.taken[key] >= OF_ONE_KEY:
            return False
        self.taken.update((nim, key))
        return True

    def leave(self, nim: str, key: str) -> None:
        for name in (nim, key):
            self.taken[name] -= 1
            if not self.taken[name]:
                del self.taken[name]


def loop_seconds() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class LaneClock:
    """The clock for limits of clients, and of relays before 0.21, in ms since 1970: the box's while it is synchronised,
    otherwise the relay's, from the call with the shortest transit, continued by the loop's clock."""

    is_synchronised: Callable[[], bool]
    box: Clock
    _ahead: int | None = field(default=None, init=False)
    """The relay's time minus the loop's, in milliseconds."""
    _valid_until: float = field(default=0.0, init=False)

    def note_call(self, sent_at: int) -> None:
        """Takes the sending time of a call; once for each call, on its arrival."""
        if self.is_synchronised():
            self._ahead = None
            return
        ahead = sent_at - int((loop := loop_seconds()) * 1000)
        if self._ahead is None or ahead >= self._ahead or loop >= self._valid_until:
            self._ahead, self._valid_until = ahead, loop + READING_SECONDS

    def now(self) -> int:
        if self._ahead is None or self.is_synchronised():
            return self.box()
        return int(loop_seconds() * 1000) + self._ahead


@asynccontextmanager
async def answering_calls(runtime: Runtime, app: App) -> AsyncIterator[Calls]:
    calls = Calls(runtime, app)
    await calls.prepare(runtime.settings)()
    try:
        yield calls
    finally:
        await calls.stop()


class Calls:
    def __init__(self, runtime: Runtime, app: App) -> None:
        self._runtime = runtime
        self._app = app
        self._words = PresenceSource(runtime)
        self._places = CallPlaces()
        self._line = ""
        self._inside: Counter[str] = Counter()
        """Calls inside the API, by NIM. All other requests that wait at the machine are from the shop's network."""
        self._clock = LaneClock(lambda: runtime.clock_watch.synchronised, now_millis)
        self._keeping: asyncio.Task[None] | None = None
        self._answering: set[asyncio.Task[None]] = set()

    def prepare(self, settings: Settings) -> BringIntoForce:
        """Checks the settings and returns the step that applies them; until then nothing changes. Raises BadOptions."""
        upstream = settings.upstream
        lane_keys = self._runtime.store.key_ring.relay_key_ids
        receiver = calls_receiver(upstream, lane_keys, subject_names(settings)) if upstream else None

        async def into_force() -> None:
            await self.stop()
            if receiver is not None:
                self._keeping = asyncio.get_running_loop().create_task(self._run_receiver(receiver), name="calls")

        return into_force

    async def stop(self) -> None:
        """Calls in progress have `STOP_SECONDS`; the connection is closed last."""
        if self._answering:
            await asyncio.wait(self._answering, timeout=STOP_SECONDS)
        await ended(*self._answering)
        if self._keeping is not None:
            await ended(self._keeping)
            self._keeping = None

    async def _run_receiver(self, receiver: NatsReceiver) -> None:
        from common.wire.errors import NatsError  # noqa: PLC0415  # with NATS alone
        from daemon.upstream.options import BadOptions  # noqa: PLC0415  # see above

        wait, most = AGAIN_SECONDS
        while True:
            while not self._has_keys():  # noqa: ASYNC110  # another process may make one
                await asyncio.sleep(LOOK_SECONDS)
            try:
                client = await receiver.listen()
                try:
                    wait = AGAIN_SECONDS[0]
                    log.info("calls.listening")
                    await self._listen(client, receiver)
                finally:
                    await client.close()
            except (OSError, NatsError, BadOptions, TimeoutError) as error:
                log.info("calls.not_listening", reason=str(error))
            except Exception:
                log.exception("calls.failed")
            await asyncio.sleep(wait * (0.5 + random.random()))  # noqa: S311  # so that not all come back at once
            wait = min(most, wait * 2)

    def _workers(self) -> list[MachineWorker]:
        return [worker for worker in self._runtime.workers if worker.book.mode == "live"]

    def _workers_of(self, nim: str) -> list[MachineWorker]:
        return [worker for worker in self._workers() if same_machine(worker.book.nim, nim)]

    def _has_keys(self) -> bool:
        ring = self._runtime.store.key_ring
        return any(ring.is_on_relay(worker.book.nim) for worker in self._workers())

    async def _listen(self, client: Client, receiver: NatsReceiver) -> None:
        """Serves calls until the connection is lost (NatsError) or the last key is revoked."""
        from common.wire.errors import NoAnswer  # noqa: PLC0415  # see above

        self._line = secrets.token_hex(4)
        ring = self._runtime.store.key_ring
        listening: dict[str, int] = {}
        announced: dict[str, Sequence[str]] = {}
        """The keys in the last presence, by the machine's name."""
        while True:
            now = [worker.book.nim for worker in self._workers()]
            names = {*now, *map(receiver.name_of, now)}
            for name in listening.keys() - names:
                client.unsubscribe(listening.pop(name))
                announced.pop(name, None)
            for name in sorted(names):
                if name not in listening:
                    listening[name] = client.subscribe(
                        f"{receiver.place(name)}.{CALL}",
                        partial(self._called, client, receiver, short_nim(name)),
                        most=MAX_CALL + MAX_HEADERS,
                    )
                    await client.ping()
                if announced.get(name) != (key_ids := ring.relay_key_ids(name)):
                    await self._publish_boot(client, receiver, name)
                    announced[name] = key_ids
            if not self._has_keys():
                await client.ping()  # the presence without the last, revoked key is sent before the end
                return
            with contextlib.suppress(NoAnswer):
                await client.within(asyncio.Event().wait(), LOOK_SECONDS)

    async def _publish_boot(self, client: Client, receiver: NatsReceiver, name: str) -> None:
        """Publishes this boot and its keys. The relay calls the boot of the last presence, and takes deferred sales
        only for the keys in it; so this is due when the box begins to listen and when keys are made or revoked."""
        for word in await self._words.words(receiver.key_id):
            if same_machine(word.nim, name):
                headers = receiver.presence_headers(word.content, word.nim)
                client.publish(
                    f"{receiver.place(receiver.name_of(word.nim))}.{PRESENCE}", word.content, headers=headers
                )

    def _called(self, client: Client, receiver: NatsReceiver, nim: str, msg: Msg) -> None:
        """Answers an empty call, or one for another boot, with this boot. `nim` ends, here and below, before its
        dash."""
        if not msg.reply:
            return
        try:
            call = read_call(msg.data) if msg.data else None
        except BadEvent as error:
            log.warning("call.unreadable", nim=nim, reason=str(error))
            return
        if call is None or call.boot != self._runtime.boot:
            name = next((receiver.name_of(worker.book.nim) for worker in self._workers_of(nim)), "")
            _reply(client, msg, self._of_boot(nim=name, under_way=self._places.taken[nim]))
            return
        self._clock.note_call(call.sent_at)
        if not call.sealed:
            self._begin(client, nim, call, msg)
        elif (opened := _opened(receiver.credentials, call)) is not None:
            self._begin(client, nim, opened, msg)
        else:
            log.warning("call.not_sealed", nim=nim)  # for an earlier key of this box, for one
            _reply(client, msg, self._problem(call, InvalidRequest.at("sealed", NOT_FOR_THIS_BOX)))

    def _begin(self, client: Client, nim: str, call: RelayedCall, msg: Msg) -> None:
        key = key_id_of(dict(call.headers))
        if not self._places.take(nim, key):
            _reply(client, msg, self._problem(call, MachineBusy(BUSY)))
            return
        task = asyncio.get_running_loop().create_task(self._answer(client, nim, call, msg), name=f"call {nim}")
        self._answering.add(task)

        def over(task: asyncio.Task[None]) -> None:
            self._answering.discard(task)
            self._places.leave(nim, key)

        task.add_done_callback(over)

    def _problem(self, call: RelayedCall, error: Exception) -> RelayedReply:
        sent = dict(call.headers)
        request_id = sent.get("x-request-id") or new_request_id()
        answer = problem_answer(error, request_id, preferred(sent.get("accept-language", "")))
        headers = tuple((name.decode(), value.decode("latin-1")) for name, value in answer.headers)
        return self._of_boot(status=answer.status, headers=headers, body=answer.body)

    def _of_boot(self, **fields: Any) -> RelayedReply:
        return RelayedReply(boot=self._runtime.boot, line=self._line, clock=int(loop_seconds() * 1000), **fields)

    async def _answer(self, client: Client, nim: str, call: RelayedCall, msg: Msg) -> None:
        _reply(client, msg, await self.carry_out(nim, call))

    async def _yield_to_tills(self, nim: str) -> None:
        until = loop_seconds() + TILLS_FIRST_SECONDS
        workers = self._workers_of(nim)
        while sum(worker.waiting for worker in workers) > self._inside[nim] and loop_seconds() < until:  # noqa: ASYNC110
            await asyncio.sleep(STEP)

    async def carry_out(self, nim: str, call: RelayedCall) -> RelayedReply:
        """Passes the call to the API and returns its answer."""
        found, inside = _Reply(), 0

        async def turn() -> None:
            nonlocal inside
            if call.method == "POST":
                await self._yield_to_tills(nim)
            inside = 1
            self._inside[nim] += inside

        has_waited = call.boot != self._runtime.boot  # sealed before the box had this boot
        begin_by = call.begin_by / 1000 or loop_seconds() + (call.not_after - self._clock.now()) / 1000
        scope = _scope(call, RelayedRequest(nim, begin_by, self._clock.now, call.body, turn, has_waited))
        try:
            await self._app(scope, found.receive_of(call.body), found.send)
        finally:
            self._inside[nim] -= inside
        reply = self._of_boot(status=found.status, headers=tuple(found.headers), body=bytes(found.body))
        if len(reply.body) <= MAX_REPLY - MAX_HEADERS:
            return reply
        is_done = call.method != "GET" and found.status < HTTPStatus.BAD_REQUEST
        return self._problem(call, TooLarge(DONE_BUT_LARGE if is_done else LARGE))


class _Reply:
    """Collects the API's answer as a whole."""

    def __init__(self) -> None:
        self.status = 500
        self.headers: list[tuple[str, str]] = []
        self.body = bytearray()

    def receive_of(self, body: bytes) -> Callable[[], Awaitable[dict[str, Any]]]:
        """An ASGI `receive`: the body once, then nothing until the answer is complete."""
        pieces = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if pieces:
                return pieces.pop()
            await asyncio.Event().wait()
            raise AssertionError

        return receive

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
        else:
            self.body += message.get("body", b"")


def _scope(call: RelayedCall, relayed: RelayedRequest) -> dict[str, Any]:
    path, _, query = call.path.partition("?")
    headers = [(b"host", b"localhost"), (b"content-length", b"%d" % len(call.body))]
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in call.headers]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": call.method,
        "scheme": "http",
        "path": ME if _ME.fullmatch(path) else unquote(path),
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "root_path": "",
        "headers": headers,
        "client": ("relay", 0),
        "server": None,
        "state": {RELAYED: relayed},
    }


def _opened(credentials: Credentials | None, call: RelayedCall) -> RelayedCall | None:
    """The decrypted call; None if it was not sealed for this box."""
    with contextlib.suppress(NotSealed, BadEvent):
        if credentials is not None and not (opened := read_call(unseal(call.sealed, credentials.seed))).sealed:
            return opened
    return None


def _reply(client: Client, msg: Msg, reply: RelayedReply) -> None:
    from common.wire.errors import NatsError  # noqa: PLC0415  # with NATS alone

    with contextlib.suppress(NatsError):  # no connection: the client repeats the request with its Idempotency-Key
        client.publish(msg.reply, encode(reply))
