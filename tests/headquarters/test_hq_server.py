"""Headquarters' server and its application, in this process."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from litestar import Litestar

from headquarters.app.server import HttpServer
from headquarters.app.service import create_service
from headquarters.app.settings import HqServer


class Sleepless:
    """asyncio for uvicorn, whose pauses have no end."""

    def __getattr__(self, name):
        return getattr(asyncio, name)

    async def sleep(self, _):
        await asyncio.Event().wait()


async def test_nothing_is_waited_for_where_nobody_is(monkeypatch):
    """Neither uvicorn's next tick nor its pause for connections, where there is none; the port is free again."""
    monkeypatch.setattr("uvicorn.server.asyncio", Sleepless())
    server = HttpServer(Litestar([], openapi_config=None, logging_config=None), HqServer(port=0))
    await server.start()
    host, port = server.address.removeprefix("http://").split(":")
    await asyncio.wait_for(server.stop(), 60)
    (await asyncio.start_server(lambda *_: None, host, int(port))).close()


@pytest.mark.filterwarnings(
    "ignore::litestar.exceptions.LitestarDeprecationWarning"
)  # said of Litestar 3, which is not allowed in yet
def test_each_has_a_state_of_its_own():
    """The routes are drawn once in a process; what answers there is of the one that was asked."""
    first, second = (create_service(store, None, None, SimpleNamespace(zone=store)) for store in ("first", "second"))
    assert [each.state["store"] for each in (first, second)] == ["first", "second"]
    assert first.asgi_router is second.asgi_router
