"""Small writes of one turn leave together, in the order in which they came, and none is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from daemon.api.http.write_coalescing import LARGE, WriteCoalescing


class Wire:
    """What went out, packet by packet."""

    def __init__(self) -> None:
        self.said: list[bytes | str] = []
        self.closing = False

    def write(self, data: bytes) -> None:
        self.said.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.said.append("close")

    def write_eof(self) -> None:
        self.said.append("eof")

    def abort(self) -> None:
        self.said.append("abort")


def writing(wire: Any) -> WriteCoalescing:
    return WriteCoalescing(wire, asyncio.get_running_loop())


async def test_what_is_written_in_one_turn_is_one_packet() -> None:
    """With the next turn, once; what comes then is another one."""
    wire = Wire()
    transport = writing(wire)
    for data in (b"head", b"", b"body"):
        transport.write(data)
    assert wire.said == []
    await asyncio.sleep(0)
    assert wire.said == [b"headbody"]
    transport.write(b"more")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert wire.said == [b"headbody", b"more"]


@pytest.mark.parametrize(
    ("sizes", "packets"),
    [([1, LARGE - 1], [LARGE]), ([1, LARGE], [1, LARGE]), ([LARGE], [LARGE]), ([LARGE + 1], [LARGE + 1])],
)
async def test_what_is_large_overtakes_nothing(sizes: list[int], packets: list[int]) -> None:
    """What waits goes first, and what comes together to no more than the limit goes as one."""
    wire = Wire()
    transport = writing(wire)
    for size in sizes:
        transport.write(b"x" * size)
    await asyncio.sleep(0)
    assert [len(said) for said in wire.said] == packets


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (WriteCoalescing.close, [b"last", "close"]),
        (WriteCoalescing.write_eof, [b"last", "eof"]),
        (WriteCoalescing.abort, ["abort"]),
    ],
)
async def test_an_end_comes_after_what_was_written(
    end: Callable[[WriteCoalescing], None], said: list[bytes | str]
) -> None:
    """But for one that is cut off; and on a connection that has ended nothing is written."""
    wire = Wire()
    transport = writing(wire)
    transport.write(b"last")
    end(transport)
    assert wire.said == said
    wire.closing = True
    transport.write(b"too late")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert wire.said == said
