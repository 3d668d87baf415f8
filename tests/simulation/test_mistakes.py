"""Whether the simulation would notice: each deliberate mistake is found (the rare ones by `make simulate MISTAKES=1`, which has more time)."""

import pytest
from simulation.drawn.script import SHORT_DAYS
from simulation.history import played
from simulation.mistakes import MISTAKES, found_by
from simulation.patched import Mistake, applied

SOON = 60
SEEDS = 300
QUICK = [mistake for mistake in MISTAKES if mistake.seed < SOON]
RARE = [mistake for mistake in MISTAKES if mistake.seed >= SHORT_DAYS]


@pytest.mark.long
@pytest.mark.parametrize("mistake", QUICK, ids=lambda mistake: mistake.name)
def test_a_deliberate_mistake_is_found(mistake: Mistake) -> None:
    """By the seed that found it last, or by one of the first three hundred: any change of ours may move it."""
    with applied(mistake):
        assert found_by([mistake.seed]) or found_by(range(SEEDS)), "make simulate MISTAKES=1 searches further"


@pytest.mark.long
@pytest.mark.parametrize("mistake", RARE, ids=lambda mistake: mistake.name)
def test_a_seed_that_once_failed_holds(mistake: Mistake) -> None:
    """By name, what only long days have found (`test_histories` plays the short ones): the seed that fails with the fault put back."""
    assert not played(mistake.seed).failure


NAMED = {
    880332: "an export in doubt while the machine's clock jumps: attention without a cause",
    378: "the power goes while a backup is made",
    465: "an export in doubt, and a report of the day at a machine that has no last invoice",
    544: "a stranger's invoice under our number on a day of late answers",
    449: "the power goes while the copy of a ledger takes its place after a failed sync",
    880536: "certified while the machine's clock had jumped, and entered from its paper",
    3100054: "begun before an activation that reset the counters, certified after it, and entered from its paper",
    3101491: "an intent overtakes the one before it, and a crash comes while that one is on the line",
    3101816: "two intents that become near at one moment are written in the other order",
    940462: "a new book beside two clocks that are ten years ahead",
}


@pytest.mark.long
@pytest.mark.parametrize("seed", NAMED, ids=NAMED.get)
def test_a_history_that_was_not_understood_holds(seed: int) -> None:
    assert not played(seed).failure


def test_every_mistake_can_be_made() -> None:
    """Each has its place in the source as it is now, also those that only the long search finds."""
    assert len(QUICK) > 20
    for mistake in MISTAKES:
        with applied(mistake):
            pass
