"""The probe against a simulated machine of every habit: its table says what was set, and nothing else."""

import itertools
from typing import Any

import pytest
from support.line.probed import Probed, contradicted

pytestmark = pytest.mark.quick_timers

HABITS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "none": ({}, set()),
    "short_nim": ({"short_nim": True}, {"state.nim"}),
    "dashed_codes": ({"dashed_codes": True}, {"state.code"}),
    "plain_taxpayer": ({"plain_taxpayer": True}, set()),
    "odd_types": ({"odd_types": True}, {"state.type"}),
    "no_codes": ({"no_codes": True}, {"state.code"}),
    "echo": ({"echo": True}, {"echo"}),
    "decimals": ({"numbers": "decimals"}, {"state.amount"}),
    "comma": ({"numbers": "comma"}, {"state.fields", "state.rates"}),
    "spaces": ({"numbers": "spaces"}, {"state.amount"}),
    "zeros": ({"numbers": "zeros"}, {"state.amount"}),
    "empty": ({"numbers": "empty"}, {"state.rates"}),
    "padded": ({"texts": "padded"}, {"state.ifu"}),
    "dated": ({"times": "dated"}, {"state.last", "state.time"}),
    "fewer": ({"fields": "fewer"}, {"state.fields"}),
    "more": (
        {"fields": "more"},
        {"server", "state.fields", "state.rates"},
    ),
    "cp1252": ({"code_page": "cp1252"}, {"taxpayer"}),
    "halves": ({"halves": 0.12}, {"reply_gap"}),
    "wake": ({"wake": 1.2}, {"reply_time"}),
    "clock_offset": ({"clock_offset": 3600.0}, {"clock"}),
}
SETTINGS = {"cp1252": {"habits.code_page": "cp1252"}}
SHAPES = {"comma", "fewer", "more", "padded", "decimals", "zeros", "spaces", "empty", "cp1252"}
"""Each rewrites what others are seen in: a pair of them shows more than its two parts, or less."""
SLOW = ("halves", "wake")


async def test_each_habit_is_told_and_nothing_else(monkeypatch) -> None:
    """Whatever a machine does otherwise stands in the table as contradicted, and only that; the settings follow from it."""
    results = await Probed(monkeypatch).probe_each({name: options for name, (options, _) in HABITS.items()})
    assert {name: contradicted(result) for name, result in results.items()} == {
        name: expected for name, (_, expected) in HABITS.items()
    }
    assert [result.broken_off for result in results.values()] == [""] * len(HABITS)
    queries = {name: result.settings for name, result in results.items() if name not in SLOW}
    assert {name: settings for name, settings in queries.items() if settings} == SETTINGS
    assert results["halves"].settings["habits.reply_gap"] >= 0.5
    assert results["wake"].settings["reply_timeout"] > 1.2


async def test_pairs_of_habits_are_told_too(monkeypatch) -> None:
    """Two at once are the two, where neither rewrites what the other is seen in."""
    names = [name for name in HABITS if name not in SHAPES and name not in ("none", *SLOW)]
    pairs = [
        (one, other)
        for one, other in itertools.combinations(names, 2)
        if not HABITS[one][0].keys() & HABITS[other][0].keys() and {one, other} != {"dashed_codes", "no_codes"}
    ]
    results = await Probed(monkeypatch).probe_each(
        {f"{one} {other}": {**HABITS[one][0], **HABITS[other][0]} for one, other in pairs}
    )
    assert {name: contradicted(result) for name, result in results.items()} == {
        f"{one} {other}": HABITS[one][1] | HABITS[other][1] for one, other in pairs
    }


async def test_reading_changes_nothing(monkeypatch) -> None:
    """Counters, last invoice, an open invoice: all as before, with every habit."""
    probed = Probed(monkeypatch)
    for options, _ in HABITS.values():
        machine = probed.sessions[probed.add(options)].machine
        machine.certify_foreign(total=500)
    before = {place: session.machine.snapshot() for place, session in probed.sessions.items()}
    places = list(probed.sessions)
    results = await probed.probe_places(places)
    assert {place: probed.sessions[place].machine.snapshot() for place in places} == before
    assert all("unchanged" not in contradicted(result) for result in results)
