"""Answers that go on: their end, whoever brings it about, and how many there may be."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api import until

from daemon.api.access.throttle import ConcurrencyLimit
from daemon.api.http.answers import Stream
from daemon.api.refusals import TooManyRequests
from daemon.core.errors import NotFound, StorageFull

SCOPE: Any = {"type": "http"}


class Peer:
    """The other side of ASGI: what was sent, and when it goes away."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self._received = False

    async def receive(self) -> Any:
        if not self._received:
            self._received = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def ended(self) -> bool:
        return bool(self.sent) and self.sent[-1].get("more_body") is False


class Source:
    """Pieces, then `trouble` or an endless wait; `closed` tells that it was cleaned up."""

    def __init__(self, *pieces: bytes, trouble: Exception | None = None, endless: bool = False) -> None:
        self.pieces, self.trouble, self.endless = pieces, trouble, endless
        self.closed = False

    async def run(self) -> AsyncGenerator[bytes, None]:
        try:
            for piece in self.pieces:
                yield piece
            if self.trouble is not None:
                raise self.trouble
            if self.endless:
                await asyncio.Event().wait()
        finally:
            self.closed = True


def stream(source: Source, stopping: asyncio.Event | None = None, **options: Any) -> Stream:
    place = contextlib.nullcontext()
    return Stream(
        source.run(), media_type=b"text/csv", **{"place": place, "stopping": stopping or asyncio.Event(), **options}
    )


async def test_half_an_answer_does_not_pass_for_a_whole_one() -> None:
    """A ledger that fails in the middle leaves the answer without its end; the log says why."""
    peer, source = Peer(), Source(b"a", trouble=StorageFull("gone"))
    with capture_logs() as logs:
        await stream(source)(SCOPE, peer.receive, peer.send)
    assert (peer.body, peer.ended) == (b"a", False)
    assert logs == [{"event": "stream.broken_off", "reason": "gone", "log_level": "error"}]


@pytest.mark.parametrize("endless", [True, False])
async def test_the_stop_ends_what_would_go_on(endless: bool) -> None:
    """A stream of events properly, a file that is not whole by breaking it off."""
    peer, source, stopping = Peer(), Source(b"a", endless=True), asyncio.Event()
    answer = asyncio.create_task(stream(source, stopping, endless=endless)(SCOPE, peer.receive, peer.send))
    await until(lambda: peer.body)
    stopping.set()
    await answer
    assert (peer.ended, source.closed) == (endless, True)


async def test_work_ends_with_the_client() -> None:
    """Whoever goes away leaves nobody working for it."""
    peer, source = Peer(), Source(b"a", endless=True)
    answer = asyncio.create_task(stream(source)(SCOPE, peer.receive, peer.send))
    await until(lambda: peer.body)
    peer.gone.set()
    await answer
    assert source.closed


async def test_a_key_has_so_many_places() -> None:
    """The one too many is told to come again later; a place that was left can be taken."""
    places = ConcurrencyLimit(2)
    with places.take("a"), places.take("b"), places.take("a"):
        with pytest.raises(TooManyRequests) as caught, places.take("a"):
            pass
        assert caught.value.retry_after > 0
    with places.take("a"), places.take("a"):
        pass


async def test_trouble_before_the_first_piece_is_an_answer() -> None:
    """Nothing was sent yet, so it can still be a problem with its status."""
    peer, source = Peer(), Source(trouble=NotFound("x"))
    with pytest.raises(NotFound):
        await stream(source)(SCOPE, peer.receive, peer.send)
    assert peer.sent == []


async def test_the_place_is_given_back_whatever_happens() -> None:
    """After trouble as after an end."""
    places, peer = ConcurrencyLimit(1), Peer()
    for source in (Source(trouble=StorageFull("x")), Source(b"a", trouble=StorageFull("x")), Source(b"a")):
        with contextlib.suppress(StorageFull):
            await stream(source, place=places.take("a"))(SCOPE, peer.receive, peer.send)
    with places.take("a"):
        pass
