"""What `mcfd verify` makes of rarer histories: activations, gaps, times repaired twice, what older versions wrote, a sandbox that was cut."""

import contextlib
import json
import sqlite3
from pathlib import Path

import msgspec
import pytest
from support.ledgers.ledger import MINUTE, NIM, Till, invoice, opened, tamper

from daemon.core.clock import DAY, HOUR
from daemon.core.errors import LedgerUnusable
from daemon.core.ledger import chain
from daemon.core.ledger.entries import RecordsLost
from daemon.core.ledger.tally import contribution
from daemon.core.machine.state import FiscalCounters
from daemon.store.maintenance import recompute, sandbox
from daemon.store.maintenance.verify import examine_shape, verify
from daemon.store.store import Store
from daemon.store.tables.book import entries, totals
from daemon.store.tables.book.entries import repair_time

SECOND, THIRD = "EL02000015-2", "EL02000015-3"


async def test_it_sees_the_ledger_as_it_was_when_it_began(
    store: Store, till: Till, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is sold, or damaged, while it reads is the next one's."""
    await till.sell()
    real = recompute.count_records

    def counted(connection: object) -> int:
        total = real(connection)  # type: ignore[arg-type]
        tamper(path, "UPDATE certification SET total_ttc = 1")
        return total

    with monkeypatch.context() as patch:
        patch.setattr("daemon.store.maintenance.verify.count_records", counted)
        assert verify(path).problems == ()
    assert verify(path).problems != ()


async def test_the_last_checkpoint_may_be_the_newest_record(
    till: Till, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is missed there too."""
    for module in (recompute, totals):
        monkeypatch.setattr(module, "STRIDE", 4)
    for _ in range(4):
        await till.sell()
    await till.store.ledger.aggregate(till.book)
    assert verify(path).problems == ()
    tamper(path, "DELETE FROM checkpoint")
    assert any("the checkpoint at record 4 is missing" in problem for problem in verify(path).problems)


async def test_each_z_and_each_sale_is_of_its_activation(store: Store, till: Till, path: Path) -> None:
    """Two of them, with a Z in each: the name in a Z is the one that the machine had."""
    for nim in (SECOND, THIRD, ""):
        await till.sell()
        await till.close()
        assert verify(path).problems == ()
        if nim:
            till.counters = FiscalCounters(0, 0, 0)
            till.book = await store.ledger.begin_epoch(till.book, till.state(), nim, at=till.at)
    tamper(path, "UPDATE certification SET epoch = 2 WHERE seq = 1")
    assert any("record 1 (invoice 'S-1') is not of the activation" in problem for problem in verify(path).problems)


@pytest.mark.parametrize(
    ("before", "after"),
    [('"first":3', '"first":2'), ('"first":3', '"first":4'), ('"last":3', '"last":2')],
)
async def test_a_gap_begins_after_the_last_z_and_has_a_number(
    store: Store, till: Till, path: Path, before: str, after: str
) -> None:
    """One that is a single number is sound; one that begins elsewhere, or ends before it begins, is reported."""
    for _ in range(2):
        await till.close()
    await store.decisions.set_last_z(till.book, 3)
    await till.close()
    assert verify(path).problems == ()
    tamper(path, "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB)", before, after)
    assert any("entry 1 does not begin after the last Z" in problem for problem in verify(path).problems)


async def test_a_book_whose_numbers_begin_with_a_gap_is_sound_before_its_first_tick(
    store: Store, till: Till, path: Path
) -> None:
    """Its ledger was lost, and its last Z said: the first sale is in no total yet. What stands there once it is, is compared."""
    await store.decisions.set_last_z(till.book, 3)
    await till.sell()
    assert verify(path).problems == ()
    await store.ledger.aggregate(till.book)
    assert verify(path).problems == ()
    tamper(path, "UPDATE total SET period_start = 0")
    assert any("the open period does not begin" in problem for problem in verify(path).problems)


async def test_a_repair_that_was_wrong_itself_is_repaired_too(store: Store, till: Till, path: Path) -> None:
    """Set right by a clock that was ahead as well: sales, cash and the first repair are all moved by the second one."""
    await till.sell()
    till.at += 3653 * DAY
    await till.sell()
    await till.move_cash()
    till.at -= 3653 * DAY - 5 * HOUR
    await store.decisions.write(repair_time, till.book, now=till.at, ahead=3653 * DAY, reason="wrong year")
    await till.sell()
    till.at -= 5 * HOUR - 10 * MINUTE
    await store.decisions.write(repair_time, till.book, now=till.at, ahead=5 * HOUR, reason="wrong hour")
    await till.sell()
    await till.close()
    assert verify(path).problems == ()


@pytest.mark.parametrize(("is_moved", "problem"), [(False, None), (True, "Z 1 reports another cash")])
async def test_a_z_of_a_version_that_knew_of_no_cash(
    store: Store, till: Till, path: Path, is_moved: bool, problem: str | None
) -> None:
    """It is sound where none was moved: it says nothing of it, and was chained without."""
    record = await till.sell()
    previous = record.hash
    if is_moved:
        await till.move_cash()
        previous = (await store.ledger.read(lambda each: each.execute("SELECT hash FROM entry").fetchone()))[0]
    closure = await till.close()
    body = json.loads(closure.body)
    del body["cash"]
    older = msgspec.structs.replace(closure, body=msgspec.json.encode(body))
    link = chain.closure_hash(previous, older)
    tamper(path, "UPDATE closure SET body = ?, hash = ?", older.body, link)
    tamper(path, "UPDATE book SET head = ?", link)
    problems = verify(path).problems
    assert len(problems) == (1 if problem else 0)
    assert all(str(problem) in each for each in problems)


async def test_an_entry_that_a_sandbox_let_go_of_and_kept_is_before_its_beginning(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest of all stays, so that no id is given twice: it is behind the book's start, for a start of the daemon as well."""
    monkeypatch.setattr(sandbox, "NEWEST", 3)
    till = await Till.of(store, mode="test")
    await till.move_cash()
    for _ in range(8):
        await till.sell()
    await store.ledger.aggregate(till.book)
    assert await store.retention.trim_sandbox(1 << 60, 0, rest=0)
    [(entry_id, after_seq)] = await store.ledger.read(
        lambda each: each.execute("SELECT id, after_seq FROM entry").fetchall()
    )
    assert (entry_id, after_seq) == (1, 0)
    assert verify(path).problems == ()
    examine_shape(path)
    await till.move_cash()
    await till.close()
    assert verify(path).problems == ()


async def test_a_book_of_a_machine_with_a_history_is_sound(till: Till, path: Path) -> None:
    """Its first Z begins with the FVC of its own first sale, and so does a later one, also where a credit note came before that."""
    till.counters = FiscalCounters(40, 30, 2)
    for number in range(2):
        await till.sell()
        await till.sell()
        await till.close()
        await till.certify(invoice(f"C-{number}", type_="FA", amounts=(("B", 500),), reference=f"{NIM}-31"))
    assert verify(path).problems == ()


async def test_newest_records_that_an_entry_names_as_lost(store: Store, till: Till, path: Path) -> None:
    """The ledger is sound without them, and goes on after that entry."""
    records = [await till.sell() for _ in range(3)]
    await store.ledger.aggregate(till.book)
    await store.ledger.write(entries.append, till.book, RecordsLost(3, 3, "", contribution(records[-1])), 0)
    tamper(path, "DELETE FROM certification WHERE seq = 3")
    assert verify(path).problems == ()
    await till.sell()
    await till.close()
    assert verify(path).problems == ()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("UPDATE certification SET code = 'FAKE'", "record 1"),
        ("PRAGMA user_version = 1", "older version"),
        ("DROP TABLE book_start", "no such table: book_start"),
    ],
)
async def test_what_a_start_would_refuse_is_told_without_one(path: Path, change: str, expected: str) -> None:
    """A ledger whose end was changed, one of an older version, one that is none."""
    async with opened(path) as store:
        await (await Till.of(store)).sell()
    examine_shape(path)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(change)
    with pytest.raises(LedgerUnusable, match=expected):
        examine_shape(path)
