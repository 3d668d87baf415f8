"""The probe against a simulated machine of every habit: its table says what was set, and nothing else."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from support.line.probed import Probed, contradicted

pytestmark = pytest.mark.quick_timers

HABITS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "none": ({}, set()),
    "short_nim": ({"short_nim": True}, {"state.nim"}),
    "dashed_codes": ({"dashed_codes": True}, {"state.code"}),
    "close_prefix": ({"close_prefix": True}, set()),
    "close_number": ({"close_number": True}, set()),
    "plain_taxpayer": ({"plain_taxpayer": True}, set()),
    "fc_per_type": ({"fc_per_type": True}, set()),
    "fvc_local": ({"fvc_local": True}, set()),
    "odd_types": ({"odd_types": True}, {"state.type"}),
    "no_codes": ({"no_codes": True}, {"state.code"}),
    "vat_per_line": ({"vat_per_line": True}, set()),
    "groups_without_vat": ({"groups_without_vat": True}, set()),
    "untaxed_specific": ({"untaxed_specific": True}, set()),
    "untold_specific": ({"untold_specific": True}, set()),
    "full_customer": ({"full_customer": True}, set()),
    "whole_close": ({"whole_close": True}, set()),
    "echo": ({"echo": True}, {"echo"}),
    "up": ({"vat": "up"}, set()),
    "down": ({"vat": "down"}, set()),
    "cents": ({"vat": "cents"}, set()),
    "decimals": ({"numbers": "decimals"}, {"state.amount"}),
    "comma": ({"numbers": "comma"}, {"state.fields", "state.rates"}),
    "spaces": ({"numbers": "spaces"}, {"state.amount"}),
    "zeros": ({"numbers": "zeros"}, {"state.amount"}),
    "empty": ({"numbers": "empty"}, {"state.rates"}),
    "padded": ({"texts": "padded"}, {"state.ifu"}),
    "capitals": ({"texts": "capitals"}, set()),
    "dated": ({"times": "dated"}, {"state.last", "state.time"}),
    "fewer": ({"fields": "fewer"}, {"state.fields"}),
    "more": (
        {"fields": "more"},
        {"server", "state.fields", "state.rates"},
    ),
    "cp1252": ({"code_page": "cp1252"}, {"taxpayer"}),
    "name_most": ({"name_most": 40}, set()),
    "halves": ({"halves": 0.12}, {"reply_gap"}),
    "wake": ({"wake": 1.2}, {"reply_time"}),
    "clock_offset": ({"clock_offset": 3600.0}, {"clock"}),
    "pending": ({"credit_check": 0.3}, set()),
    "silent": ({"credit_check": 0.3, "credit_style": "silent"}, set()),
    "syn": ({"credit_check": 0.3, "credit_style": "syn"}, set()),
}
SETTINGS = {"cp1252": {"habits.code_page": "cp1252"}}
SHAPES = {"comma", "fewer", "more", "padded", "capitals", "decimals", "zeros", "spaces", "empty", "cents", "cp1252"}
"""Each rewrites what others are seen in: a pair of them shows more than its two parts, or less."""
SLOW = ("halves", "wake")
PAIRS = 40


async def test_each_habit_is_told_and_nothing_else(monkeypatch) -> None:
    """Whatever a machine does otherwise stands in the table as contradicted, and only that; the settings follow from it."""
    results = await Probed(monkeypatch).probe_each({name: options for name, (options, _) in HABITS.items()})
    assert {name: contradicted(result) for name, result in results.items()} == {
        name: expected for name, (_, expected) in HABITS.items()
    }
    assert [result.broken_off for result in results.values()] == [""] * len(HABITS)
    asked = {name: result.settings for name, result in results.items() if name not in SLOW}
    assert {name: settings for name, settings in asked.items() if settings} == SETTINGS
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
    chosen = random.Random(17).sample(pairs, PAIRS)
    results = await Probed(monkeypatch).probe_each(
        {f"{one} {other}": {**HABITS[one][0], **HABITS[other][0]} for one, other in chosen}
    )
    assert {name: contradicted(result) for name, result in results.items()} == {
        f"{one} {other}": HABITS[one][1] | HABITS[other][1] for one, other in chosen
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
