"""The model does what the product does: drawn histories of it, on the real use cases, store, line and simulated machine."""

import random
from pathlib import Path

import pytest
from exhaustive.events import Event, happen
from exhaustive.model import Machine, World
from exhaustive.pieces import PIECES
from exhaustive.replay import Replay, expected
from exhaustive.search import Piece
from exhaustive.work import recover

pytestmark = pytest.mark.quick_timers

HISTORIES, LENGTH = 5, 8
"""Of each piece."""


def drawn(piece: Piece, draw: random.Random) -> tuple[World, list[tuple[Event, World]]]:
    """With a habit that the simulator has."""
    habits = [habit for habit in piece.habits if habit.local in ("", "EV") and not habit.silent]
    world = begun = recover(World(Machine(draw.choice(habits))))._replace(notes=())
    steps: list[tuple[Event, World]] = []
    while len(steps) < LENGTH:
        tried = ((event, happen(event, world)) for event in piece.events)
        event, after = draw.choice([(event, after) for event, after in tried if after is not None])
        world = after._replace(notes=())
        steps.append((event, world))
    return begun, steps


@pytest.mark.parametrize(
    "piece", [piece for piece in PIECES if "no last" not in piece.name], ids=lambda piece: piece.name
)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, HISTORIES))])
async def test_a_drawn_history_ends_alike(tmp_path: Path, piece: Piece, seed: int) -> None:
    """After every event: the machine's counters, the book's head, every attempt with its state and code, and whether an operator is asked."""
    begun, steps = drawn(piece, random.Random(f"{piece.name} {seed}"))
    habit = begun.machine.habit
    replay = Replay(tmp_path, habit)
    try:
        await replay.start()
        await replay.at_work.connected()
        for at, (event, world) in enumerate(steps, 1):
            await replay.happen(event, world)
            assert replay.picture() == expected(world), f"{habit}: {'; '.join(str(event) for event, _ in steps[:at])}"
    finally:
        await replay.die()
