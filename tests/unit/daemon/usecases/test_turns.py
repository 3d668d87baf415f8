import asyncio

import pytest

from daemon.core.errors import MachineBusy
from daemon.usecases.turns import Turns


def _soon() -> float:
    return asyncio.get_running_loop().time() + 5


async def test_turns_come_in_the_order_of_joining():
    """First come, first served: whoever joined first has the machine first, one at a time."""
    turns, order = Turns(), []

    async def work(name: int) -> None:
        with turns.join() as ticket:
            await ticket.wait_turn(_soon())
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(name) for name in range(20)))
    assert order == list(range(20))
    assert len(turns) == 0


async def test_a_full_line_refuses_at_once():
    """Beyond the limit nobody waits: MachineBusy, and the line is as it was."""
    turns = Turns(limit=1)
    with turns.join(), turns.join():
        with pytest.raises(MachineBusy):
            turns.join()
        assert len(turns) == 2


async def test_patience_ends_and_the_place_is_given_up():
    """Who waits longer than the deadline is told so, and those behind move up."""
    turns = Turns()
    first, second, third = turns.join(), turns.join(), turns.join()
    with pytest.raises(MachineBusy):
        await second.wait_turn(asyncio.get_running_loop().time() + 0.01)
    second.leave()
    first.leave()
    await third.wait_turn(_soon())
    third.leave()


async def test_only_a_few_prepare_ahead():
    """`ahead` of those in line may write their intent before their turn; the next ones when they have moved up."""
    turns = Turns(ahead=2)
    tickets = [turns.join() for _ in range(4)]
    assert [t.near.done() for t in tickets] == [True, True, False, False]
    tickets[0].leave()
    assert [t.near.done() for t in tickets[1:]] == [True, True, False]
    for ticket in tickets[1:]:
        ticket.leave()


async def test_closing_lets_the_holder_finish_and_sends_the_others_away():
    """At the stop the one at the machine keeps its turn; those who wait get MachineBusy, and so does whoever comes."""
    turns = Turns()
    holder, waiter = turns.join(), turns.join()
    turns.close("stopping")
    await holder.wait_turn(_soon())
    with pytest.raises(MachineBusy, match="stopping"):
        await waiter.wait_turn(_soon())
    with pytest.raises(MachineBusy, match="stopping"):
        turns.join()
    waiter.leave()
    holder.leave()
    await turns.drained()
