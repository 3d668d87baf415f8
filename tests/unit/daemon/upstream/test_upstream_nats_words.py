"""What becomes of one try over NATS, by what the server says: without a server."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nats.errors
import nats.js.errors
import pytest
from nats.aio.client import Client
from nats.js.api import PubAck
from support.processor import within

from daemon.core.delivery import Again, Delivered, Delivery, Refused
from daemon.upstream import nats as jetstream
from daemon.upstream.options import BadOptions, Options
from daemon.upstream.signing import generate

NIM = "EL02000015-1"
TOPIC = f"mcf.{NIM}.closure"
NO_STREAM = f"what answers on {TOPIC} is not a stream"
DENIED = f"permissions violation: this key may not publish on {TOPIC}"


class Connection:
    """One that is open, and says of everything that is published what it is told to say."""

    def __init__(self, says: PubAck | Exception, *, is_connected: bool = True) -> None:
        self.is_connected = is_connected
        self.closed = 0
        self._says = says

    async def publish_acknowledged(self, topic: str, event: bytes, headers: Mapping[str, str]) -> PubAck:
        assert (topic, event, headers["Nats-Msg-Id"][:17]) == (TOPIC, b"{}", f"{NIM}/0b9f")
        if isinstance(self._says, PubAck):
            return self._says
        raise self._says

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def receiver(tmp_path: Path) -> Any:
    generate(tmp_path / "upstream.key")
    return jetstream.open_receiver(Options(url="nats://127.0.0.1:4222", key_files=(tmp_path / "upstream.key",)))


def delivering(receiver: jetstream.NatsReceiver) -> Any:
    return receiver.deliver(b"{}", report_id="0b9f", subject="closure", nim=NIM)


@pytest.mark.parametrize(
    ("says", "outcome", "is_kept"),
    [
        (PubAck(stream="CLOSURES", seq=1), Delivered(), True),
        (PubAck(stream="", seq=1), Again(NO_STREAM), True),
        (nats.js.errors.NoStreamResponseError(), Again(f"no stream takes {TOPIC}"), False),
        (nats.js.errors.APIError(503, "no room", 10_077), Again("the stream answers 503: no room"), True),
        (nats.js.errors.APIError(400, "too large", 10_054), Refused("larger than the stream takes"), True),
        (nats.errors.MaxPayloadError(), Refused("larger than the server takes"), True),
        (jetstream._DeniedError(DENIED), Again(DENIED), True),
        (ValueError("no JSON"), Again(NO_STREAM), True),
        (KeyError("stream"), Again(NO_STREAM), True),
        (TypeError("None"), Again(NO_STREAM), True),
        (TimeoutError(), Again("no answer in time"), False),
        (OSError("broken pipe"), Again("broken pipe"), False),
        (nats.errors.ConnectionClosedError(), Again("nats: connection closed"), False),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_what_a_server_says_of_a_closure(
    receiver: Any, says: PubAck | Exception, outcome: Delivery, is_kept: bool
) -> None:
    """Parked is what is larger than it may be; all else is tried again, in words that say whose trouble it is. The connection stays where somebody
    has answered, and is closed where nobody has."""
    receiver._client = connection = Connection(says)
    assert await delivering(receiver) == outcome
    assert (receiver._client is connection, connection.closed) == (is_kept, not is_kept)


async def test_a_stream_that_has_everything(receiver: Any) -> None:
    """It calls a duplicate what nobody can have sent: that is no acknowledgement. Later it may be, of what was sent then."""
    receiver._client = connection = Connection(PubAck(stream="CLOSURES", seq=1, duplicate=True))
    said = f"the stream of {TOPIC} says that it has what was never sent"
    assert await delivering(receiver) == Again(said)
    assert receiver._client is connection
    assert await delivering(receiver) == Delivered()


async def test_a_mistake_of_ours_is_no_trouble_of_the_server(receiver: Any) -> None:
    """It is told to whoever looks after the lanes."""
    receiver._client = Connection(RuntimeError("a mistake"))
    with pytest.raises(RuntimeError, match="a mistake"):
        await delivering(receiver)


@pytest.mark.parametrize(
    ("trouble", "of_a_try", "of_a_trial"),
    [
        (TimeoutError(), Again("no connection in time"), Again("no connection, or a broken one (TimeoutError: )")),
        (OSError("no route"), Again("no route"), Again("no connection, or a broken one (OSError: no route)")),
        (
            nats.errors.NoServersError(),
            Again("nats: no servers available for connection"),
            Again("no connection, or a broken one (NoServersError: nats: no servers available for connection)"),
        ),
        (BadOptions("credentials: not text"), Again("credentials: not text"), Refused("credentials: not text")),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_where_there_is_no_connection(
    receiver: Any, monkeypatch: pytest.MonkeyPatch, trouble: Exception, of_a_try: Delivery, of_a_trial: Delivery
) -> None:
    """A closure is tried again, also where a file of the box has to be mended first; whoever tries out the configuration hears which of them it is,
    and whoever asks for news hears none."""

    async def connect() -> None:
        raise trouble

    monkeypatch.setattr(receiver, "_connect", connect)
    assert await delivering(receiver) == of_a_try
    assert await receiver.trial(b"{}", event_id="0b9f", nim=NIM) == of_a_trial
    assert await receiver.announce(b"{}", nim=NIM) is None


@pytest.mark.parametrize("is_connected", [True, False])
async def test_a_connection_is_used_while_it_is_there(
    receiver: Any, monkeypatch: pytest.MonkeyPatch, is_connected: bool
) -> None:
    """One that is over is closed, and another one opened; at the end the last one is closed."""
    taken = PubAck(stream="CLOSURES", seq=1)
    first, second = Connection(taken, is_connected=is_connected), Connection(taken)
    waiting = [first, second]

    async def connect() -> Connection:
        return waiting.pop(0)

    monkeypatch.setattr(receiver, "_connect", connect)
    assert await receiver.trial(b"{}", event_id="0b9f", nim=NIM) == Delivered()
    assert await delivering(receiver) == Delivered()
    assert (first.closed, len(waiting)) == ((0, 1) if is_connected else (1, 0))
    await receiver.aclose()
    assert (first.closed, second.closed) == ((1, 0) if is_connected else (1, 1))


def client() -> Any:
    return jetstream._Client(None, plain=True, patience=60.0)


@pytest.mark.parametrize(
    ("error", "complaint", "said"),
    [
        (OSError("gone"), "", "gone"),
        (OSError("gone"), "Authorization Violation", "gone (Authorization Violation)"),
        (OSError("nats: 'Authorization Violation'"), "Authorization Violation", "nats: 'Authorization Violation'"),
        (TimeoutError(), "", "no answer in time"),
        (TimeoutError(), "Authorization Violation", "no answer in time (Authorization Violation)"),
    ],
)
def test_the_end_of_a_connection_is_told_with_what_the_server_complained_of(
    error: Exception, complaint: str, said: str
) -> None:
    """Once."""
    connection = client()
    connection.complaint = complaint
    assert connection.explained(error) == said


async def test_a_missing_permission_is_of_its_subject_alone() -> None:
    """Whoever publishes there hears of it, however often it is said, in whichever letters; all else is a complaint of the server."""
    connection = client()
    asked, other = (asyncio.get_running_loop().create_future() for _ in range(2))
    connection._denied = {TOPIC.lower(): asked, "mcf.el02000016-1.closure": other}
    for subject in (TOPIC, TOPIC.lower(), "mcf.nobody.closure"):
        await connection.hear(nats.errors.Error(f'nats: Permissions Violation for Publish to "{subject}"'))
        assert (asked.done(), other.done(), connection.complaint) == (True, False, "")
    await connection.hear(nats.errors.Error("nats: 'Authorization Violation'"))
    assert connection.complaint == "nats: 'Authorization Violation'"


async def publishing(monkeypatch: pytest.MonkeyPatch, connection: Any) -> asyncio.Task[PubAck]:
    """One that nobody acknowledges."""
    is_out = asyncio.Event()

    async def publish(*_: object, **__: object) -> None:
        is_out.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(connection, "jetstream", lambda: SimpleNamespace(publish=publish))
    connection._max_payload = 1000
    task = asyncio.create_task(connection.publish_acknowledged(TOPIC, b"{}", {}))
    await is_out.wait()
    return task


async def test_a_closure_waits_no_longer_than_its_connection_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server complained of last is told with its end."""
    connection = client()
    connection._flush_queue = asyncio.Queue()  # as one has that was there
    task = await publishing(monkeypatch, connection)
    await connection.hear(nats.errors.Error("nats: 'User Authentication Expired'"))
    assert not task.done()
    await connection._close(Client.CLOSED)
    with pytest.raises(nats.errors.Error, match=r"^nats: connection closed \(nats: 'User Authentication Expired'\)$"):
        await asyncio.wait_for(task, 60)
    assert connection._denied == {}


