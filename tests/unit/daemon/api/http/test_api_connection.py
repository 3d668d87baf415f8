from __future__ import annotations

import asyncio
import time

import pytest
from httptools import HttpParserCallbackError
from structlog.testing import capture_logs
from support.api import INVOICE, LIVE_KEY, Serve, Served, UseCases, until
from support.processor import within
from support.wire import BODY, BRIEF, LAST, LIVE, REQUEST, WHOLE, connections, problem, statuses

from daemon.api.http.connection import THROWN_AWAY, Phase
from edge.admission import ConnectionLimits, Standing
from edge.listening import bind


async def drip(served: Served, head: bytes, drops: bytes, pause: float) -> tuple[bytes, float]:
    """Sends a byte now and then until the server answers; the answer, and how long that took."""
    began = time.monotonic()
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(head)
        answer = asyncio.ensure_future(reader.read())
        for drop in drops:
            if answer.done():
                break
            writer.write(bytes([drop]))
            await asyncio.wait([answer], timeout=pause)
        async with asyncio.timeout(30):
            return await answer, time.monotonic() - began


async def test_each_phase_has_its_deadline(serve: Serve) -> None:
    """Counted from its beginning; of a body and of an answer also from when the peer last did something; while the machine works there is none."""
    limits = ConnectionLimits(
        idle_seconds=7, unknown_idle_seconds=5, header_seconds=3, body_seconds=30, stall_seconds=10, write_seconds=20, linger_seconds=2
    )  # fmt: skip
    served = await serve(limits=limits)
    await served.client.aclose()
    async with connections(served, 1) as [_]:
        await until(served.server._server._connections)
        (connection,) = served.server._server.server_state.connections
        for phase, received, drained, seconds in (
            (Phase.IDLE, 0, 0, 5),
            (Phase.HEADERS, 2, 0, 3),
            (Phase.BODY, 0, 0, 10),
            (Phase.BODY, 4, 0, 14),
            (Phase.BODY, 25, 0, 30),
            (Phase.WORKING, 0, 0, float("inf")),
            (Phase.WRITING, 0, -1, 20),
            (Phase.WRITING, 0, 6, 26),
            (Phase.CLOSING, 1, 1, 2),
        ):
            connection._phase, connection._since = phase, 100.0
            connection._received_at, connection._drained_at = 100.0 + received, 100.0 + drained
            assert connection._deadline() == 100.0 + seconds, phase
        connection.slot.standing = Standing.LIVE
        connection._phase = Phase.IDLE
        assert connection._deadline() == 107.0


async def test_headers_that_never_end_meet_their_deadline(serve: Serve, usecases: UseCases) -> None:
    """Silent after the first bytes, or one byte now and then: 408, closed, nothing asked."""
    served = await serve(limits=BRIEF)
    for drops, pause in ((b"", 0.0), (b"x" * 200, 0.05)):
        with within(3):
            raw, _ = await drip(served, b"POST /v1/mcf/x HTTP/1.1\r\nX-Long: ", drops, pause)
        assert problem(raw)["code"] == "REQUEST_TIMEOUT"
    assert usecases.calls == []


async def test_a_body_that_stalls_meets_its_deadline(serve: Serve, usecases: UseCases) -> None:
    """Half a body and then silence: 408, closed, and no use case was asked."""
    served = await serve(limits=BRIEF)
    with within(3):
        raw, _ = await drip(served, REQUEST + b"Content-Length: 100\r\n\r\n{", b"", 0)
    assert problem(raw)["code"] == "REQUEST_TIMEOUT"
    assert usecases.calls == []


async def test_a_body_that_drips_meets_its_deadline(serve: Serve, usecases: UseCases) -> None:
    """A byte now and then is progress, and still not for ever."""
    served = await serve(limits=BRIEF)
    with within(4):
        raw, took = await drip(served, REQUEST + b"Content-Length: 1000\r\n\r\n", b" " * 900, 0.1)
    assert problem(raw)["code"] == "REQUEST_TIMEOUT"
    assert took > 0.5
    assert usecases.calls == []


