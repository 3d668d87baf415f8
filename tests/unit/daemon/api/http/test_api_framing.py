from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs
from support.api import LIVE_KEY, Serve, Served, UseCases, until
from support.wire import BODY, BRIEF, LAST, REQUEST, WHOLE, connections, problem, statuses

from daemon.api.http.connection import Connection, ConnectionLimits, Phase

GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
BYE = GET + b"Connection: close\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
CHUNK = b"%x\r\n%s\r\n" % (len(BODY), BODY)
STRANGER = REQUEST.replace(LIVE_KEY.encode(), b"x")


def the_connection(served: Served) -> Connection:
    [connection] = served.server._server._connections()
    return connection


@pytest.mark.parametrize(
    "raw",
    [
        GET.replace(b"1.1", b"2.0") + b"\r\n",
        b"GET /health/live\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        GET + b"Host: localhost\r\n\r\n",
        GET.replace(b"1.1", b"1.0") + b"Host: localhost\r\n\r\n",
        REQUEST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        REQUEST + b"Content-Length: 2, 2\r\n\r\n{}",
        REQUEST + b"Content-Length: +2\r\n\r\n{}",
        REQUEST + b"Content-Length: 2\r\n" + CHUNKED + b"2\r\n{}\r\n0\r\n\r\n",
        REQUEST + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        REQUEST + b"Transfer-Encoding: gzip\r\n\r\n{}",
        REQUEST + b"Transfer-Encoding: chunked\r\n" + CHUNKED + b"2\r\n{}\r\n0\r\n\r\n",
        REQUEST.replace(b"1.1", b"1.0") + CHUNKED + b"2\r\n{}\r\n0\r\n\r\n",
        GET + b"X: a\x00b\r\n\r\n",
        GET + b"X: a\rb\r\n\r\n",
        GET + b"X\x01: b\r\n\r\n",
        GET + b"X : b\r\n\r\n",
        GET + b"X: a\r\n b\r\n\r\n",
        GET + b"X: a\n\r\n",
        BYE.replace(b"\r\n", b"\n"),
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT /v1/me HTTP/1.1\r\nHost: localhost\r\n\r\n",
        BYE.replace(b"/health/live", b"http://localhost/health/live"),
        BYE.replace(b"/health/live", b"localhost:80"),
        BYE.replace(b"/health/live", b"*").replace(b"GET", b"OPTIONS"),
        BYE.replace(b"/health/live", b"health"),
        BYE.replace(b"live", b"live#x"),
        BYE.replace(b"live", b"\xe9"),
        BYE.replace(b"live", b"\x7f"),
    ],
)
async def test_what_leaves_room_for_doubt_is_refused(served: Served, usecases: UseCases, raw: bytes) -> None:
    """400, and nothing that follows it on the connection is looked at; no use case is asked, and no error is logged."""
    with capture_logs() as lines:
        answer = await served.send(raw + LAST)
    assert statuses(answer) == [400]
    assert problem(answer)["code"] == "BAD_REQUEST"
    assert [(line["event"], line["log_level"]) for line in lines] == [("request", "info")]
    assert usecases.calls == []


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (GET + b"X: ", 431),
        (b"GET /", 431),
        (REQUEST + CHUNKED + CHUNK + b"0\r\nX: ", 400),
        (REQUEST + CHUNKED + b"1;x=", 400),
    ],
    ids=["header", "target", "trailer", "chunk extension"],
)
@pytest.mark.parametrize("size", [70_000, 500], ids=["at once", "in pieces"])
async def test_no_head_is_larger_than_its_limit(
    served: Served, usecases: UseCases, head: bytes, status: int, size: int
) -> None:
    """431 as soon as its bytes are more, however they come; 400 for what surrounds the pieces of a chunked body."""
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(head)
        await writer.drain()
        answer = asyncio.ensure_future(reader.read())
        for _ in range(70_000 // size):
            writer.write(b"a" * size)
            if answer.done():
                break
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            raw = await answer
    assert statuses(raw) == [status]
    assert problem(raw)["code"] == {431: "HEADERS_TOO_LARGE", 400: "BAD_REQUEST"}[status]
    assert usecases.calls == []


async def test_a_head_may_be_as_large_as_its_limit(serve: Serve) -> None:
    """To the byte, also behind another request; one byte more is too much."""
    for room, expected in ((0, [200, 200]), (-1, [200, 431])):
        served = await serve(limits=ConnectionLimits(header_bytes=len(BYE) + room))
        assert statuses(await served.send(GET + b"\r\n" + BYE)) == expected


async def test_however_the_bytes_come(served: Served, usecases: UseCases) -> None:
    """All at once or a few at a time, also where they end in the middle of a head's end or of a chunk's size: a body with a length, a chunked one
    with trailers, which are nobody's headers, and what follows them."""
    trailer = b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n"
    raw = WHOLE + REQUEST + CHUNKED + CHUNK + b"0\r\n" + trailer + b"\r\n" + LAST
    assert statuses(await served.send(raw)) == [200, 200, 200]
    await served.client.aclose()
    for size in range(1, 8):
        async with connections(served, 1) as [(reader, _)]:
            await until(served.server._server._connections)
            connection = the_connection(served)
            for at in range(0, len(raw), size):
                connection.data_received(raw[at : at + size])
                await asyncio.sleep(0)
            async with asyncio.timeout(30):
                assert statuses(await reader.read()) == [200, 200, 200]
        await until(lambda: not served.server._server._connections())
    assert len(usecases.calls) == 3 + 3 * 7


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
async def test_a_wish_for_another_protocol_is_not_granted(served: Served, usecases: UseCases, protocol: bytes) -> None:
    """The request is answered as any other, its body is its body, and what follows is the next request."""
    wish = b"Upgrade: " + protocol + b"\r\nConnection: Upgrade\r\n"
    for request in (WHOLE, REQUEST + CHUNKED + CHUNK + b"0\r\n\r\n"):
        raw = request.replace(b"Host", wish + b"Host")
        assert statuses(await served.send(raw + LAST)) == [200, 200]
        assert statuses(await served.send(raw[:90], raw[90:300], raw[300:], LAST)) == [200, 200]
    assert statuses(await served.send(b"GET / HTTP/1.1\r\n" + wish + b"\r\n")) == [400]
    assert len(usecases.calls) == 8


async def test_a_body_that_was_not_asked_for_is_no_request(served: Served, usecases: UseCases) -> None:
    """Refused before its body came: the answer says that the connection ends, and the body is thrown away unread, whatever it looks
    like."""
    for head, body in (
        (b"Content-Length: %d\r\n\r\n" % len(WHOLE), WHOLE),
        (CHUNKED, b"%x\r\n%s\r\n0\r\n\r\n" % (len(WHOLE), WHOLE)),
    ):
        async with connections(served, 1) as [(reader, writer)]:
            writer.write(STRANGER + head)
            async with asyncio.timeout(30):
                told = await reader.readuntil(b"\r\n\r\n")
                assert told.startswith(b"HTTP/1.1 401")
                assert b"connection: close" in told
                writer.write(body + BYE)
                assert statuses(await reader.read()) == []
    for at_once in (CHUNKED + CHUNK + b"0\r\n\r\n" + BYE, b"Content-Length: 10\r\n\r\n1234567"):
        raw = await served.send(STRANGER + at_once)
        assert statuses(raw) == [401]
        assert b"connection: close" in raw
    assert usecases.calls == []


async def test_after_a_refused_expectation_nothing_follows(served: Served, usecases: UseCases) -> None:
    """The body may come or not: whatever comes is neither a request nor taken for the body of one, and the answer says so."""
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(STRANGER + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n")
        async with asyncio.timeout(30):
            raw = await reader.readuntil(b"\r\n\r\n")
            writer.write(WHOLE)
            raw += await reader.read()
    assert statuses(raw) == [401]
    assert problem(raw)["code"] == "UNAUTHENTICATED"
    assert usecases.calls == []
    at_once = STRANGER + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}"
    assert statuses(await served.send(at_once + BYE)) == [401, 200]


async def test_a_bad_request_does_not_spoil_the_answer_before_it(served: Served, usecases: UseCases) -> None:
    """An invoice that is certified is answered, whatever was sent right behind it."""
    usecases.gate = asyncio.Event()
    answer = asyncio.ensure_future(served.send(WHOLE + b"GARBAGE\r\n\r\n"))
    await until(lambda: usecases.calls)
    usecases.gate.set()
    assert statuses(await answer) == [200, 400]


async def test_what_comes_too_early_waits_unread(serve: Serve, usecases: UseCases) -> None:
    """Requests behind one that is being certified: none is begun, reading is paused, and no deadline counts for them."""
    served = await serve(limits=BRIEF)
    usecases.gate = asyncio.Event()
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(WHOLE * 2000 + REQUEST + b"Content-Length: 9\r\n\r\n{")
        await until(lambda: usecases.calls)
        connection = the_connection(served)
        await until(lambda: connection.flow.read_paused)
        await asyncio.sleep(0.8)  # longer than every deadline
        assert (connection._phase_now(), len(usecases.calls)) == (Phase.WORKING, 1)
        assert len(connection._buffer) < 600_000
        usecases.gate.set()
        async with asyncio.timeout(30):
            assert statuses(await reader.read()) == [200] * 2000 + [408]


async def test_a_head_alone(served: Served) -> None:
    """HEAD (which is not allowed there): no body, and the next answer follows at once."""
    raw = await served.send(GET.replace(b"GET", b"HEAD") + b"\r\n" + BYE)
    assert statuses(raw) == [405, 200]
    assert raw.count(b'"status"') == 1
