"""Gaps in the tills' own series are reported by `mcfd verify`, as notes (SFE 2.18)."""

from pathlib import Path

import pytest
from support.ledgers.ledger import invoice, opened_till

from daemon.store.maintenance.verify import gaps_of, verify


async def test_verify_names_the_numbers_that_are_missing(path: Path) -> None:
    """Of a series that can be recognised; a refused number is missing, one that was certified later is not; no damage."""
    async with opened_till(path) as (_, till):
        for number in (*range(1, 12), *range(13, 30)):
            await till.certify(invoice(f"T1-2026-{number:05}"))
        await till.fail(invoice("T1-2026-00012"))
        for number in (7, 1000, 31, 90):
            await till.certify(invoice(f"X{number}"))
    found = verify(path)
    assert found.problems == ()
    (note,) = found.notes
    assert "'T1-2026-': 12" in str(note)
    async with opened_till(path) as (_, till):
        await till.certify(invoice("T1-2026-00012"))
    assert verify(path).notes == ()


@pytest.mark.parametrize(("missing", "more"), [((10, 11, 20, 30, 40, 50), ""), ((10, 11, 20, 30, 40, 50, 60), ", …")])
async def test_the_first_five_gaps_of_a_series_are_named(path: Path, missing: tuple[int, ...], more: str) -> None:
    """Of a gap of several numbers the first and the last."""
    async with opened_till(path) as (_, till):
        for number in {*range(1, 90)} - {*missing}:
            await till.certify(invoice(f"U{number:02}"))
    (note,) = verify(path).notes
    assert str(note).endswith(f": 10-11, 20, 30, 40, 50{more}")


@pytest.mark.parametrize(
    ("numbers", "gaps"),
    [
        (range(1, 20), []),
        ([*range(1, 20), 30], []),
        ([*range(1, 20), 21], [(20, 20)]),
        ([*range(1, 101), *range(104, 150)], [(101, 103)]),
        ([*range(1, 19), 20, 22], [(19, 19), (21, 21)]),
        ([*range(1, 18), 19, 21, 23], []),
        ([5] * 40, []),
        (range(1, 1000, 7), []),
    ],
)
def test_what_a_series_is(numbers: list[int], gaps: list[tuple[int, int]]) -> None:
    """Twenty numbers at the least, nine of ten of them there."""
    assert gaps_of([*numbers]) == gaps
