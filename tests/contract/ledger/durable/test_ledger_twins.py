"""A ledger of 0.1.0 that holds two spellings of a number, or a code twice: the upgrade takes it, says so, and lets no third one in."""

import contextlib
import sqlite3
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from support.ledgers.ledger import NIM, code_of, invoice, opened, opened_till, query

from daemon.core.events import CERTIFIED
from daemon.core.invoice.number import number_key
from daemon.core.ledger.attempt import Attempt, DuplicateInvoice, Outcome
from daemon.core.ledger.book import Book
from daemon.core.machine.state import Certified, FiscalCounters
from daemon.core.report.journal import Page
from daemon.store.maintenance.backup import backup
from daemon.store.maintenance.verify import verify
from daemon.store.sqlite.migrations import migrations
from daemon.store.tables.book import attempts
from daemon.store.tables.book.books import book_state
from daemon.store.tables.events import DEFAULT_DESTINATIONS, EventWriter
from daemon.store.tables.journal import find_code

NUMBERS = ("A1", "a1", "É-2", "e\N{COMBINING ACUTE ACCENT}-2", "B7")
STEP = next(step.number for step in migrations() if step.name == "exactly_once")


async def old_ledger(path: Path) -> None:
    """As 0.1.0 left it: each of these numbers certified, a1 with the code of A1 (fault X4), one more under way in two spellings."""
    async with opened_till(path) as (_, till):
        await till.sell()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for index in ("certification_key", "certification_code"):
            connection.execute(f"DROP INDEX {index}")
        book, events = Book(1, NIM, "live"), EventWriter(DEFAULT_DESTINATIONS, ())
        for count, number in enumerate((*NUMBERS, "c9", "C9"), 2):
            sale, counters = invoice(number), FiscalCounters(count, count, 0)
            attempt = attempts.begin(connection, book, Attempt(sale, counters, 1_765_000_100_000 + count))
            if number in NUMBERS:
                word = Certified(code_of(number.upper()), "20251206100000", "00084440Y", counters)
                outcome = Outcome(word, sale, sale.total_ttc, 1_765_000_100_000 + count)
                record = attempts.certify(connection, book, attempt, outcome)
                events.write(connection, book, CERTIFIED, record.ended_at, ref=record.id)
        by_content = ("entry_copy", "entry_report", "entry_act", "entry_calendar", "entry_outage", "entry_outage_ended")
        for index in ("certification_isf", *by_content):
            connection.execute(f"DROP INDEX {index}")
        for view in ("served_book", "shared_book", "take_over_of"):
            connection.execute(f"DROP VIEW {view}")
        for column in ("lane", "public_key", "rate"):
            connection.execute(f"ALTER TABLE api_key DROP COLUMN {column}")
        for table in ("letterhead", "deferred", "machine_pair", "take_over"):
            connection.execute(f"DROP TABLE {table}")
        for column in ("number_key", "twin", "isf", "number_year"):
            connection.execute(f"ALTER TABLE certification DROP COLUMN {column}")
        for column in ("seen", "lost_at"):
            connection.execute(f"ALTER TABLE book DROP COLUMN {column}")
        connection.execute("CREATE INDEX certification_code ON certification (book_id, code) WHERE code IS NOT NULL")
        connection.execute("DROP INDEX certification_number")
        stored = "WHERE state IN ('begun', 'certified', 'disputed')"
        connection.execute(f"CREATE UNIQUE INDEX certification_number ON certification (book_id, number) {stored}")
        connection.execute(f"PRAGMA user_version = {STEP - 1}")


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.sqlite3"
    await old_ledger(path)
    async with opened(path) as store:
        assert (store.ledger.peek(book_state, Book(1, NIM, "live"))).seen is None
    return path


async def test_each_keeps_its_place_and_none_comes_in(path: Path) -> None:
    """Each is found as it is spelled; any spelling is a duplicate, of what was certified first; a code is found once."""
    async with opened_till(path) as (store, till):
        for number in NUMBERS:
            record = store.ledger.peek(attempts.find_number, till.book, number)
            assert record.number == number
        for number, first in (("a1", "a1"), ("É-2", "É-2"), ("é-2", "É-2"), ("b7", "B7")):
            with pytest.raises(DuplicateInvoice) as caught:
                await till.begin(invoice(number))
            assert caught.value.record.number == first
        found = await store.journal.read(find_code, till.book, code_of("A1"))
        assert found.number == "A1"
        with_one = await store.journal.with_part(till.book, Page(0, 1 << 62, part="1"), AsyncMock())
        assert [record.number for record in with_one] == ["a1", "A1", "S-1"]
        assert [r.number for r in store.ledger.peek(attempts.unfinished, till.book)] == ["c9", "C9"]


async def test_verify_tells_of_them_and_a_backup_is_made(path: Path, tmp_path: Path) -> None:
    """They are no damage: what was written is what was written."""
    findings = verify(path)
    assert findings.problems == ()
    assert [("A1" in note, "code" in note) for note in findings.notes] == [
        (True, False),
        (False, False),
        (True, True),
    ]
    assert backup(path, tmp_path / "copy", at=1).clean


async def test_what_is_looked_for_under_another_number_is_found_by_verify(path: Path) -> None:
    """A key that does not fit its number would let the number in again."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE certification SET number_key = 'X' WHERE number = 'B7'")
    assert any("looked for under another number" in problem for problem in verify(path).problems)


def test_only_what_is_spelled_otherwise_has_a_key_of_its_own(path: Path) -> None:
    """Most numbers are digits and capitals: an upgrade does not write them again."""
    rows = query(path, "SELECT number, number_key, twin FROM certification ORDER BY id")
    assert [key for number, key, _ in rows if key is not None] == [
        number_key(number) for number, *_ in rows if number != number_key(number)
    ]
    assert {number: twin for number, _, twin in rows if twin} == {"a1": 3, NUMBERS[3]: 1, "C9": 1}
