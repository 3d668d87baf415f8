"""Work that strangers can ask for and that costs much is done one after the other."""

import asyncio
import contextlib

import pytest

from common.turns import WAITING_OF_ONE, Busy, Turns, raise_if_cancelled


class Work:
    """Of each that has its turn, the name; it ends when the test says so."""

    def __init__(self, most: int = 3) -> None:
        self.turns = Turns(most)
        self.begun: list[str] = []
        self.goes_on = asyncio.Semaphore(0)

    async def one(self, name: str, network: str = "") -> None:
        async with self.turns.turn(network, is_trusted=name == "known"):
            self.begun.append(name)
            await self.goes_on.acquire()

    async def enter(self, name: str, network: str = "") -> asyncio.Task[None]:
        task = asyncio.create_task(self.one(name, network))
        await asyncio.sleep(0)
        return task


async def test_one_at_a_time_and_who_is_one_too_many_is_told() -> None:
    """Strangers fill their own places alone: who is known has room among any number of them. The turn after them is free again."""
    work = Work()
    tasks = [await work.enter(name) for name in ("a", "b", "c")]
    with pytest.raises(Busy):
        await work.one("d")
    tasks.append(await work.enter("known"))
    assert work.begun == ["a"]
    for _ in range(len(tasks) + 1):
        work.goes_on.release()
    await asyncio.gather(*tasks)
    await work.one("e")
    assert work.begun == ["a", "b", "c", "known", "e"]


async def test_one_address_has_no_more_than_its_places() -> None:
    """Another address still has one; the first has its places back once its work is done."""
    work = Work(most=10)
    tasks = [await work.enter(f"a{number}", "10.0.0.1") for number in range(WAITING_OF_ONE)]
    with pytest.raises(Busy):
        await work.one("one more", "10.0.0.1")
    tasks.append(await work.enter("b", "10.0.0.2"))
    for _ in range(len(tasks) + 1):
        work.goes_on.release()
    await asyncio.gather(*tasks)
    await work.one("again", "10.0.0.1")
    assert work.begun == ["a0", "a1", "b", "again"]


async def test_who_leaves_gives_the_turn_to_the_next() -> None:
    """While waiting, and at the very moment at which the turn came."""
    work = Work(most=10)
    first, second, third, fourth = [await work.enter(name) for name in ("a", "b", "c", "d")]
    second.cancel()
    first.cancel()
    await asyncio.wait([first, second])
    third.cancel()
    work.goes_on.release()
    await fourth
    assert work.begun[-1] == "d"
    assert "b" not in work.begun


async def test_a_cancellation_that_a_library_has_swallowed_is_heeded():
    """A loop that runs until it is cancelled ends in the round in which it was, as after a flush of nats-py."""

    async def rounds() -> None:
        while True:
            raise_if_cancelled()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    task = asyncio.create_task(rounds())
    await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    finished, _ = await asyncio.wait([task], timeout=20)
    assert finished
    assert task.cancelled()
