"""What answers at the address of headquarters' NATS server is none, or lies: anybody on the network, before any encryption."""

import asyncio
import contextlib

import pytest
from nats_sending import send, write_key

from daemon.core.delivery import Delivered, RetryLater
from daemon.upstream.options import Options, open_receiver

NO_SERVER = RetryLater("what answers there is no NATS server")
HELLO = b'INFO {"server_id":"x","version":"2.15.0","max_payload":1048576,"headers":true}\r\n'
A_MEGABYTE = b"x" * 1_000_000


@contextlib.asynccontextmanager
async def answering(hello, then=b""):
    """`hello` at once, and `then` once a client has said its PING; with the options to reach it, and what is set when the client has gone."""
    gone = asyncio.Event()

    async def answer(reader, writer):
        with contextlib.suppress(ConnectionError):
            writer.write(hello)
            if then:
                await reader.readuntil(b"PING\r\n")
                writer.write(b"PONG\r\n" + then)
            await reader.read()
        gone.set()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", gone


@pytest.mark.parametrize(
    "hello",
    [A_MEGABYTE, b"INFO []\r\n", b'INFO "x"\r\n', b'INFO {"max_payload":"x"}\r\n', b"HTTP/1.1 400 Bad Request\r\n"],
    ids=["endless line", "list", "text", "size", "web server"],
)
async def test_a_greeting_that_is_none_is_tried_again(tmp_path, hello):
    """As any other server that does not answer: the closure waits, and the queue goes on."""
    async with answering(hello) as (url, _):
        options = Options(url=url, key_files=write_key(tmp_path), timeout=30.0)
        assert await send(options) == [NO_SERVER]
        receiver = open_receiver("nats", options)
        assert await receiver.announce(b"{}", nim="EL02000015") is None
        assert isinstance(await receiver.trial(b"{}", event_id="1", nim="EL02000015"), RetryLater)


@pytest.mark.parametrize("then", [A_MEGABYTE, b"MSG x 1 9000000000\r\n" + A_MEGABYTE], ids=["line", "message"])
async def test_what_has_no_end_is_not_kept(tmp_path, then):
    """A line or a message that goes on and on ends the connection, however idle it is; the box's memory is not headquarters'."""
    async with answering(HELLO, then) as (url, gone):
        receiver = open_receiver("nats", Options(url=url, key_files=write_key(tmp_path), timeout=30.0))
        assert await receiver.trial(b"{}", event_id="1", nim="EL02000015") == Delivered()
        async with asyncio.timeout(60):
            await gone.wait()
        await receiver.aclose()
