"""A server that ends by itself ends its program with an error, so that systemd starts it again."""

import asyncio

import msgspec
import pytest
import uvicorn

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


async def echo(scope, receive, send):
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] == "http.disconnect":
            return
        if not message["more_body"]:
            break
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = POST + b"Content-Length: 4\r\n\r\nbody"


@pytest.mark.parametrize(
    ("before", "request_"),
    [
        (b"", b"no HTTP\r\n\r\n"),
        (b"", b"GET / HTTP/1.1\r\n\r\n"),  # no Host
        (b"", POST + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody"),
        (b"", POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        (WHOLE, b"no HTTP\r\n\r\n"),
    ],
)
async def test_what_is_no_http_is_a_problem(before, request_):
    """As every error: application/problem+json with a code; then the connection ends."""
    server = HttpServer(echo, ServerConfig(port=0))
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(before + request_)
    *answers, head, body = (await reader.read()).split(b"\r\n\r\n")
    assert len(answers) == bool(before)
    assert b"400 Bad Request\r\ncontent-type: application/problem+json\r\n" in head
    assert msgspec.json.decode(body)["code"] == "BAD_REQUEST"
    writer.close()
    await server.stop()
