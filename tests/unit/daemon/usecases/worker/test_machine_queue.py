import asyncio
from functools import partial
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.core.errors import MachineBusy
from daemon.usecases.worker.machine_queue import MachineQueue


def _soon() -> float:
    return asyncio.get_running_loop().time() + 5


async def test_turns_come_in_the_order_of_joining():
    """First come, first served: the entry that joined first has the machine first, one at a time."""
    queue, order = MachineQueue(999), []

    async def work(name: int) -> None:
        with queue.join() as entry:
            await entry.wait_turn(_soon())
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(name) for name in range(20)))
    assert order == list(range(20))
    assert len(queue) == 0


async def test_a_full_line_refuses_at_once():
    """Beyond the limit nobody waits: MachineBusy, and the line is as it was. It is empty when the last has left: a stop waits for the one at the machine and for those who
    wait."""
    queue = MachineQueue(limit=1)
    entries = [queue.join(), queue.join()]
    with pytest.raises(MachineBusy):
        queue.join()
    assert len(queue) == 2
    empty = asyncio.ensure_future(queue.drained())
    for entry in entries:
        await asyncio.sleep(0)
        assert not empty.done()
        entry.leave()
    await empty


async def test_patience_ends_and_the_place_is_given_up():
    """Who waits longer than the deadline is told so, and those behind move up."""
    queue = MachineQueue(999)
    first, second, third = queue.join(), queue.join(), queue.join()
    with pytest.raises(MachineBusy):
        await second.wait_turn(asyncio.get_running_loop().time() + 0.01)
    second.leave()
    first.leave()
    await third.wait_turn(_soon())
    third.leave()


async def test_only_a_few_prepare_ahead():
    """`ahead` of those in line may write their intent before their turn; the next ones when they have moved up; once each."""
    queue, near = MachineQueue(999, ahead=2), []
    tickets = [queue.join(partial(near.append, name)) for name in range(4)]
    assert near == [0, 1]
    tickets[0].leave()
    assert near == [0, 1, 2]
    for entry in tickets[1:]:
        entry.leave()
    assert near == [0, 1, 2, 3]


@given(st.lists(st.integers(-1, 5), max_size=40), st.integers(1, 4))
def test_whoever_joins_and_leaves_the_intents_are_in_the_order_of_the_turns(steps: list[int], ahead: int) -> None:
    """An intent that overtook the one before it was taken, after a crash, for the one that had been on the line: certified twice (seed 3101491)."""

    async def history() -> None:
        queue, near, waiting, names = MachineQueue(999, ahead=ahead), [], [], count()
        for step in steps:
            if step < 0:
                waiting.append(queue.join(partial(near.append, next(names))))
            elif step < len(waiting):
                waiting.pop(step).leave()
            assert near == sorted(near)
        for entry in waiting:
            entry.leave()

    asyncio.run(history())


async def test_who_is_sent_away_at_a_stop_prepares_nothing():
    """No intent is begun that nobody will bring to its end."""
    queue, near = MachineQueue(999, ahead=1), []
    holder, waiter = queue.join(), queue.join(partial(near.append, "waiter"))
    queue.close("stopping")
    holder.leave()
    waiter.leave()
    assert near == []


async def test_closing_lets_the_holder_finish_and_sends_the_others_away():
    """At the stop the one at the machine keeps its turn; those who wait get MachineBusy, and so does each new one."""
    queue = MachineQueue(999)
    holder, waiter = queue.join(), queue.join()
    queue.close("stopping")
    await holder.wait_turn(_soon())
    with pytest.raises(MachineBusy, match="stopping"):
        await waiter.wait_turn(_soon())
    for comes in (queue.join, queue.join_first):
        with pytest.raises(MachineBusy, match="stopping"):
            comes()
    waiter.leave()
    holder.leave()
    await queue.drained()


@pytest.mark.parametrize("on_hold", [True, False])
async def test_who_asks_what_became_of_an_invoice_goes_first(on_hold: bool):
    """Held turns, while the machine is away, are given to `join_first` alone, before all who wait; they go on in order once released. No holder is interrupted: one that has a turn
    finishes, then the first comes, then the others."""
    queue = MachineQueue(999)
    if on_hold:
        queue.pause()
    one, two = queue.join(), queue.join()
    first = queue.join_first()
    turns = lambda: [first.turn.done(), one.turn.done(), two.turn.done()]  # noqa: E731  a look
    assert turns() == [on_hold, not on_hold, False]
    if on_hold:
        queue.release()
        assert not one.turn.done()
        first.leave()
        assert turns()[1:] == [True, False]
        one.leave()
    else:
        one.leave()
        assert (first.turn.done(), two.turn.done()) == (True, False)
        first.leave()
    assert two.turn.done()
    two.leave()


async def test_a_turn_that_cannot_be_used_is_given_back():
    """The machine went away in between: the place is kept, and the turn comes again."""
    queue = MachineQueue(999)
    one = queue.join()
    queue.pause()
    one.step_back()
    assert not one.turn.done()
    queue.release()
    await one.wait_turn(_soon())
    queue.close("stopping")
    one.step_back()
    with pytest.raises(MachineBusy, match="stopping"):
        await one.wait_turn(_soon())
    one.leave()
