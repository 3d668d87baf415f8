"""`mcfd verify` compares the take-overs of the ledger with the chains of both machines, and the year of a number with its invoice."""

import contextlib
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from support.ledgers.filled import filled
from support.ledgers.ledger import MINUTE, NIM, Till, invoice, opened, opened_till, query, tamper

from daemon.core.clock import DAY, HOUR, millis
from daemon.core.errors import MachineOffline
from daemon.core.ledger.take_over import TakeOverRefused
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.migrations import migrations
from daemon.store.tables.book.entries import repair_time

SPARE = "EL02000099-1"
DIFFERS = f"the take-overs of {NIM[:-2]} by {SPARE[:-2]} are not those of the chain"
STEP = next(step.number for step in migrations() if step.name == "take_over_times")


async def fill(path: Path) -> None:
    """A spare has stood for a machine, and does so again; a sale in each book is newer than the decisions that were taken meanwhile."""
    async with opened(path) as store:
        first, spare = await Till.of(store), await Till.of(store, SPARE)
        await sell(first, "F-1")
        await store.decisions.take_over(first.book, spare.book, reason="burnt", at=first.at - MINUTE)
        await sell(spare, "F-2")
        await store.decisions.take_back(first.book, reason="repaired", at=spare.at)
        await store.decisions.take_over(first.book, spare.book, reason="burnt again", at=first.at + HOUR)


original, path = filled(fill)


async def sell(till: Till, number: str) -> None:
    await till.certify(msgspec.structs.replace(invoice(number), number_year=2025))


async def test_a_ledger_with_take_overs_is_clean(path: Path) -> None:
    """An intent of the machine that a spare stands for is refused, also after an earlier check."""
    async with opened_till(path) as (_, till):
        with pytest.raises(MachineOffline):
            await till.begin(invoice("F-9"))
    assert verify(path).problems == ()


@pytest.mark.parametrize(
    ("change", "books"),
    [
        ("DELETE FROM take_over WHERE id = 1", {NIM, SPARE}),
        ("DELETE FROM take_over WHERE id = 2", {NIM, SPARE}),
        ("UPDATE take_over SET reason = 'stolen' WHERE id = 1", {NIM, SPARE}),
        ("UPDATE take_over SET ended_at = began_at WHERE id = 2", {NIM, SPARE}),
        ("UPDATE take_over SET began_at = began_at - 1 WHERE id = 1", {NIM}),
        ("UPDATE take_over SET ended_at = ended_at + 1 WHERE id = 1", {NIM}),
        ("INSERT INTO take_over (book_id, spare_id, began_at, ended_at, reason) VALUES (1, 2, 5, 6, '')", {NIM, SPARE}),
    ],
)
def test_a_take_over_that_is_changed_in_the_ledger_is_found(path: Path, change: str, books: set[str]) -> None:
    """By the chains of both machines; its times by that of the machine that is out of order."""
    tamper(path, change)
    problems = verify(path).problems
    assert set(problems) == {f"{nim} (live): {DIFFERS}" for nim in books}


async def test_a_spare_stands_for_one_machine_and_a_machine_has_one_spare(path: Path) -> None:
    """Also where the settings pair them otherwise meanwhile: refused until the machine is taken back."""
    async with opened(path) as store:
        first, spare, other = [(await Till.of(store, nim)).book for nim in (NIM, SPARE, "EL02000098-1")]
        for pair in ((first, spare), (first, other), (other, spare)):
            with pytest.raises(TakeOverRefused, match=f"{SPARE} stands for {NIM} already"):
                await store.decisions.take_over(*pair, reason="burnt", at=0)


def test_a_machine_and_its_spare_that_are_not_paired_any_more_are_found(path: Path) -> None:
    """A number of one would be free in the other."""
    tamper(path, "DELETE FROM machine_pair")
    assert [problem for problem in verify(path).problems if "not paired" in problem] != []


async def test_a_take_over_has_the_time_of_its_entry_also_after_a_repair(path: Path) -> None:
    """One that was decided while the box's clock was ahead is set right with the book of its machine."""
    async with opened(path) as store:
        first = (await Till.of(store)).book
        before = query(path, "SELECT began_at FROM take_over WHERE id = 2")[0][0]
        await store.decisions.write(repair_time, first, now=before - HOUR // 2, ahead=HOUR, reason="a wrong clock")
    ((after,),) = query(path, "SELECT began_at FROM take_over WHERE id = 2")
    assert before - HOUR <= after <= before - HOUR // 2
    assert verify(path).problems == ()


async def test_a_ledger_of_before_is_brought_up_to_the_times_of_the_chain(path: Path) -> None:
    """Where a decision was written down a moment after it was taken, the ledger had the earlier time."""
    times = query(path, "SELECT began_at, ended_at FROM take_over ORDER BY id")
    tamper(path, "UPDATE take_over SET began_at = began_at - 7, ended_at = ended_at - 3")
    assert verify(path).problems != ()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE api_key DROP COLUMN rate")
        connection.execute(f"PRAGMA user_version = {STEP - 1}")
    async with opened(path):
        pass
    assert query(path, "SELECT began_at, ended_at FROM take_over ORDER BY id") == times
    assert verify(path).problems == ()


YEARS = "UPDATE certification SET number_year = {year} WHERE number = 'F-1'"


@pytest.mark.parametrize("year", [0, 2024, 2026])
def test_the_year_of_a_number_is_that_of_its_invoice(path: Path, year: int) -> None:
    """Another one would let the number in again, or keep it for too long."""
    tamper(path, YEARS.format(year=year))
    (problems,) = verify(path).problems
    assert "record 1 (invoice 'F-1') holds its number in another year" in problems


NEW_YEAR = millis(datetime(2026, 1, 1, 8, tzinfo=UTC))


@pytest.mark.parametrize(
    ("at", "year", "is_clean"),
    [
        *((NEW_YEAR - 30 * DAY, year, is_clean) for year, is_clean in ((0, True), (2025, True), (2024, False))),
        *((NEW_YEAR, year, is_clean) for year, is_clean in ((2026, True), (2025, True), (2024, False))),
    ],
)
async def test_the_year_of_a_number_of_before_is_not_before_its_sale(
    tmp_path: Path, at: int, year: int, is_clean: bool
) -> None:
    """An invoice of 0.5 does not say it. On the first day it may be the year before, by the zone."""
    path = tmp_path / "ledger.sqlite3"
    async with opened_till(path) as (_, till):
        till.at = at
        await till.certify(invoice("F-1"))
    tamper(path, YEARS.format(year=year))
    assert verify(path).clean is is_clean


async def test_the_year_of_an_attempt_that_has_not_ended(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    async with opened_till(path) as (_, till):
        await till.begin(msgspec.structs.replace(invoice("F-1"), number_year=2025))
    assert verify(path).clean
    tamper(path, YEARS.format(year=0))
    assert "the attempt 'F-1', which has not ended, holds its number in another year" in verify(path).problems[0]
