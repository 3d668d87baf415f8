"""A server that ends by itself ends its program with an error, so that systemd starts it again; what is no HTTP is answered all the same."""

import asyncio
import json
import socket

import pytest
import uvicorn

from common.front_config import ERRORS
from common.http_server import HttpServer, ServerConfig


class Broken(uvicorn.Server):
    async def serve(self, sockets=()):
        self.started = True
        for each in sockets:
            each.close()
        await asyncio.sleep(0.02)
        raise RuntimeError("broken")


async def test_a_server_that_ends_by_an_error(monkeypatch):
    monkeypatch.setattr(uvicorn, "Server", Broken)
    server = HttpServer(lambda *_: None, ServerConfig(port=0))
    await server.start()
    with pytest.raises(RuntimeError, match="broken"):
        await server.until(asyncio.Event())
    await server.stop()


async def test_a_server_whose_address_is_taken_can_be_stopped():
    """As a program does that ends for that reason."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = HttpServer(lambda *_: None, ServerConfig(port=other.getsockname()[1]))
        with pytest.raises(OSError, match="in use"):
            await server.start()
        await server.stop()


async def test_a_server_has_started_when_its_start_returns(monkeypatch):
    """Its program then reports that it is ready."""
    started = asyncio.Event()

    class Slow(uvicorn.Server):
        async def serve(self, sockets=()):
            await asyncio.sleep(0.02)
            self.started = True
            started.set()
            for each in sockets:
                each.close()

    monkeypatch.setattr(uvicorn, "Server", Slow)
    server = HttpServer(lambda *_: None, ServerConfig(port=0))
    await server.start()
    assert started.is_set()
    await server.stop()


async def app(scope, receive, send):
    """Reads the body, if the path is not `/begun`; that begins its answer before."""
    if scope["path"] == "/begun":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    while (await receive()).get("more_body"):
        pass


HOST = b" HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HOST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [b"x\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET /" + HOST + b"Host: a\r\n\r\n", b"POST /" + CHUNKED + b"zz\r\n", b"POST /begun" + CHUNKED + b"zz\r\n"],
)  # fmt: skip
async def test_what_is_no_http_is_a_problem(data):
    """Decision 11: 400, and the end of the connection; an answer that has begun is cut, and nothing stands in the middle of it."""
    server = HttpServer(app, ServerConfig(port=0))
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    begun, *rest = [data] if b"/begun" not in data else [data[:-4], data[-4:]]
    writer.write(begun)
    for each in rest:
        await reader.readuntil(b"begun")
        writer.write(each)
    async with asyncio.timeout(10):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await server.stop()
    if rest:
        assert b"HTTP/1.1" not in head + body
        return
    assert b"application/problem+json" in head
    assert json.loads(body)["code"] == ERRORS[400][0]
