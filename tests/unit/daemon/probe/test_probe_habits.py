"""The probe against a simulated machine of every habit: its table says what was set, and nothing else."""

from __future__ import annotations

import asyncio
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
    "close_prefix": ({"close_prefix": True}, {"certification"}),
    "close_number": ({"close_number": True}, set()),
    "plain_taxpayer": ({"plain_taxpayer": True}, set()),
    "fc_per_type": ({"fc_per_type": True}, {"fc"}),
    "fvc_local": ({"fvc_local": True}, {"counters"}),
    "odd_types": ({"odd_types": True}, {"state.type", "types"}),
    "no_codes": ({"no_codes": True}, {"state.code"}),
    "vat_per_line": ({"vat_per_line": True}, {"vat_per_line"}),
    "groups_without_vat": ({"groups_without_vat": True}, {"group_totals"}),
    "untaxed_specific": ({"untaxed_specific": True}, {"specific_tax_ht"}),
    "untold_specific": ({"untold_specific": True}, {"specific_tax"}),
    "full_customer": ({"full_customer": True}, {"walk_in"}),
    "whole_close": ({"whole_close": True}, {"close_total"}),
    "echo": ({"echo": True}, {"echo"}),
    "up": ({"vat": "up"}, {"vat_rounding"}),
    "down": ({"vat": "down"}, {"vat_rounding"}),
    "cents": ({"vat": "cents"}, {"subtotal", "vat_rounding"}),
    "decimals": ({"numbers": "decimals"}, {"state.amount", "subtotal"}),
    "comma": ({"numbers": "comma"}, {"groups", "item.reply", "state.fields", "state.rates", "subtotal"}),
    "spaces": ({"numbers": "spaces"}, {"state.amount", "subtotal"}),
    "zeros": ({"numbers": "zeros"}, {"state.amount", "subtotal"}),
    "empty": ({"numbers": "empty"}, {"state.rates", "subtotal"}),
    "padded": ({"texts": "padded"}, {"last_number", "state.ifu"}),
    "capitals": ({"texts": "capitals"}, {"last_number", "same_number"}),
    "dated": ({"times": "dated"}, {"state.last", "state.time"}),
    "fewer": ({"fields": "fewer"}, {"item.reply", "open", "state.fields", "subtotal"}),
    "more": (
        {"fields": "more"},
        {"certification", "item.reply", "open", "server", "state.fields", "state.rates", "subtotal"},
    ),
    "cp1252": ({"code_page": "cp1252"}, {"taxpayer"}),
    "name_most": ({"name_most": 40}, {"name"}),
    "halves": ({"halves": 0.12}, {"reply_gap"}),
    "wake": ({"wake": 1.2}, {"reply_time"}),
    "clock_offset": ({"clock_offset": 3600.0}, {"clock"}),
    "pending": ({"credit_check": 0.3}, set()),
    "silent": ({"credit_check": 0.3, "credit_style": "silent"}, set()),
    "syn": ({"credit_check": 0.3, "credit_style": "syn"}, set()),
}
SETTINGS = {
    "full_customer": {"habits.walk_in": "fields"},
    "whole_close": {"habits.close_total": "whole"},
    "untaxed_specific": {"habits.specific_tax_ht": "folded"},
    "cp1252": {"habits.code_page": "cp1252"},
    "name_most": {"habits.name_bytes": 40},
}
SHAPES = {"comma", "fewer", "more", "padded", "capitals", "decimals", "zeros", "spaces", "empty", "cents", "cp1252"}
"""Each rewrites what others are seen in: a pair of them shows more than its two parts, or less."""
SLOW = ("halves", "wake")
"""Seen by reading alone."""
PAIRS = 40


async def test_each_habit_is_told_and_nothing_else(monkeypatch) -> None:
    """Whatever a machine does otherwise stands in the table as contradicted, and only that; the settings follow from it."""
    probed = Probed(monkeypatch)
    slow = {name: HABITS[name][0] for name in SLOW}
    others = {name: options for name, (options, _) in HABITS.items() if name not in SLOW}
    by_reading, by_certifying = await asyncio.gather(
        probed.probe_each(slow), probed.probe_each(others, certifying=True, real=True)
    )
    results = by_reading | by_certifying
    assert {name: contradicted(result) for name, result in results.items()} == {
        name: expected for name, (_, expected) in HABITS.items()
    }
    assert [result.broken_off for result in results.values()] == [""] * len(HABITS)
    asked = {name: result.settings for name, result in by_certifying.items()}
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
        {f"{one} {other}": {**HABITS[one][0], **HABITS[other][0]} for one, other in chosen}, certifying=True, real=True
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
