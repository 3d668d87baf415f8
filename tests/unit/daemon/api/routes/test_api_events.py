"""The stream of events over a real socket and a real ledger: its beat, and readers that do not read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.api import LIVE_KEY, NIM, Serve, Served, until
from support.ledgers.ledger import Till, opened, tamper

from daemon.api.access.throttle import ConcurrencyLimit
from daemon.api.routes import events
from daemon.core.invoice.intake import Defaults
from daemon.usecases.delivery.events import EventNotifier
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import MachineWorker
from daemon.usecases.worker.machine_workers import MachineWorkers

REQUEST = (
    f"GET /v1/mcf/{NIM}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {LIVE_KEY}\r\n"
    "Last-Event-ID: 0\r\n\r\n"
).encode()


MANY = """INSERT INTO event (book_id, type, ref_id, at, detail)
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT ?, 'mcf.attention', 0, i, ? FROM n"""
"""Nine megabytes of events: more than the kernel keeps for a reader."""


@pytest.fixture
async def till(tmp_path: Path) -> AsyncIterator[Till]:
    async with opened(tmp_path / "ledger.sqlite3") as store:
        yield await Till.of(store)


@pytest.fixture
def deps(till: Till) -> dict[str, Any]:
    worker = MachineWorker(
        till.book,
        till.store.ledger,
        till.store.journal,
        till.store.events,
        BoxClock(lambda: 0, lambda: False),
        Defaults("1", "Caisse 1", "1"),
    )
    return {"workers": MachineWorkers([worker]), "notifier": EventNotifier(), "event_streams": ConcurrencyLimit(1)}


@asynccontextmanager
async def listening(served: Served, request: bytes = REQUEST) -> AsyncIterator[asyncio.StreamReader]:
    """A stream that was asked for, from its first byte."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    try:
        writer.write(request)
        async with asyncio.timeout(30):
            yield reader
    finally:
        writer.close()


@pytest.fixture
def quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "BEAT", 0.02)


async def test_a_listener_from_another_ledger_is_told(serve: Serve, deps: dict[str, Any], till: Till) -> None:
    """The first thing that a stream says which cannot go on where it was is `reset`, with the id to come back with."""
    await till.sell()
    elsewhere = REQUEST.replace(b"Last-Event-ID: 0", b"Last-Event-ID: 1764000000-1")
    async with listening(await serve(**deps), elsewhere) as reader:
        await reader.readuntil(b": mcfd\n\n")
        result = await reader.readuntil(b"\n\n")
    assert b"id: 1\nevent: reset\ndata: {" in result
    assert b'"reason":"restored"' in result


@pytest.mark.usefixtures("quick_beats")
async def test_a_quiet_stream_beats(serve: Serve, deps: dict[str, Any]) -> None:
    """A comment, so that both ends notice a dead connection, and clients need not know."""
    async with listening(await serve(**deps)) as reader:
        await reader.readuntil(b": mcfd\n\n")
        for _ in range(3):
            await reader.readuntil(b"\n:\n\n")


async def test_a_look_at_the_stream_is_over_with_its_headers(serve: Serve, deps: dict[str, Any]) -> None:
    """HEAD: the next request on the same connection, as that of another till behind HAProxy, has its answer."""
    look, deps["event_streams"] = REQUEST.replace(b"GET", b"HEAD"), ConcurrencyLimit(3)
    async with listening(await serve(**deps), look + look + REQUEST) as reader:
        for _ in range(2):
            assert b" 200 OK" in await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b": mcfd\n\n")


async def test_a_stream_ends_properly_at_the_stop(serve: Serve, deps: dict[str, Any]) -> None:
    """With the last chunk: its reader knows that nothing was cut off."""
    stopping = asyncio.Event()
    async with listening(await serve(**deps, stopping=stopping)) as reader:
        await reader.readuntil(b": mcfd\n\n")
        stopping.set()
        assert await reader.readuntil(b"0\r\n\r\n")


@pytest.mark.usefixtures("quick_beats")
async def test_what_was_written_without_notifying_is_found(serve: Serve, deps: dict[str, Any], till: Till) -> None:
    """A command of the command line writes to the ledger beside the daemon: it is sent with the next beat."""
    async with listening(await serve(**deps)) as reader:
        await reader.readuntil(b": mcfd\n\n")
        await till.sell()
        await reader.readuntil(b"event: cert.issued")


async def test_a_reader_that_does_not_read_is_cut(
    serve: Serve, deps: dict[str, Any], till: Till, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not waited for: its connection ends, its place is free, and nothing has piled up for it meanwhile."""
    tamper(tmp_path / "ledger.sqlite3", MANY, till.book.id, "x" * 3000)
    monkeypatch.setattr("daemon.api.http.answers.WRITE_SECONDS", 0.3)
    served: Served = await serve(**deps)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, limit=1024)
    try:
        writer.write(REQUEST)
        places = deps["event_streams"]
        await until(lambda: places._taken)
        await until(lambda: not places._taken)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(9_000_000)
    finally:
        writer.close()
