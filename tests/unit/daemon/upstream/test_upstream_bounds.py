"""What is taken and sent at most, to the byte."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from daemon.upstream import https


async def test_an_answer_without_end_is_read_to_its_limit() -> None:
    """One piece beyond it, and no more."""
    given = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal given
        while given < 100:
            given += 1
            yield b"x" * 1024

    received = bytearray()
    answer: Any = SimpleNamespace(aiter_raw=pieces)
    await https._read(answer, received)
    assert (given, len(received)) == (https.ANSWER_LIMIT // 1024 + 1, https.ANSWER_LIMIT + 1024)
