import asyncio

import httpx
import pytest
from support.api import INVOICE, Serve, UseCases, until
from support.processor import within
from support.wire import connections


async def test_at_the_stop_answers_get_out_and_nothing_new_comes_in(serve: Serve, usecases: UseCases) -> None:
    """What is being certified is answered, however long its work goes on; idle and new connections are not waited for."""
    served = await serve(config={"grace": 60.0})
    port = served.port
    usecases.gate = asyncio.Event()
    answer = asyncio.ensure_future(served.post(json=INVOICE))
    async with connections(served, 1) as [(idle, _)]:
        await until(lambda: usecases.calls)
        work = asyncio.Event()
        stopping = asyncio.ensure_future(served.server.stop(work.wait()))
        with within(2):
            assert await idle.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        usecases.gate.set()
        assert (await answer).status_code == 200
        assert not stopping.done()
        work.set()
        await stopping


async def test_the_stop_does_not_wait_for_ever(serve: Serve, usecases: UseCases) -> None:
    """After its grace (1 s here) it ends, whatever is left."""
    served = await serve()
    usecases.gate = asyncio.Event()
    answer = asyncio.ensure_future(served.post(json=INVOICE))
    await until(lambda: usecases.calls)
    with within(3):
        await served.server.stop()
    usecases.gate.set()
    with pytest.raises(httpx.HTTPError):
        await served.client.get("/health/live")
    answer.cancel()
