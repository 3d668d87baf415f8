"""Histories that once went wrong, or that a shop has asked about: what the model makes of each is what the product does (faults X1 to X9, N1 to N7)."""

from pathlib import Path

import pytest
from exhaustive.events import Event, happen
from exhaustive.model import EXPORTS, USUAL, Habit, Machine, World
from exhaustive.oracle import wrong
from exhaustive.replay import Replay, expected
from exhaustive.work import recover

from daemon.store.maintenance.verify import verify

pytestmark = pytest.mark.quick_timers

CAPITALS = Habit(capitals=True)


def events(history: str) -> list[tuple[Event, bool]]:
    """`lost a1 FV + b1`: the machine has executed it, and b1 is begun behind it. After a `!` stands what must not be possible: a number is taken, or an operator is asked."""
    found = []
    for text in history.split(";"):
        what, *words = text.strip().removeprefix("!").split()
        number, kind, _, then = ("", *words, "", "") if what == "stranger" else (*words, "", "", "", "")[:4]
        found.append((Event(what, number, kind, "+" in words, then), not text.strip().startswith("!")))
    return found


# fmt: off
HISTORIES = {
    # A ledger that was put back.
    "X1 an export that the copy lacks is the machine's last number, which TC alone counts":
        (EXPORTS, "sale A FV; backup; sale E EV; restore; look; settle; sale B FV; !sale E EV"),
    "X3 the machine spells a number otherwise, and so does what adopt enters":
        (CAPITALS, "sale n1 FV; backup; sale n2 FV; sale n3 FV; restore; look; settle; sale x FV; !sale n3 FV"),
    "N3 what was begun in the copy was certified since, and another one too":
        (EXPORTS, "sale A FV; lost E1 FV +; backup; look; sale E2 FV; restore; look; !sale E1 FV; settle; !sale E1 FV; settle; !sale E1 FV; !sale E2 FV; sale B FV"),
    "N3 the same of exports":
        (EXPORTS, "sale A FV; lost E1 EV +; backup; look; sale E2 EV; restore; look; !sale E1 EV; settle; !sale E1 EV; settle; !sale E1 EV; !sale E2 EV; sale B FV"),
    "N2 begun in the copy, certified, activated anew":
        (CAPITALS, "lost f1 FV +; backup; look; activation; restore; look; settle; !sale F1 FV"),
    "N2 with a stranger":
        (CAPITALS, "lost f1 FV +; backup; look; activation; stranger FV; restore; look; settle; settle; !sale F1 FV"),
    "N2 with its memory erased":
        (CAPITALS, "lost f1 FV +; backup; look; reset; activation; restore; look; settle; settle; !sale F1 FV"),
    "N2 with its memory erased and a stranger":
        (CAPITALS, "lost f1 FV +; backup; look; reset; activation; stranger FV; restore; look; settle; settle; !sale F1 FV"),
    "nothing was certified since the copy, and its memory is kept: nobody is asked":
        (USUAL, "sale A FV; backup; activation; restore; look; sale B FV"),
    "the copy is from before the first sale, and the machine was reset since":
        (USUAL, "backup; sale F FV; reset; restore; look; activation; look; !sale F FV; settle"),
    # An answer that was lost.
    "X2 TC moved by two, and no counter says whether ours is one of them":
        (EXPORTS, "lost E EV +; stranger EV; look; settle; !sale E EV"),
    "N1 the counters are where they were by chance":
        (USUAL, "sale A FV; lost F FV +; reset; activation; stranger FV; look; settle"),
    "N1 a fresh machine is reset after its very first sale":
        (USUAL, "lost F FV +; reset; activation; look; settle"),
    "a machine that is not activated proves nothing":
        (USUAL, "lost F FV +; reset; look; !sale F FV; activation; look; !sale F FV; settle"),
    "N6 activated anew, and the last invoice is the one that the ledger has":
        (CAPITALS, "sale a1 FV; lost b1 FV -; activation; look; stranger FV; look; lost c1 FV -; activation; look; sale c1 FV"),
    "N5, X4 one number in two spellings":
        (CAPITALS, "refused a1 FV; sale A1 FV; !sale a1 FV; !sale A1 FV; daily_report; look; sale b1 FV"),
    "an export that moves TC alone is certified all the same":
        (EXPORTS, "lost E EV +; look; !sale E EV; sale F EV"),
    "what was never sent has no part in what is judged":
        (USUAL, "lost A FV + B; restart; !sale A FV; sale B FV"),
    # Decisions.
    "X9 a decision on a case that was decided meanwhile":
        (USUAL, "backup; sale A FV; restore; look; read_case; settle; sale B FV; !settle_as_read; close"),
    "a decision on another case than was shown":
        (USUAL, "lost A FV +; stranger FV; look; read_case; settle; lost B FV +; stranger FV; look; !settle_as_read; settle"),
    # A machine that is activated anew, for the same taxpayer or another (decision 33).
    "the same book goes on":
        (USUAL, "sale A FV; sale B FV; close; sale C FV; activation; look; !sale A FV; sale D FV; close; restart; sale E FV"),
    "the same book goes on, with counters from nought":
        (USUAL, "sale A FV; close; sale C FV; reset; activation; restart; !sale A FV; sale D FV; close; restart; sale E FV"),
    "nobody looks before the next Z, which waits for the new name":
        (USUAL, "sale A FV; activation; close; !sale A FV; close; sale B FV"),
    "a copy from before a sale":
        (USUAL, "backup; sale A FV; activation; restore; look; !sale B FV; settle; sale B FV; restart; sale C FV"),
    "a copy from before a sale, with counters from nought":
        (USUAL, "backup; sale A FV; reset; activation; restore; look; !sale B FV; settle; sale B FV; restart; sale C FV"),
    "counters from nought after a stranger":
        (USUAL, "stranger FV; look; reset; activation; restart; sale A FV"),
    "another taxpayer after a stranger, and the first one again":
        (USUAL, "stranger FV; look; reset; other_taxpayer; restart; sale A FV; reset; activation; restart; sale A FV; close"),
    "X7 asked between a reset and the activation for another taxpayer":
        (USUAL, "close; backup; reset; close; other_taxpayer; look; sale A FV; close; restore; reset; activation; look; !close; settle; close"),
    "X7 the same over restarts":
        (USUAL, "close; backup; reset; restart; close; restart; other_taxpayer; restart; sale A FV; close; restore; reset; activation; look; !close; settle; close"),
    "another taxpayer who sells nothing":
        (USUAL, "stranger FV; look; reset; other_taxpayer; restart; reset; activation; restart; sale A FV"),
    # A ledger that vanished.
    "each taxpayer goes on after its own last Z":
        (USUAL, "sale A FV; close; reset; other_taxpayer; look; close; close; vanish; look; settle; close; reset; activation; look; close"),
    "gone with three Z: nothing before an operator has looked, then on after its numbers":
        (USUAL, "sale A FV; close; close; close; sale B FV; vanish; look; !sale C FV; !close; restart; !sale C FV; settle; !sale B FV; sale C FV; close"),
    "gone, and the machine activated anew with nothing in its memory":
        (USUAL, "close; sale B FV; reset; activation; vanish; look; !sale B FV; settle; sale C FV; close"),
    "gone before its first Z":
        (USUAL, "sale A FV; vanish; look; !sale A FV; settle; !sale A FV; close"),
}
# fmt: on


@pytest.mark.parametrize(("habit", "history"), HISTORIES.values(), ids=HISTORIES)
async def test_a_history_goes_as_it_has_to(tmp_path: Path, habit: Habit, history: str) -> None:
    """`settle` is an operator who was asked; after each event nothing is wrong that the oracle looks for, and `verify` finds nothing."""
    world = recover(World(Machine(habit)))._replace(notes=())
    replay = Replay(tmp_path, habit)
    try:
        await replay.start()
        await replay.at_work.connected()
        for event, is_possible in events(history):
            after = happen(event, world)
            assert (after is not None) == is_possible, event
            assert after is None or not wrong(world, after), event
            world = (after or world)._replace(notes=())
            await replay.happen(event, world)
            assert replay.picture() == expected(world), event
            assert not replay.ledger.exists() or verify(replay.ledger).problems == (), event
    finally:
        await replay.die()
