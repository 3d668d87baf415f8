"""One end-to-end test over a family of hostile lines: whatever the line does, each invoice is certified once, and the till has it."""

import asyncio
import random
from pathlib import Path

import pytest
from support.hostile import FAMILY, close_stubbornly, nothing_lost_nothing_doubled, sell
from support.memory_shop import MemoryShop, quick

from daemon.store.maintenance.verify import verify

pytestmark = pytest.mark.quick_timers

INVOICES = 30
TILLS = 3


async def one_line(ledger: Path, line: str, plan: str, seed: int) -> None:
    try:
        async with MemoryShop(ledger, faults=plan, seed=seed, timers=quick()) as shop:
            answers = await sell(shop, INVOICES, TILLS)
            while not shop.session.plan.struck:  # the dice of a rare fault may spare so few invoices
                answers |= await sell(shop, INVOICES, TILLS, first=len(answers))
            assert await close_stubbornly(shop) == (len(answers), 0, sum(r.total_ttc for r in answers.values()))
            await shop.connected()
            await nothing_lost_nothing_doubled(shop, answers)
        assert verify(ledger).clean
    except BaseException as error:
        error.add_note(f"over the line {line!r}, seed {seed}")
        raise


@pytest.mark.long
async def test_every_invoice_once_over_every_hostile_line(tmp_path: Path) -> None:
    """Three tills at once on each line, then a Z; all lines beside each other, each with its own machine and ledger."""
    seeds = random.SystemRandom()
    async with asyncio.TaskGroup() as lines:
        for at, (line, plan) in enumerate(FAMILY.items()):
            lines.create_task(one_line(tmp_path / str(at), line, plan, seeds.randrange(10**6)))


@pytest.mark.long
async def test_a_thousand_invoices_over_a_line_that_spoils_three_frames_in_a_hundred(tmp_path: Path) -> None:
    """All right, none twice."""
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")  # noqa: T201  shown when the test fails
    async with MemoryShop(tmp_path / "ledger", faults="spoil=3%", seed=seed, timers=quick(0.4)) as shop:
        answers = await sell(shop, 1000, 4)
        assert await close_stubbornly(shop) == (1000, 0, sum(r.total_ttc for r in answers.values()))
        await nothing_lost_nothing_doubled(shop, answers)
    assert verify(tmp_path / "ledger").clean
    assert sum(shop.session.plan.struck.values()) > 300
