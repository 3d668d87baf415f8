"""What becomes of one try over NATS, by what the server says: a server that says one thing, and the daemon's own client."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from daemon.core.delivery import Delivered, Delivery, DeliveryRefused, RetryLater
from daemon.upstream import nats as jetstream
from daemon.upstream.options import BadOptions, Options, generate

NIM = "EL02000015-1"
TOPIC = f"mcf.{NIM}.closure"
NO_STREAM = f"what answers on {TOPIC} is not a stream"
MOST = 1000
HELLO = b'INFO {"server_id":"x","max_payload":%d,"headers":true}\r\n' % MOST
TAKEN = b'{"stream":"CLOSURES","seq":1}'
ACKNOWLEDGED = b'{"stream":"CLOSURES","seq":1,"duplicate":true}'
DENIAL = b"-ERR 'Permissions Violation for Publish to \"%b\"'\r\n"


class Server:
    """Takes connections, and says the same of each message."""

    def __init__(self, says: bytes) -> None:
        self.says = says
        """The data of an answer, or a line of the protocol; nothing: the connection is ended."""
        self.connections = 0
        self.read = asyncio.Semaphore(0)
        self.sizes: list[int] = []
        """Of header block and data together."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.write(HELLO)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._read(reader, writer)
        writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sid = b""
        while line := await reader.readline():
            verb, *words = line.split()
            match verb:
                case b"PING":
                    writer.write(b"PONG\r\n")
                case b"SUB":
                    sid = words[-1]
                case b"HPUB":
                    _, reply, _, size = words
                    await reader.readexactly(int(size) + 2)
                    self.sizes.append(int(size))
                    self.read.release()
                    if not self.says:
                        return
                    says = b"MSG %b %b %d\r\n%b\r\n" % (reply, sid, len(self.says), self.says)
                    writer.write(self.says if self.says.endswith(b"\r\n") else says)
                    if b"Expired" in self.says:
                        return


@contextlib.asynccontextmanager
async def serving(folder: Path, says: bytes) -> AsyncIterator[tuple[Server, Any]]:
    """The server, and a receiver at its address."""
    (folder / "upstream.key").unlink(missing_ok=True)
    generate(folder / "upstream.key")
    server = Server(says)
    async with await asyncio.start_server(server.answer, "127.0.0.1") as listening:
        url = f"nats://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        options = Options(url=url, key_files=(folder / "upstream.key",), timeout=60.0)
        receiver = jetstream.open_receiver(options)
        yield server, receiver
        await receiver.aclose()


async def deliver(receiver: Any, event: bytes = b"{}") -> Delivery:
    return await receiver.deliver(event, report_id="0b9f", subject="closure", nim=NIM)


def refusal(code: int, err_code: int, description: str) -> bytes:
    return b'{"error":{"code":%d,"err_code":%d,"description":"%b"}}' % (code, err_code, description.encode())


@pytest.mark.parametrize(
    ("says", "outcome", "connections"),
    [
        (TAKEN, Delivered(), 1),
        (b'{"stream":"","seq":1}', RetryLater(NO_STREAM), 1),
        (refusal(503, 10_077, "no room"), RetryLater("the stream answers 503: no room"), 1),
        (refusal(400, 10_054, "too large"), DeliveryRefused("larger than the stream takes"), 1),
        (b"no JSON", RetryLater(NO_STREAM), 1),
        (b'{"stream":5}', RetryLater(NO_STREAM), 1),
        *((says, RetryLater(NO_STREAM), 1) for says in (b"[]", b"{}", b"7", b'{"error": {}}', b"x" * 65_900)),
        (DENIAL % TOPIC.encode(), RetryLater(f"permissions violation: this key may not publish on {TOPIC}"), 1),
        (DENIAL % TOPIC.lower().encode(), RetryLater(f"permissions violation: this key may not publish on {TOPIC}"), 1),
        (b"-ERR 'User Authentication Expired'\r\n", RetryLater("User Authentication Expired"), 2),
        (b"", RetryLater("the server has ended the connection"), 2),
    ],
)
async def test_what_a_server_says_of_a_closure(
    tmp_path: Path, says: bytes, outcome: Delivery, connections: int
) -> None:
    """Parked is what is larger than it may be, all else tried again; the connection stays where somebody has answered."""
    async with serving(tmp_path, says) as (server, receiver):
        assert await deliver(receiver) == outcome
        server.says = TAKEN
        assert await deliver(receiver) == Delivered()
        assert server.connections == connections


