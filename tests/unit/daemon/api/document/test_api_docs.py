"""What is drawn for whoever looks at `/schema`."""

from __future__ import annotations

import asyncio
from functools import partial

from daemon.api.document.docs import DrawnOnce


async def test_what_many_ask_for_at_once_is_drawn_once() -> None:
    """Two hundred strangers who asked for the document of a daemon just started took a thread each to draw it."""
    drawn: list[None] = []

    def draw() -> bytes:
        drawn.append(None)
        return b"{}"

    document = DrawnOnce(draw)
    assert await asyncio.gather(*(document.get() for _ in range(20))) == [b"{}"] * 20
    assert len(drawn) == 1


async def test_what_is_drawn_from_another_takes_it_as_it_is() -> None:
    """The collection is made of the document that is there, which is not drawn a second time for it."""
    drawn: list[str] = []

    def draw(name: str, *made_of: bytes) -> bytes:
        drawn.append(name)
        return b"".join((name.encode(), *made_of))

    document = DrawnOnce(partial(draw, "a"))
    collection = DrawnOnce(partial(draw, "b"), document)
    assert await asyncio.gather(collection.get(), document.get(), collection.get()) == [b"ba", b"a", b"ba"]
    assert drawn == ["a", "b"]
