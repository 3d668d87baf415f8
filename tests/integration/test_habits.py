"""All habits on all paths (first-contact.fr.md): one day at a machine with each pair of habits. Exactly once holds in each."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.habits.habit_flow import Day, options_of
from support.habits.pairwise import pairwise

from simulator.machine.options import FirmwareHabits

pytestmark = pytest.mark.quick_timers

CHOICES: dict[str, tuple[Any, ...]] = {
    "vat": ("half-up", "up", "down", "cents"),
    "numbers": ("plain", "decimals", "comma", "spaces", "zeros", "empty"),
    "texts": ("plain", "padded", "capitals"),
    "times": ("digits", "dated"),
    "fields": ("known", "fewer", "more"),
    "code_page": ("utf-8", "cp1252"),
    "name_most": (0, 24),
    "halves": (0.0, 0.02),
    "wake": (0.0, 0.02),
    "clock_offset": (0.0, 3600.0, 315_360_000.0),
    "credit_style": ("pending", "silent", "syn"),
    "credit_check": (0.0, 0.02),
}
PARAMETERS = {name: CHOICES.get(name, (False, True)) for name in (*FirmwareHabits.__struct_fields__, *CHOICES)}
COMBINATIONS = pairwise(PARAMETERS)
TOGETHER = 4


def differing(row: dict[str, Any]) -> str:
    return " ".join(
        name if value is True else f"{name}={value}" for name, value in row.items() if value != PARAMETERS[name][0]
    )


@pytest.mark.parametrize(
    "first",
    [pytest.param(at, marks=[pytest.mark.long] * (at >= 2 * TOGETHER)) for at in range(0, len(COMBINATIONS), TOGETHER)],
)
async def test_a_day_at_machines_with_these_habits(tmp_path: Path, first: int) -> None:
    """Sales of each type, credit notes, Z, a refusal, lost answers, a kill, a stranger's invoice and an operator: every invoice is on the
    machine once and in the ledger once, with the machine's VAT, and `verify` finds nothing wrong. A few shops at a time: they mostly wait."""
    rows = COMBINATIONS[first : first + TOGETHER]
    ends = await asyncio.gather(*(day(tmp_path / str(at), row) for at, row in enumerate(rows)), return_exceptions=True)
    failed = [end for end in ends if isinstance(end, Exception)]
    if failed:
        raise ExceptionGroup("habits that do not work together", failed)


async def day(path: Path, row: dict[str, Any]) -> None:
    try:
        await Day(path, options_of(row)).run()
    except Exception as error:
        error.add_note(f"habits: {differing(row)}")
        raise
