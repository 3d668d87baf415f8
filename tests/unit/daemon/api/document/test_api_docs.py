"""What is drawn for whoever looks at `/schema`."""

from __future__ import annotations

import asyncio

from daemon.api.document.openapi import DrawnOnce


async def test_what_many_ask_for_at_once_is_drawn_once() -> None:
    """Two hundred strangers who asked for the document of a daemon just started took a thread each to draw it."""
    drawn: list[None] = []

    def draw() -> bytes:
        drawn.append(None)
        return b"{}"

    document = DrawnOnce(draw)
    assert await asyncio.gather(*(document.get() for _ in range(20))) == [b"{}"] * 20
    assert len(drawn) == 1