@pytest.mark.parametrize("ending", ["close", "half"])
async def test_a_body_that_stops_half_way_touches_nothing(served: Served, usecases: UseCases, ending: str) -> None:
    """The till hung up, or said that no more would come: the next one is served, nothing was certified."""
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(REQUEST + b"Content-Length: 1000\r\n\r\n" + BODY)
        await writer.drain()
        if ending == "half":
            writer.write_eof()
            async with asyncio.timeout(30):
                await reader.read()
    await until(lambda: not served.server._server.server_state.connections)
    assert usecases.calls == []
    assert (await served.post(json=INVOICE)).status_code == 200


async def test_a_long_certification_is_no_slow_request(serve: Serve, usecases: UseCases) -> None:
    """Once the request is complete no deadline of the connection counts, however long the machine takes."""
    served = await serve(limits=BRIEF)
    usecases.gate = asyncio.Event()
    answer = asyncio.ensure_future(served.post(json=INVOICE))
    await until(lambda: usecases.calls)
    done, _ = await asyncio.wait([answer], timeout=1.0)
    assert not done
    usecases.gate.set()
    assert (await answer).status_code == 200


async def test_idle_connections_do_not_disturb_a_till(served: Served) -> None:
    """200 of them open, some with half a head, while a till certifies."""
    async with connections(served, 200) as opened:
        for _, writer in opened[:100]:
            writer.write(b"GET /health/live HT")
        for _ in range(5):
            assert (await served.post(json=INVOICE)).status_code == 200


async def test_an_idle_connection_is_closed(serve: Serve) -> None:
    """Before its first request as well as between two."""
    served = await serve(limits=BRIEF)
    async with connections(served, 2) as [(fresh, _), (used, writer)]:
        writer.write(WHOLE)
        async with asyncio.timeout(30):
            assert await fresh.read() == b""
            assert (await used.read()).count(b"HTTP/1.1 200") == 1


async def test_the_newest_gets_in(serve: Serve) -> None:
    """One connection more than an address may have: the oldest that has shown no key goes, and the till that comes is served."""
    served = await serve(limits=ConnectionLimits(per_address=3))
    await served.client.aclose()
    async with connections(served, 3) as opened:
        await until(lambda: len(served.server._server.server_state.connections) == 3)
        assert (await served.send(LAST)).startswith(b"HTTP/1.1 200")
        async with asyncio.timeout(30):
            assert await opened[0][0].read() == b""
        assert len(served.server._server.server_state.connections) == 2


async def test_who_has_shown_a_key_stays(serve: Serve) -> None:
    """An address full of tills at work: the next connection is refused, and says so; when one goes, there is room again."""
    served = await serve(limits=ConnectionLimits(per_address=2))
    await served.client.aclose()
    with capture_logs() as lines:
        async with connections(served, 2) as opened:
            for reader, writer in opened:
                writer.write(WHOLE)
                assert b"200" in await reader.readline()
            raw = await served.send()
            assert raw.startswith(b"HTTP/1.1 429")
            assert b"retry-after: 5" in raw.lower()
            assert problem(raw)["code"] == "TOO_MANY_REQUESTS"
            opened[0][1].close()
            await until(lambda: len(served.server._server.server_state.connections) == 1)
            assert (await served.send(LAST)).startswith(b"HTTP/1.1 200")
    assert [line["event"] for line in lines].count("connections.refused") == 1


async def test_who_sends_no_more_still_gets_the_answer(served: Served, usecases: UseCases) -> None:
    """A till that shuts its side down once the request is out: certified, and told so."""
    usecases.gate = asyncio.Event()
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(WHOLE)
        writer.write_eof()
        await until(lambda: usecases.calls)
        usecases.gate.set()
        async with asyncio.timeout(30):
            raw = await reader.read()
    assert statuses(raw) == [200]
    assert b"connection: close" in raw


