"""Lines and machines that misbehave, each as a plan of the simulator; and a till that does what tills do: it asks again.

Durations are for the quick timers of `memory_shop`; `slow_down` stretches them.
"""

import asyncio
import re
from collections.abc import Mapping

from support.memory_shop import MemoryShop

from daemon.core.errors import MachineError, StorageFull
from daemon.core.ledger.attempt import Record
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import book_state

FAMILY: Mapping[str, str] = {
    "requests and replies dropped": "drop-request=4%,drop-reply=4%",
    "bits flipped": "flip-request=4%,flip-reply=4%",
    "replies in pieces": "split=30%",
    "replies doubled": "double=20%",
    "replies late": "late:0.06=4%",
    "38h answered after the deadline": "late:0.6@38=20%",
    "38h executed after the deadline": "slow:0.5@38=20%",
    "stale replies of another SEQ or command": "stale-seq=15%,stale-cmd=15%",
    "NAK": "nak=10%",
    "SYN storms": "syn-storm:0.1=4%",
    "noise between frames": "noise=20%",
    "silences": "silent:0.2=1%",
    "the cable pulled": "unplug-before:0.05=1%,unplug:0.05=1%,unplug-after:0.05=1%",
    "the cable pulled at 38h": "unplug-before:0.05@38=15%,unplug:0.05@38=15%,unplug-after:0.05@38=15%",
    "power cut": "cut-before:0.05=1%,cut-executed:0.05=1%,cut-after:0.05=1%",
    "power cut at 38h": "cut-before:0.05@38=15%,cut-executed:0.05@38=15%,cut-after:0.05@38=15%",
    "rebooted at once": "cut-before:0=2%,cut-executed:0=2%",
    "the open invoice lost": "lose-invoice=3%",
    "rubbish in good frames": "nonsense=2%",
    "all of it": (
        "spoil=2%,late:0.06=1%,late:0.6@38=3%,silent:0.2=0.3%,unplug:0.05=0.3%,unplug:0.05@38=3%,cut-before:0.05=0.3%,"
        "cut-executed:0.05@38=3%,lose-invoice=0.5%,nonsense=0.5%,nonsense@38=2%"
    ),
}

RETRY = 0.01


def slow_down(plan: str, factor: float) -> str:
    """The same for timers that are so many times as long."""
    return re.sub(r":([0-9.]+)", lambda match: f":{float(match[1]) * factor:g}", plan)


async def certify_stubbornly(shop: MemoryShop, number: str, *prices: int) -> Record:
    """As a till whose user wants a receipt: the same request with the same key until it has an answer."""
    while True:
        try:
            return (await shop.certify(number, *prices, key=f"key of {number}")).value
        except (MachineError, StorageFull):  # 503 and 507: a disk that stands still for five seconds too
            await asyncio.sleep(RETRY)


async def sell(shop: MemoryShop, count: int, tills: int, first: int = 0) -> dict[str, Record]:
    """`tills` at once, `count` invoices together, of four items each, numbered from `first`."""
    answers: dict[str, Record] = {}

    async def till(at: int) -> None:
        for each in range(first + at, first + count, tills):
            answers[f"F-{each}"] = await certify_stubbornly(shop, f"F-{each}", *range(100 + each, 104 + each))

    await asyncio.gather(*(till(at) for at in range(tills)))
    return answers


async def close_stubbornly(shop: MemoryShop, key: str = "Z") -> tuple[int, int, int]:
    """Number of certifications, unexplained ones, total."""
    while True:
        try:
            closure = (await shop.close_period(key)).value
        except (MachineError, StorageFull):
            await asyncio.sleep(RETRY)
        else:
            return closure.certs_count, closure.unexplained, closure.total_ttc


async def nothing_lost_nothing_doubled(shop: MemoryShop, answers: Mapping[str, Record]) -> None:
    """Every till has its own code; the ledger is the machine's log, in its order; counters agree."""
    machine = [(entry.number, entry.code, entry.total, entry.tc) for entry in shop.on_machine]
    ledger = [(r.number, r.code, r.total_ttc, r.counters.tc if r.counters else 0) for r in await shop.certified()]
    assert ledger == machine
    assert {number: record.code for number, record in answers.items()} == {number: code for number, code, *_ in machine}
    assert len(machine) == len(answers)
    state = shop.store.ledger.peek(book_state, shop.worker.book)
    assert (state.counters.tc, state.counters.fvc, state.counters.frc) == shop.counters
    assert (state.attention, state.unexplained) == ("", 0)
    assert not shop.store.ledger.peek(attempts.unfinished, shop.worker.book)
