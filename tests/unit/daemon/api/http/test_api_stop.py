from __future__ import annotations

import asyncio
import copy

import httpx
import pytest
from support.api import INVOICE, Serve, UseCases, until
from support.processor import within
from support.wire import LIVE, REQUEST, connections

from daemon.api.http.connection import Connection
from edge.admission import ConnectionLimits


async def test_a_request_that_waits_its_turn_holds_up_no_stop(serve: Serve) -> None:
    """What comes behind it is not read. It has begun nothing: its connection is cut, and it is not begun when its turn comes."""
    served = await serve(limits=ConnectionLimits(requests=(0.3, 1.0)))
    await served.client.aclose()
    known = served.server._server.server_state.connections
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(LIVE * 3)
        async with asyncio.timeout(30):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        (connection,) = known
        await until(lambda: connection._held_back)
        turn = connection._held_back
        assert connection.flow.read_paused
        with within(2):
            await served.server.stop()
        assert not known
        assert turn.cancelled()


async def test_at_the_stop_answers_get_out_and_nothing_new_comes_in(serve: Serve, usecases: UseCases) -> None:
    """What is being certified is answered; idle, half-sent and new connections are not waited for."""
    served = await serve()
    port = served.port
    usecases.gate = asyncio.Event()
    answer = asyncio.ensure_future(served.post(json=INVOICE))
    async with connections(served, 2) as [(idle, _), (half, writer)]:
        writer.write(REQUEST + b"Content-Length: 1000\r\n\r\n{")
        await until(lambda: usecases.calls)
        stopping = asyncio.ensure_future(served.server.stop())
        with within(2):
            assert await idle.read() == b""
            assert await half.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert not stopping.done()
        usecases.gate.set()
        assert (await answer).status_code == 200
        await stopping


async def test_the_stop_does_not_wait_for_ever(serve: Serve, usecases: UseCases) -> None:
    """After its grace (1 s here) whatever is left is cut."""
    served = await serve()
    usecases.gate = asyncio.Event()
    answer = asyncio.ensure_future(served.post(json=INVOICE))
    await until(lambda: usecases.calls)
    with within(3):
        await served.server.stop()
        with pytest.raises(httpx.HTTPError):
            await answer


async def test_a_stop_in_the_moment_of_a_new_connection(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has just come in when the server stops holds up nothing: the connection is closed and forgotten."""
    served = await serve()
    met = asyncio.Event()
    made = Connection.connection_made

    def stopped_meanwhile(self: Connection, transport: asyncio.Transport) -> None:
        made(self, transport)
        for welcoming in tuple(served.server._server._gate._welcoming):
            welcoming.cancel()
        met.set()

    monkeypatch.setattr(Connection, "connection_made", stopped_meanwhile)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
    await met.wait()
    async with asyncio.timeout(60):
        await served.server.stop()
        assert await reader.read() == b""
    writer.close()


async def test_a_connection_that_never_hears_of_its_end_holds_up_no_stop(serve: Serve) -> None:
    """What uvloop leaves of a connection that breaks while it is taken: its place is free, and nobody tells it that it is lost."""
    served = await serve()
    async with connections(served, 1) as [(_, writer)]:
        writer.write(LIVE[:10])
        known = served.server._server.server_state.connections
        await until(lambda: len(known) == 1)
        (connection,) = known
        known.remove(connection)
        ghost = copy.copy(connection)
        ghost.slot = copy.copy(connection.slot)
        ghost.slot._left = True
        known |= {connection, ghost}
        async with asyncio.timeout(30):
            await served.server.stop()
    assert not known