OLD = ("2.9.0", "2.11.14", "2.12.0", "v2.12.5-RC.1")


@pytest.mark.parametrize("version", [*OLD, "2.11.15", "2.12.6", "2.15.1", "3.0.0", "", "of ours"])
async def test_a_server_with_known_vulnerabilities_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """By `mcfd upstream test`, and in the log; closures go through."""
    monkeypatch.setitem(globals(), "HELLO", HELLO.replace(b"{", b'{"version":"%b",' % version.encode(), 1))
    async with serving(tmp_path, TAKEN) as (_, receiver):
        with structlog.testing.capture_logs() as logged:
            trial = await receiver.trial(b"", event_id="", nim=NIM)
            assert await deliver(receiver) == Delivered()
    assert (trial != Delivered()) == (version in OLD)
    assert [each["version"] for each in logged if each["event"] == "nats.outdated"] == [version] * (version in OLD)


async def test_a_stream_that_has_everything(tmp_path: Path) -> None:
    """It calls a duplicate what nobody can have sent: that is no acknowledgement. Later it may be, of what was sent then."""
    async with serving(tmp_path, ACKNOWLEDGED) as (server, receiver):
        assert await deliver(receiver) == RetryLater(f"the stream of {TOPIC} says that it has what was never sent")
        assert await deliver(receiver) == Delivered()
        assert server.connections == 1


async def test_a_denial_of_another_subject_is_not_ours(tmp_path: Path) -> None:
    """A missing permission belongs to the publisher."""
    async with serving(tmp_path, DENIAL % b"mcf.other.closure") as (server, receiver):
        first = asyncio.create_task(deliver(receiver))
        await server.read.acquire()
        server.says = TAKEN
        assert await deliver(receiver) == Delivered()
        assert not first.done()
        first.cancel()
        await asyncio.wait({first})
        assert first.cancelled()


async def test_a_closure_is_as_large_as_the_server_takes_with_its_headers(tmp_path: Path) -> None:
    """To the last byte of what the server said; a byte more is never sent."""
    async with serving(tmp_path, TAKEN) as (server, receiver):
        await deliver(receiver, b"")
        (block,) = server.sizes
        assert await deliver(receiver, b"x" * (MOST - block)) == Delivered()
        assert server.sizes.pop() == MOST
        assert await deliver(receiver, b"x" * (MOST - block + 1)) == DeliveryRefused("larger than the server takes")
        assert server.sizes == [block]


@pytest.mark.parametrize(
    ("hello", "expected"),
    [(b"-ERR 'Authorization Violation'\r\n", "Authorization Violation"), (b"", "the server has ended the connection")],
)
async def test_a_server_that_refuses_the_connection(tmp_path: Path, hello: bytes, expected: str) -> None:
    """What it complained of is in the reason, and nobody waits."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HELLO + hello)
        writer.close()

    generate(tmp_path / "upstream.key")
    async with await asyncio.start_server(refuse, "127.0.0.1") as listening:
        url = f"nats://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        receiver = jetstream.open_receiver(Options(url=url, key_files=(tmp_path / "upstream.key",), timeout=60.0))
        assert await deliver(receiver) == RetryLater(expected)
        trial = await receiver.trial(b"{}", event_id="0b9f", nim=NIM)
        assert isinstance(trial, RetryLater)
        assert re.search(expected, trial.error)
        assert await receiver.announce(b"{}", nim=NIM) is None


async def test_credentials_that_are_damaged(tmp_path: Path) -> None:
    """The start names key and file; later a closure is tried again, and a person who tries it out hears that it is the file."""
    file = tmp_path / "box.creds"
    file.write_text("SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY")
    options = Options(url="nats://127.0.0.1:1", credentials_file=file)
    receiver = jetstream.open_receiver(options)
    file.write_text("nothing")
    text = f"upstream.credentials_file {file}: no NATS credentials in it"
    assert await deliver(receiver) == RetryLater(text)
    assert await receiver.trial(b"{}", event_id="0b9f", nim=NIM) == DeliveryRefused(text)
    with pytest.raises(BadOptions, match=f"^{text}$"):
        jetstream.open_receiver(options)
