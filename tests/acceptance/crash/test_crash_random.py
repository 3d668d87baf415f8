"""One small round of `make torture` of each kind, so that it is known to work; the long ones are made by hand."""

import random
from pathlib import Path

import pytest
from support.nursery import Nursery
from torture.kill_round import kill_round
from torture.memory_round import Round

SEEDS = random.SystemRandom()


@pytest.mark.long
def test_a_round_of_kills(tmp_path: Path, nursery: Nursery) -> None:
    """A real daemon over a hostile line, killed at random."""
    seed = SEEDS.randrange(10**6)
    print(f"seed {seed}")  # noqa: T201  shown when the test fails
    kill_round(tmp_path, seed, nursery, kills=3)


async def test_a_round_in_memory(tmp_path: Path) -> None:
    """Everything wrong at once in one loop."""
    seed = SEEDS.randrange(10**6)
    print(f"seed {seed}")  # noqa: T201  shown when the test fails
    await Round(tmp_path, seed, invoices=12).run()