async def test_a_request_without_a_key_waits_its_turn(serve: Serve) -> None:
    """So many a second; what comes faster is answered later and in order, a till with its key at once; far too many are refused."""
    served = await serve(limits=ConnectionLimits(requests=(50.0, 1.0), requests_in_all=(50.0, 1.0)))
    began = asyncio.get_running_loop().time()
    answers = asyncio.ensure_future(served.send(LIVE * 10 + LIVE.replace(b"Host", b"Connection: close\r\nHost")))
    assert (await served.send(LAST)).startswith(b"HTTP/1.1 200")
    assert not answers.done()
    assert statuses(await answers) == [200] * 11
    assert asyncio.get_running_loop().time() - began >= 0.18
    slow = await serve(limits=ConnectionLimits(requests=(0.01, 1.0)))
    assert statuses(await slow.send(LIVE * 3)) == [200, 200, 429]


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nBad Header: 1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000, 431),
    ],
    ids=["tls hello", "no host", "two hosts", "bad header name", "negative length", "two lengths", "long header"],
)
async def test_what_is_no_http_is_a_problem_too(served: Served, raw: bytes, status: int) -> None:
    """400, or 431 when the headers are too large, in the same shape, with a line in the log."""
    with capture_logs() as lines:
        answer = await served.send(raw)
    assert int(answer.split()[1]) == status
    assert problem(answer)["status"] == status
    assert [line["status"] for line in lines if line["event"] == "request"] == [status]


