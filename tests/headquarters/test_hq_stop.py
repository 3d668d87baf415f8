"""Headquarters' server at its stop."""

from __future__ import annotations

import asyncio

from litestar import Litestar

from headquarters.app.server import HttpServer
from headquarters.app.settings import Server


class Sleepless:
    """asyncio for uvicorn, whose pauses have no end."""

    def __getattr__(self, name):
        return getattr(asyncio, name)

    async def sleep(self, _):
        await asyncio.Event().wait()


async def test_nothing_is_waited_for_where_nobody_is(monkeypatch):
    """Neither uvicorn's next tick nor its pause for connections, where there is none; the port is free again."""
    monkeypatch.setattr("uvicorn.server.asyncio", Sleepless())
    server = HttpServer(Litestar([], openapi_config=None, logging_config=None), Server(port=0))
    await server.start()
    host, port = server.address.removeprefix("http://").split(":")
    await asyncio.wait_for(server.stop(), 60)
    (await asyncio.start_server(lambda *_: None, host, int(port))).close()
