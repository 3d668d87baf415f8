"""Work that blocks, on threads of its own: the database's waits, and signatures by the hundred."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 4


class Threads:
    def __init__(self, count: int = THREADS) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="hq")

    async def run(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """What is once begun goes on to its end, also when nobody waits for it any more."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(*arguments, **named))

    def close(self) -> None:
        self._executor.shutdown(wait=True)
