"""What a client can count on of a connection, without HAProxy: uvicorn's, with our deadline for a body."""

import asyncio

import pytest
from support.api import INVOICE, LIVE_KEY, Served, UseCases, until
from support.wire import LAST, REQUEST, WHOLE, connections, statuses

from daemon.api.request import body


@pytest.mark.parametrize("drop", [b"", b" "], ids=["stalls", "drips"])
async def test_a_body_that_is_too_slow_is_refused(
    served: Served, usecases: UseCases, drop: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """408 and the end of the connection, whether nothing comes or a byte now and then; no use case is called."""
    monkeypatch.setattr(body, "BODY_SECONDS", 0.2)
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(REQUEST + b"Content-Length: 1000\r\n\r\n{")
        answer = asyncio.ensure_future(reader.readuntil(b"}"))
        async with asyncio.timeout(30):
            while not answer.done():
                writer.write(drop)
                await asyncio.wait([answer], timeout=0.02)
        raw = await answer
    assert statuses(raw) == [408]
    assert b"REQUEST_TIMEOUT" in raw
    assert usecases.calls == []


@pytest.mark.quick_timers
async def test_a_long_certification_is_no_slow_request(
    served: Served, usecases: UseCases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the request is complete no deadline counts, however long the machine takes."""
    monkeypatch.setattr(body, "BODY_SECONDS", 0.1)
    usecases.gate = asyncio.Event()
    answer = asyncio.ensure_future(served.post(json=INVOICE))
    await until(lambda: usecases.calls)
    done, _ = await asyncio.wait([answer], timeout=0.3)
    assert not done
    usecases.gate.set()
    assert (await answer).status_code == 200


@pytest.mark.parametrize(
    "encoding",
    [b"Content-Length: %d\r\n\r\n%s" % (len(WHOLE), WHOLE), b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(WHOLE), WHOLE)],
    ids=["sized", "chunked"],
)  # fmt: skip
async def test_a_body_that_is_not_read_is_no_request(served: Served, usecases: UseCases, encoding: bytes) -> None:
    """A request that is refused before its body: what the body holds is never taken for the next request."""
    stranger = REQUEST.replace(LIVE_KEY.encode(), b"x")
    assert statuses(await served.send(stranger + encoding + LAST)) == [401, 200]
    assert len(usecases.calls) == 1
