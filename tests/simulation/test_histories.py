"""The life of an attempt under everything that goes wrong in a shop, drawn from seeds (docs/reliability.md)."""

import gc

import pytest
from simulation.cut_down import cut_down
from simulation.drawn.events import in_words
from simulation.drawn.script import drawn
from simulation.history import play, played
from simulation.mistakes import MISTAKES
from simulation.patched import applied
from simulation.virtual_loop import VirtualLoop

SEEDS = 500
TOGETHER = 50
SOON = 50
"""So many seeds without the mark `long`."""
AGAIN = range(3)


def failure_of(seed: int) -> str:
    """Empty when everything held; else what did not, and how to see it again."""
    outcome = played(seed)
    if not outcome.failure:
        return ""
    script = drawn(seed)
    return f"{outcome.failure}\n{in_words(script, cut_down(script))}"


@pytest.mark.parametrize(
    "first", [pytest.param(first, marks=[pytest.mark.long] * (first >= SOON)) for first in range(0, SEEDS, TOGETHER)]
)
def test_nothing_is_lost_and_nothing_doubled(first: int) -> None:
    """Tills, closures, kills, power cuts, disks, clocks, lines, restores: what tills were told and what the ledger holds is what the machine did,
    once; and when it is over, everybody is served."""
    for seed in range(first, first + TOGETHER):
        failure = failure_of(seed)
        assert not failure, failure


@pytest.fixture
def collects(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector comes at other moments than usual: at each tenth turn of the loop."""
    usual = VirtualLoop._run_once

    def run_once(loop: VirtualLoop) -> None:
        if loop.turns % 10 == 0:
            gc.collect()
        usual(loop)

    gc.freeze()  # what the tests before have left would take too long
    monkeypatch.setattr(VirtualLoop, "_run_once", run_once)


@pytest.fixture
def once() -> list[str]:
    return [played(seed).fingerprint for seed in AGAIN]


def test_one_seed_is_one_history(once: list[str], collects: None) -> None:
    """Bit for bit: the same log lines, answers and commits at the same moments, whenever the garbage collector comes."""
    assert [played(seed).fingerprint for seed in AGAIN] == once


def test_a_history_that_fails_is_cut_down_and_can_be_seen_again() -> None:
    """What is printed is enough: the seed, and the few events that are needed."""
    mistake = next(mistake for mistake in MISTAKES if mistake.name == "what has no answer was certified")
    script = drawn(mistake.seed)
    with applied(mistake):
        indexes = cut_down(script)
        assert play(script.keeping(indexes)).failure
    assert len(indexes) < len(script.events)
    assert f"SEED={mistake.seed} KEEP={','.join(map(str, indexes))}" in in_words(script, indexes)
    assert not play(script.keeping(indexes)).failure
