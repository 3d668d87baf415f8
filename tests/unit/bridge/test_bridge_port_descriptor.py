"""Bytes over a descriptor without waiting, whatever device stands behind it: here one end of a pair of sockets."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from bridge import port as serial_port
from bridge.port import DescriptorPort


class Pair(DescriptorPort):
    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._ours.setblocking(False)
        self.theirs.setblocking(False)
        super().__init__(self._ours.fileno(), "the pair")
        self.losses: list[str] = []
        self.gone = asyncio.Event()
        self.attach(lambda _: None, self._on_loss)

    def _on_loss(self, error: Exception) -> None:
        self.losses.append(str(error))
        self.gone.set()

    def _release(self) -> None:
        self._ours.close()
        self.theirs.close()


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    with contextlib.closing(Pair()) as port:
        yield port


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long each was that the system was asked for."""
    calls: list[int] = []
    real = serial_port.os.write

    def write(fd: int, data: bytes) -> int:
        calls.append(len(data))
        return real(fd, data)

    monkeypatch.setattr(serial_port.os, "write", write)
    return calls


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_nothing_is_written_to_a_device_that_is_gone(pair: Pair, writes: list[int]) -> None:
    """Its end is told once, and what is said to it after that reaches nobody."""
    pair.theirs.close()
    await asyncio.wait_for(pair.gone.wait(), 60)
    pair.write(b"more")
    await turns()
    assert (writes, pair.losses) == ([], ["the pair vanished: the line hung up"])


async def test_what_a_full_device_does_not_take_is_written_later(pair: Pair, writes: list[int]) -> None:
    """All of it, from its first byte."""
    full = bytes(1 << 20)
    taken = pair._ours.send(full)
    pair.write(b"more")
    assert writes == [4]
    pair.theirs.recv(taken)
    await turns()
    assert len(writes) == 2
    rest = bytearray()
    with contextlib.suppress(BlockingIOError):
        while found := pair.theirs.recv(1 << 20):
            rest += found
    assert rest.endswith(b"\0more") or rest == b"more"


async def test_a_device_that_takes_no_more_is_gone(pair: Pair, writes: list[int]) -> None:
    """Although it hangs up on nobody: noticed when something is written, and told in the next turn."""
    pair.theirs.shutdown(socket.SHUT_RD)
    pair.write(b"first")
    assert pair.losses == []
    await turns()
    assert pair.losses == ["the pair vanished: [Errno 32] Broken pipe"]
    pair.write(b"second")
    assert writes == [5]