async def test_a_spoiled_chunked_body_is_refused(served: Served, usecases: UseCases) -> None:
    """Garbage where a chunk's length should be: 400 while the handler waits for the body, and nothing asked."""
    raw = await served.send(REQUEST + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"a":\r\nzz\r\n')
    assert problem(raw)["code"] == "BAD_REQUEST"
    assert usecases.calls == []


async def test_a_body_that_is_spoiled_half_way_is_waited_for_by_nobody(serve: Serve, usecases: UseCases) -> None:
    """Who had asked for it is told at once that it does not come: nothing of the request is left, however long its connection is."""
    served = await serve(limits=ConnectionLimits(linger_seconds=3600))
    await served.client.aclose()
    at_work = served.server._server.server_state.tasks
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(REQUEST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await until(lambda: at_work)
        writer.write(b"zz\r\n")
        async with asyncio.timeout(30):
            assert problem(await reader.read())["code"] == "BAD_REQUEST"
            await until(lambda: not at_work)
    assert usecases.calls == []


async def test_requests_in_a_row_on_one_connection(served: Served, usecases: UseCases) -> None:
    """Sent at once (pipelined), each gets its answer, in order; and so does what comes after these answers."""
    async with connections(served, 1) as [(reader, writer)], asyncio.timeout(30):
        for sent, answers in ((LIVE * 3, 3), (WHOLE * 3, 3), (LIVE, 1), (LAST, 1)):
            writer.write(sent)
            for _ in range(answers):
                await reader.readuntil(b"HTTP/1.1 200")
        await reader.read()
    assert len(usecases.calls) == 4


async def test_an_old_till_is_not_told_to_go_on(served: Served, usecases: UseCases) -> None:
    """HTTP/1.0 knows no 100 (RFC 9110, 10.1.1): the wish is read over."""
    await served.client.aclose()
    head = REQUEST.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY)
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(head)
        known = served.server._server.server_state.connections
        await until(lambda: [each for each in known if each._wanted])
        writer.write(BODY)
        async with asyncio.timeout(30):
            assert statuses(await reader.read()) == [200]
    assert len(usecases.calls) == 1


async def test_a_till_that_asks_before_sending(served: Served, usecases: UseCases) -> None:
    """`Expect: 100-continue`: it is told to go on when its key is good, and refused without its body when not."""
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(REQUEST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        async with asyncio.timeout(30):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
            writer.write(BODY)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    wrong = REQUEST.replace(LIVE_KEY.encode(), b"x") + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(wrong)
        async with asyncio.timeout(30):
            assert (await reader.readline()).startswith(b"HTTP/1.1 401")
    assert len(usecases.calls) == 1


@pytest.mark.parametrize(("first", "room"), [(b"", 5000), (WHOLE, THROWN_AWAY)], ids=["a stranger", "a till"])
async def test_who_goes_on_sending_after_the_end_is_cut(serve: Serve, first: bytes, room: int) -> None:
    """What comes behind a request that ended the connection is thrown away, so that its answer is seen, up to what such a peer may have; no
    deadline is waited for then."""
    served = await serve(limits=ConnectionLimits(unknown_bytes=5000, linger_seconds=3600, idle_seconds=3600))
    await served.client.aclose()
    known = served.server._server.server_state.connections
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(first + b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(30):
            assert statuses(await reader.read()) == ([200, 400] if first else [400])
        (connection,) = known
        writer.write(b"x" * room)
        await until(lambda: connection._thrown_away == room)
        assert connection in known
        writer.write(b"x")
        await until(lambda: not known)


@pytest.mark.parametrize("more", [b"", LIVE], ids=["nothing", "another request"])
async def test_no_more_is_kept_of_who_waits_than_who_has_no_key_may_have(
    serve: Serve, more: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is not read; what was read of it is gone, and then the answer says that the connection ends. What has room goes on."""
    served = await serve(limits=ConnectionLimits(unknown_bytes=5000))
    await served.client.aclose()
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(LIVE)
        async with asyncio.timeout(30):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
        # However long the machine took for the request before, the next one has to wait.
        monkeypatch.setattr("edge.admission.Slot.pace", lambda *_: 0.02)
        (connection,) = served.server._server.server_state.connections
        stranger = REQUEST.replace(LIVE_KEY.encode(), b"x")
        connection.data_received(stranger + b"Content-Length: 5000\r\n\r\n" + b"x" * 5000 + more)
        assert connection._held_back
        assert connection.flow.read_paused
        assert len(connection._buffer) - connection._at == 5000
        async with asyncio.timeout(30):
            told = await reader.readuntil(b"\r\n\r\n")
            assert told.startswith(b"HTTP/1.1 401")
            assert (b"connection: close" in told.lower()) is bool(more)
            if not more:
                connection.data_received(LIVE)
                assert b"HTTP/1.1 200" in await reader.readuntil(b"HTTP/1.1 200")


async def test_a_defect_of_ours_is_not_called_a_bad_request(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised to the loop, which tells it and ends the connection: nobody looks for a fault at the till."""
    await served.client.aclose()
    monkeypatch.setattr("daemon.api.http.connection.check_line", lambda *_: 1 // 0)
    async with connections(served, 1) as [_]:
        await until(served.server._server._connections)
        (connection,) = served.server._server.server_state.connections
        with pytest.raises(HttpParserCallbackError):
            connection.data_received(LIVE)


async def test_who_does_not_read_the_answer_is_cut(serve: Serve) -> None:
    """It fills no memory and holds nothing: cut after the deadline, while others are served."""
    served = await serve(limits=BRIEF)
    async with connections(served, 1) as [(_, writer)]:
        writer.write(b"GET /schema/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        await until(lambda: len(served.server._server.server_state.connections) == 1)
        assert (await served.post(json=INVOICE)).status_code == 200
        await served.client.aclose()
        await until(lambda: not served.server._server.server_state.connections)


async def test_who_is_late_to_read_gets_all_of_it(served: Served) -> None:
    """More than the kernel takes at once: it goes on as it is read, and so does what was asked for behind it."""
    await served.client.aclose()
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(b"GET /schema/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 9 + LAST)
        known = served.server._server.server_state.connections
        await until(lambda: [each for each in known if each.flow.write_paused])
        async with asyncio.timeout(30):
            assert statuses(await reader.read()) == [200] * 10


async def test_who_does_not_go_after_the_end_is_cut(serve: Serve) -> None:
    """Soon, however long a connection may idle: its request was no HTTP, and it has been told."""
    served = await serve(limits=ConnectionLimits(linger_seconds=0.2))
    await served.client.aclose()
    async with connections(served, 1) as [(reader, writer)]:
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(30):
            assert statuses(await reader.read()) == [400]
            await until(lambda: not served.server._server.server_state.connections)


async def test_a_port_that_is_taken_is_told(serve: Serve) -> None:
    """OSError at the start, for the composition root to put into words."""
    served = await serve()
    with pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", served.port)
