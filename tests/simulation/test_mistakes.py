"""Whether the simulation would notice: each deliberate mistake is found."""

import pytest
from simulation.mistakes import MISTAKES, Mistake, found_by, made

SEEDS = 2000


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_deliberate_mistake_is_found(mistake: Mistake) -> None:
    """By the seed that found it last, or else by one of two thousand (then write that one down: the search is slow)."""
    with made(mistake):
        assert found_by([mistake.seed]) or found_by(range(SEEDS))
