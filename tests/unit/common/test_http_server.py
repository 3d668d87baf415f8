"""A server that ends by itself ends its program with an error, so that systemd starts it again."""

import asyncio

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
