"""What becomes of one try to deliver, how an answer over HTTPS is read, and what becomes of its connection."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from daemon.core.delivery import Delivered, DeliveryRefused, RetryLater
from daemon.upstream import https
from daemon.upstream.options import Options, generate, verdict


async def test_a_connection_that_was_closed_meanwhile_is_not_used_again(tmp_path: Path) -> None:
    """Headquarters closes after each answer without saying so: the next closure goes over a new connection at its first try."""
    connections = 0

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        closed.set()

    closed = asyncio.Event()
    generate(tmp_path / "upstream.key")
    async with await asyncio.start_server(answer_once, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        receiver = https.open_receiver(Options(url=f"http://127.0.0.1:{port}/", key_files=(tmp_path / "upstream.key",)))
        for _ in range(2):
            closed.clear()
            assert await receiver.trial(b"{}", event_id="0b9f", nim="EL02000015-1") == Delivered()
            await closed.wait()
        await receiver.aclose()
    assert connections == 2


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("at_once", [1, pytest.param(12, marks=pytest.mark.long)])
async def test_a_try_that_is_given_up_at_any_moment_leaves_nothing_behind(
    tmp_path: Path, at_once: int, keeps: bool
) -> None:
    """At each turn of the loop: the next is delivered, and no unused connection stays, as one of httpcore would (1093)."""
    open_now = 0
    how = b"keep-alive" if keeps else b"close"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                writer.write(b"HTTP/1.1 200 OK\r\nconnection: %s\r\ncontent-length: 2\r\n\r\n{}" % how)
                await writer.drain()
                if not keeps:
                    break
        open_now -= 1
        writer.close()

    generate(tmp_path / "upstream.key")
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        receiver = https.open_receiver(Options(url=f"http://127.0.0.1:{port}/", key_files=(tmp_path / "upstream.key",)))

        async def tries() -> list[Any]:
            return await asyncio.gather(
                *(receiver.trial(b"{}", event_id=f"0b9f-{number}", nim="EL02000015-1") for number in range(at_once))
            )

        for turns in range(40):
            trying = asyncio.ensure_future(tries())
            for _ in range(turns):
                await asyncio.sleep(0)
            trying.cancel()
            await asyncio.gather(trying, return_exceptions=True)
            assert await tries() == [Delivered()] * at_once, turns
        async with asyncio.timeout(60):
            while open_now > (min(at_once, https.KEEPALIVE) if keeps else 0):  # noqa: ASYNC110  the server is told by the kernel
                await asyncio.sleep(0.001)
            await receiver.aclose()
            while open_now:  # noqa: ASYNC110  the same
                await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, Delivered) for status in (200, 201, 202, 204, 299, 409)),
        *((status, DeliveryRefused) for status in (400, 413, 422)),
        *(
            (status, RetryLater)
            for status in (199, 300, 302, 399, 401, 403, 404, 408, 410, 412, 414, 421, 423, 429, 500, 503, 599)
        ),
    ],
)
def test_what_a_status_says(status: int, kind: type) -> None:
    """Taken; wrong in itself and parked; anything else is set right over there, and tried again."""
    found = verdict(status, "why", 7.0)
    assert type(found) is kind
    if not isinstance(found, Delivered):
        assert found.error == f"answered {status} why"
    if isinstance(found, RetryLater):
        assert found.retry_after == 7.0


@pytest.mark.parametrize("status", [200, 409])
def test_an_answer_without_the_receipt_that_was_asked_for_is_none(status: int) -> None:
    """Some page of a hotel's network says 200: tried again, with what it said. A receipt is asked of nothing that was not taken."""
    assert verdict(status, "Welcome", None, has_receipt=False) == RetryLater(
        f"without a receipt answered {status} Welcome", None
    )
    assert verdict(400, "", None, has_receipt=False) == DeliveryRefused("answered 400")
