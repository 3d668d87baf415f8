"""Thread pool for blocking work (database, signatures), and batches of single items: while one transaction is written,
the next batch collects."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, ParamSpec, TypeVar

from headquarters.store.database import BadContent, StoreError
from headquarters.store.revision import StaleRing

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")
AT_ONCE = 500
THREADS = 4
ANSWER_SECONDS = 30.0
"""Longer than any lock timeout of the database."""


class Gatherer(Generic[T, R]):
    """Collects items for `take`, which processes a batch in one transaction and returns a result for each. Batches
    start at least `every` seconds apart; after a pause an item is taken at once."""

    def __init__(self, take: Callable[[Sequence[T]], Awaitable[Sequence[R]]], every: float = 0.0) -> None:
        self._take = take
        self._every = every
        self._waiting: asyncio.Queue[tuple[T, asyncio.Future[R]]] = asyncio.Queue(4 * AT_ONCE)

    async def add(self, one: T) -> R:
        """The item's result. Raises the errors of `take`, such as StaleRing and StoreError."""
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        await self._waiting.put((one, done))
        return await done

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        earliest = clock()
        while True:
            batch = [await self._waiting.get()]
            await asyncio.sleep(max(0.0, earliest - clock()))
            while len(batch) < AT_ONCE and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            # None after a full batch, and a short one after a single item.
            pause = 0.0 if len(batch) == AT_ONCE else self._every if len(batch) > 1 else self._every / 8
            earliest = clock() + pause
            await self._settle(batch)

    async def _settle(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            results = await self._take([one for one, _ in batch])
        except Exception as error:  # noqa: BLE001  # raised in the callers; the next batch is independent
            if len(batch) > 1 and (isinstance(error, BadContent) or not isinstance(error, StaleRing | StoreError)):
                for one in batch:  # one of them has a fault of its own, which holds up no other
                    await self._settle([one])
                return
            for _, done in batch:
                if not done.done():
                    done.set_exception(error)
            return
        for (_, done), result in zip(batch, results, strict=True):
            if not done.done():
                done.set_result(result)


class Threads:
    def __init__(self, count: int = THREADS) -> None:
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="hq")

    async def run(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Runs `work`; once started it completes even without its caller. Raises StoreError after a time limit, since
        a stopped database or a dead connection may raise no error."""
        return await self.run_for(ANSWER_SECONDS, work, *arguments, **named)

    async def run_for(self, seconds: float, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Like `run`, with another time limit."""
        done = asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(*arguments, **named))
        try:
            await asyncio.wait({done}, timeout=seconds)
            if done.done():
                return done.result()
        finally:
            done.cancel()  # cancels work that has not started
        raise StoreError("no answer in time")

    def close(self) -> None:
        self._executor.shutdown(wait=True)
