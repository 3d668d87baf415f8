"""Answers that go on: their end, by either side, and how many there may be."""

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
    """A failure in the middle leaves it without its end; before the first piece it is a problem. The place is given back."""
    places = ConcurrencyLimit(1)
    whole, half, none = [Peer() for _ in range(3)]
    await stream(Source(b"a"), place=places.take("a"))(SCOPE, whole.receive, whole.send)
    with capture_logs() as logs:
        source = Source(b"a", trouble=StorageFull("gone"))
        await stream(source, place=places.take("a"))(SCOPE, half.receive, half.send)
    assert logs == [{"event": "stream.broken_off", "reason": "gone", "log_level": "error"}]
    with pytest.raises(NotFound):
        await stream(Source(trouble=NotFound("x")), place=places.take("a"))(SCOPE, none.receive, none.send)
    with places.take("a"):
        assert (whole.body, whole.ended) == (b"a", True)
        assert (half.body, half.ended) == (b"a", False)
        assert none.sent == []


@pytest.mark.parametrize(("by_client", "endless"), [(False, True), (False, False), (True, False)])
async def test_the_stop_or_the_client_ends_what_would_go_on(by_client: bool, endless: bool) -> None:
    """At the stop a stream of events ends properly, a file that is not whole by breaking it off; a client that goes away leaves nobody working for it."""
    peer, source, stopping = Peer(), Source(b"a", endless=True), asyncio.Event()
    answer = asyncio.create_task(stream(source, stopping, endless=endless)(SCOPE, peer.receive, peer.send))
    await until(lambda: peer.body)
    (peer.gone if by_client else stopping).set()
    await answer
    assert (peer.ended, source.closed) == (endless, True)


async def test_a_key_has_so_many_places() -> None:
    """The one too many gets an error with a delay; a place that was left can be taken."""
    places = ConcurrencyLimit(2)
    with places.take("a"), places.take("b"), places.take("a"):
        with pytest.raises(TooManyRequests) as caught, places.take("a"):
            pass
        assert caught.value.retry_after > 0
    with places.take("a"), places.take("a"):
        pass
