"""The table of an attempt's phases: every way leads to the end, and nothing can pass an attempt that the machine may have certified."""

from pathlib import Path

import pytest

from daemon.core.ledger.phases import TABLE, NotInTheTable, Phase, PhaseMeaning, Step, after


def ways_from(phase: Phase, seen: frozenset[Phase] = frozenset()) -> set[Phase]:
    reached = {phase}
    for then in TABLE[phase].then.values():
        if then not in seen:
            reached |= ways_from(then, seen | {phase})
    return reached


def test_the_end_can_be_reached_from_everywhere() -> None:
    """No attempt is left for ever in a place that it cannot leave. 38h is sent by one with a durable intent alone (decision 29); from then to the durable end the machine's last invoice
    is the only witness, and whatever may have been certified blocks the next 38h. What this process brings to its end itself is left alone by `recover`."""
    assert all(Phase.ENDED in ways_from(phase) for phase in Phase)
    assert [phase for phase in Phase if Step.CLOSING in TABLE[phase].then] == [Phase.PREPARED]
    after_38h = ways_from(Phase.ON_THE_LINE) - {Phase.ENDED}
    assert {phase for phase in Phase if TABLE[phase].blocks} == after_38h
    assert {phase for phase in Phase if not TABLE[phase].ours} == {Phase.IN_DOUBT, Phase.ENDED}


def test_an_end_is_not_taken_back() -> None:
    """What has ended takes no step any more. An answer without 38h is a mistake, an error before any effect."""
    for step in Step:
        with pytest.raises(NotInTheTable, match=f"^an attempt that is 'ended' cannot take the step '{step.value}'$"):
            after(Phase.ENDED, step)
    with pytest.raises(NotInTheTable, match="prepared"):
        after(Phase.PREPARED, Step.ANSWERED)


def test_the_page_has_the_table_as_it_is() -> None:
    """docs/reliability.md shows what the code does."""
    page = (Path(__file__).parents[5] / "docs" / "reliability.md").read_text()
    assert "".join(row(phase, place) for phase, place in TABLE.items()) in page


def row(phase: Phase, place: PhaseMeaning) -> str:
    whose = "–" if phase is Phase.ENDED else "this process" if place.ours else "`recover`"
    ways = "; ".join(f"{step.value} → {then.value}" for step, then in place.then.items()) or "–"
    return f"| {phase.value} | {whose} | {'no' if place.blocks else 'yes'} | {ways} |\n"