async def test_a_closure_waits_no_longer_than_until_the_server_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes on."""
    connection = client()
    task = await publishing(monkeypatch, connection)
    await connection.hear(nats.errors.Error(f'nats: permissions violation for publish to "{TOPIC.lower()}"'))
    with pytest.raises(jetstream._DeniedError, match=f"^{DENIED}$"):
        await asyncio.wait_for(task, 60)
    assert (connection._denied, connection._over.is_set()) == ({}, False)


async def test_what_fails_while_it_is_ended_is_nobody_s_trouble() -> None:
    """asyncio would log each as an error that nobody has seen."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("at the end")

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    await jetstream._end(task)
    assert task.done()
    del task
    gc.collect()
    await asyncio.sleep(0)
    assert told == []


@pytest.mark.parametrize("beyond", [0, 1])
async def test_a_line_without_an_end_is_kept_up_to_its_limit(beyond: int) -> None:
    """64 KiB, and not a byte more."""
    parser = client()._ps
    begun = b"INFO " + b"x" * (64 * 1024 - 5 + beyond)
    if beyond:
        with pytest.raises(nats.errors.ProtocolError):
            await parser.parse(begun)
    else:
        await parser.parse(begun)
        assert bytes(parser.buf) == begun


async def test_each_server_is_tried_twice_and_none_is_waited_for(
    receiver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that are down: four connections are refused at once, and the closure is tried again later."""
    refused: list[Exception] = []

    async def hear(_: object, error: Exception) -> None:
        refused.append(error)

    monkeypatch.setattr(jetstream._Client, "hear", hear)
    with socket.socket() as first, socket.socket() as second:
        for held in (first, second):
            held.bind(("127.0.0.1", 0))  # nobody listens there
        receiver._servers = [f"nats://127.0.0.1:{held.getsockname()[1]}" for held in (first, second)]
        with within(0.9):
            outcome = await delivering(receiver)
    assert isinstance(outcome, Again)
    assert [type(error) for error in refused] == [ConnectionRefusedError] * 4
