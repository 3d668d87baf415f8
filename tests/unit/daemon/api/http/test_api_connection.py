"""What a client can count on of a connection, without HAProxy: uvicorn's, with our deadline for a body."""

from __future__ import annotations

import asyncio

import pytest
from support.api import INVOICE, LIVE_KEY, Serve, Served, UseCases, until
from support.ports import free_port
from support.wire import BODY, LAST, LIVE, REQUEST, WHOLE, connections, statuses

from common.sockets import bind
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


async def test_requests_in_a_row_on_one_connection(served: Served, usecases: UseCases) -> None:
    """Sent at once (pipelined), each gets its answer, in order; and so does what comes after these answers."""
    async with connections(served, 1) as [(reader, writer)], asyncio.timeout(30):
        for sent, answers in ((LIVE * 3, 3), (WHOLE * 3, 3), (LIVE, 1), (LAST, 1)):
            writer.write(sent)
            for _ in range(answers):
                await reader.readuntil(b"HTTP/1.1 200")
        await reader.read()
    assert len(usecases.calls) == 4


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


async def test_a_till_that_asks_before_sending(served: Served, usecases: UseCases) -> None:
    """`Expect: 100-continue`: it may go on when its key is good, and is refused without its body when not."""
    async with connections(served, 1) as [(reader, writer)], asyncio.timeout(30):
        writer.write(REQUEST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(BODY)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    async with connections(served, 1) as [(reader, writer)], asyncio.timeout(30):
        writer.write(REQUEST.replace(LIVE_KEY.encode(), b"x") + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 401")
    assert len(usecases.calls) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"AT\r\n\r\n",
        REQUEST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        REQUEST + b"Content-Length: -1\r\n\r\n",
        REQUEST + b"Content-Length: 2\r\nTransfer-Encoding: gzip\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000,
        REQUEST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nBad Header: 1\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n",
        b"GET /\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused(served: Served, usecases: UseCases, raw: bytes) -> None:
    """400, and nothing of it is done; exactly one Host header is required."""
    async with connections(served, 1) as [(reader, writer)], asyncio.timeout(30):
        writer.write(raw)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    assert usecases.calls == []


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
async def test_a_wish_for_another_protocol_is_not_granted(served: Served, usecases: UseCases, protocol: bytes) -> None:
    """The request is answered as what it is without it."""
    wish = b"Upgrade: " + protocol + b"\r\nConnection: Upgrade\r\n"
    async with connections(served, 1) as [(reader, writer)], asyncio.timeout(30):
        writer.write(WHOLE.replace(b"Host", wish + b"Host"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    assert len(usecases.calls) == 1


async def test_a_port_that_is_taken_is_told(serve: Serve) -> None:
    """OSError, with the address and the reason."""
    port = free_port()
    (taken,) = bind("127.0.0.1", port)
    with pytest.raises(OSError, match=rf"^cannot listen on 127.0.0.1 port {port}: Address already in use$"):
        await serve(config={"port": port})
    taken.close()
