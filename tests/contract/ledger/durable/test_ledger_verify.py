"""`mcfd verify` finds what was changed behind the ledger's back, and names the first of it."""

import sqlite3
from pathlib import Path

import pytest
from support.ledgers.filled import filled
from support.ledgers.ledger import NIM, START, Till, invoice, opened, opened_till, query, tamper

from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.store.maintenance import recompute
from daemon.store.maintenance.verify import VerifyResult, examine_shape, verify

RECORDS = 150


async def fill(path: Path) -> None:
    """Two books, 150 records, four Z (one of an empty period), two movements of cash, a failure, a credit note, a disputed attempt."""
    async with opened_till(path) as (store, till):
        for number in range(RECORDS - 2):
            await till.sell(1000 + number)
            if number in (40, 80):
                await till.move_cash()
            if number in (60, 100):
                await till.close(unexplained=number // 100)
        await till.fail(invoice("X-1"))
        await till.certify(invoice("C-1", type_="FA", amounts=(("B", 500),), reference=f"{NIM}-1"))
        await till.close()
        await till.close()
        attempt_id = await till.begin(invoice("D-1"), b"key", b"body")
        await store.ledger.dispute(till.book, attempt_id, "unknown", at=till.at)
        other = await Till.of(store, "EL02000099-1", "test")
        await other.sell()
        await store.ledger.aggregate(other.book)


original, path = filled(fill)


def test_an_untouched_ledger_is_clean(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the summary says how much was looked at, of all books, as it goes on and at its end."""
    monkeypatch.setattr(recompute, "_STEP", 1)
    steps: list[tuple[int, int]] = []
    found = verify(path, lambda done, of: steps.append((done, of)))
    assert found == VerifyResult((), books=2, records=RECORDS + 1, closures=4)
    assert steps == [(done, RECORDS + 1) for done in range(1, RECORDS + 2)]


CHANGES = [
    ("UPDATE certification SET total_ttc = total_ttc + 1 WHERE seq = 70 AND book_id = 1", "record 70"),
    ("UPDATE certification SET code = 'FAKE' || id WHERE seq = 70 AND book_id = 1", "record 70"),
    ("UPDATE certification SET number = 'S-7000' WHERE seq = 70 AND book_id = 1", "record 70"),
    ("UPDATE certification SET ended_at = ended_at + 1 WHERE seq = 70 AND book_id = 1", "record 70"),
    ("UPDATE certification SET tally = x'81a446562e6e02' WHERE seq = 70 AND book_id = 1", "record 70"),
    ("UPDATE certification SET hash = zeroblob(32) WHERE seq = 70 AND book_id = 1", "record 70"),
    (
        "UPDATE certification SET payload = (SELECT payload FROM certification WHERE number = 'S-71') WHERE number = 'S-70'",
        "record 70",
    ),
    ("UPDATE certification SET state = 'abandoned' WHERE seq = 70 AND book_id = 1", "record 70"),
    ("UPDATE certification SET tc = NULL WHERE seq = 1 AND book_id = 1", "record 1 "),
    ("UPDATE certification SET state = 'disputed' WHERE seq = 70 AND book_id = 1", "record 70"),
    ("DELETE FROM certification WHERE seq = 70 AND book_id = 1", "records 70 to 70 are missing"),
    ("DELETE FROM certification WHERE seq BETWEEN 70 AND 75 AND book_id = 1", "records 70 to 75 are missing"),
    ("DELETE FROM certification WHERE seq = 150 AND book_id = 1", "records 150 to 150 are missing"),
    ("UPDATE certification SET fc = 7 WHERE number = 'S-70'", "record 70 (invoice 'S-70') does not continue the chain"),
    (
        "UPDATE certification SET fc = NULL WHERE number = 'S-70'",
        "record 70 (invoice 'S-70') does not continue the chain",
    ),
    (
        "UPDATE certification SET payload = x'01ff' WHERE seq = 70 AND book_id = 1",
        "record 70 (invoice 'S-70') cannot be read",
    ),
    ("DELETE FROM closure WHERE z_number = 1", "Z 1 to 1 are missing"),
    ("DELETE FROM closure WHERE z_number = 4", "the head of the chain"),
    ("UPDATE closure SET total_ttc = 5 WHERE z_number = 2", "Z 2 does not continue the chain"),
    ("UPDATE closure SET last_seq = last_seq - 1 WHERE z_number = 1", "Z 1 does not continue the chain"),
    ("UPDATE closure SET first_seq = first_seq - 1 WHERE z_number = 2", "Z 2 does not hold exactly"),
    ("UPDATE closure SET unexplained = 0 WHERE z_number = 2", "Z 2 does not continue the chain"),
    ("UPDATE closure SET created_at = 5 WHERE z_number = 2", "Z 2 is older"),
    (
        "UPDATE closure SET body = CAST(replace(CAST(body AS TEXT), 'count\":61', 'count\":60') AS BLOB) WHERE z_number = 1",
        "Z 1 reports another certs_count",
    ),
    ("UPDATE checkpoint SET running = x'81a446562e6e02' WHERE seq = 64", "the checkpoint at record 64 is not the sum"),
    ("UPDATE checkpoint SET at = at + 1 WHERE seq = 64", "the checkpoint at record 64 is not the sum"),
    ("DELETE FROM checkpoint WHERE seq = 64", "the checkpoint at record 64 is missing"),
    (
        "INSERT INTO checkpoint VALUES (1, 99999999999999, 999, x'80')",
        "there is a checkpoint at record 999 that belongs to nothing",
    ),
    ("UPDATE total SET running = x'80' WHERE book_id = 1", "the running totals are not the sum"),
    ("UPDATE total SET running = x'00' WHERE book_id = 1", "totals in the ledger cannot be read"),
    (
        "UPDATE certification SET tally = x'c1' WHERE seq = 70 AND book_id = 1",
        "record 70 (invoice 'S-70') cannot be read",
    ),
    ("UPDATE closure SET body = x'7b' WHERE z_number = 2", "the file cannot be read to its end"),
    ("UPDATE total SET closed = x'80' WHERE book_id = 1", "not closed where the last Z ends"),
    ("UPDATE total SET period_start = 7 WHERE book_id = 1", "open period does not begin"),
    ("UPDATE book SET z_number = 9 WHERE id = 1", "the last Z should be 9"),
    ("UPDATE book SET last_at = 9 WHERE id = 1", "older than its last record"),
    ("UPDATE certification SET state = 'refused' WHERE number = 'D-1'", "1 attempt has ended without a place"),
    ("UPDATE certification SET book_id = 77 WHERE seq = 70 AND book_id = 1", "missing book"),
    (
        "UPDATE certification SET ended_at = 5 WHERE seq = 70 AND book_id = 1",
        "record 70 is older than the one before it",
    ),
    ("UPDATE certification SET state = 'begun' WHERE seq = 70 AND book_id = 1", "without having ended"),
    ("UPDATE certification SET tally = x'80' WHERE seq = 70 AND book_id = 1", "counts for other amounts than it has"),
    ("UPDATE certification SET epoch = 2 WHERE seq = 70 AND book_id = 1", "not of the activation that it stands in"),
    (
        "UPDATE certification SET chained_at = 5 WHERE seq = 70 AND book_id = 1",
        "record 70 has another time than the chain",
    ),
    ("UPDATE closure SET created_at = created_at + 1 WHERE z_number = 2", "Z 2 is older than what it holds"),
    ("UPDATE closure SET period_end = period_end - 1 WHERE z_number = 2", "Z 2 is older than what it holds"),
    ("UPDATE closure SET period_start = 7 WHERE z_number = 2", "Z 2 does not begin where the Z before it ended"),
    ("UPDATE closure SET certs_count = 5 WHERE z_number = 2", "Z 2 reports another certs_count"),
    ("UPDATE closure SET total_ttc = 5 WHERE z_number = 2", "Z 2 reports another total_ttc"),
    ("UPDATE closure SET chained_at = 5 WHERE z_number = 2", "Z 2 has another time than the chain"),
    ("UPDATE entry SET after_seq = 5000 WHERE id = 1", "entry 1 is not in its place"),
    ("UPDATE entry SET after_z = after_z + 1 WHERE id = 1", "entry 1 is not in its place"),
    ("UPDATE entry SET at = 5 WHERE id = 1", "entry 1 is older than what comes before it"),
    ("UPDATE entry SET at = at + 1 WHERE id = 1", "entry 1 does not continue the chain"),
    ("UPDATE entry SET chained_at = 5 WHERE id = 1", "entry 1 has another time than the chain"),
    ("DELETE FROM entry WHERE id = 2", "Z 2 reports another cash"),
    ("UPDATE checkpoint SET seq = 63 WHERE seq = 64", "the checkpoint at record 64 is missing"),
    ("UPDATE total SET seq = seq + 1 WHERE book_id = 1", "not closed where the last Z ends"),
    ("UPDATE total SET closed_seq = closed_seq - 1 WHERE book_id = 1", "not closed where the last Z ends"),
    ("UPDATE book SET head = zeroblob(32) WHERE id = 1", "the head of the chain is not its last record"),
    ("UPDATE book SET last_seq = last_seq + 1 WHERE id = 1", "records 151 to 151 are missing"),
    # beside the chain
    ("UPDATE certification SET original_id = 2 WHERE number = 'C-1'", "credit of another sale than it names"),
    ("UPDATE certification SET original_id = 150 WHERE number = 'C-1'", "credit of another sale than it names"),
    ("UPDATE certification SET original_id = 9999 WHERE number = 'C-1'", "credit of another sale than it names"),
    ("UPDATE certification SET original_id = 1 WHERE number = 'S-70'", "credit of another sale than it names"),
    ("UPDATE certification SET payload = CAST(payload || x'00' AS BLOB) WHERE number = 'S-70'", "record 70"),
    ("UPDATE certification SET total_ttc = 1 WHERE number = 'D-1'", "is for another invoice than it holds"),
    ("UPDATE certification SET payload = x'00' WHERE number = 'D-1'", "cannot be read"),
    ("UPDATE idempotency SET attempt_id = 999999", "1 Idempotency-Key stands for nothing"),
    ("UPDATE idempotency SET attempt_id = NULL", "1 Idempotency-Key stands for nothing"),
    ("UPDATE idempotency SET z_number = 1", "1 Idempotency-Key stands for nothing"),
    ("UPDATE total SET at = at + 1 WHERE book_id = 1", "totals are not of the time of their last record"),
    ("UPDATE total SET fvc_start = 7 WHERE book_id = 1", "does not begin with its first sale"),
    ("UPDATE total SET fvc_end = fvc_end + 1 WHERE book_id = 1", "FVC that the machine has not counted to"),
    ("UPDATE book SET tc = tc - 1 WHERE id = 1", "below those of its last record"),
    ("UPDATE book SET fvc = fvc - 1 WHERE id = 1", "below those of its last record"),
    ("UPDATE book SET frc = frc - 1 WHERE id = 1", "below those of its last record"),
    ("UPDATE book SET tc = NULL WHERE id = 1", "below those of its last record"),
    ("UPDATE book SET ifu = '00099999Z' WHERE id = 1", "another taxpayer than its last record"),
    ("UPDATE book SET attention = '' WHERE id = 1", "disputed, and its book is not in attention"),
    (
        "DELETE FROM outbox WHERE ref_id = 2 AND type = 'closure.created'",
        "Z 2 is missing among what goes to headquarters",
    ),
    (
        "DELETE FROM event WHERE ref_id = 70 AND type = 'cert.issued'",
        "record 70 (invoice 'S-70') has no event any more",
    ),
    (
        "DELETE FROM event WHERE type = 'cert.issued' AND ref_id = 150",
        "record 150 (invoice 'C-1') has no event any more",
    ),
    ("DELETE FROM audit WHERE id = (SELECT max(id) FROM audit)", "audit log: its newest entries are missing"),
]

NOT_COVERED = [
    "UPDATE certification SET original_id = 0 WHERE number = 'C-1'",
    "UPDATE certification SET base_tc = 7 WHERE number = 'D-1'",
    "UPDATE idempotency SET fingerprint = x'00'",
    "DELETE FROM idempotency",
    "UPDATE total SET fvc_end = 0 WHERE book_id = 1",
    "UPDATE book SET tc = tc + 1 WHERE id = 1",
    "UPDATE book SET unexplained = 9 WHERE id = 1",
    "UPDATE book SET attention = 'other words' WHERE id = 1",
    "DELETE FROM event WHERE type <> 'cert.issued'",
]
"""As docs/reliability.md says."""


_ORDER = "aaabaacabbabcacbaccbbbcbccc"
"""De Bruijn's of three letters: each three of them once, going round."""
EACH_AFTER_EACH_TWO = [{"a": "sale", "b": "cash", "c": "z"}[letter] for letter in _ORDER + _ORDER[:2]]


@pytest.mark.parametrize(("change", "named"), CHANGES, ids=[change for change, _ in CHANGES])
def test_a_change_is_found_and_named(path: Path, change: str, named: str) -> None:
    """Whatever is changed in a row of the ledger, verify says where."""
    tamper(path, f"{change}")
    findings = verify(path)
    assert not findings.clean
    assert any(named in problem for problem in findings.problems), findings.problems


@pytest.mark.parametrize("change", NOT_COVERED)
def test_what_follows_from_nothing_is_not_covered(path: Path, change: str) -> None:
    """No recomputation can tell; should one be found, it goes to the table above."""
    tamper(path, change)
    assert verify(path).clean


@pytest.mark.parametrize("stands", [False, True])
async def test_a_sound_ledger_is_clean_in_whatever_order_it_was_written(tmp_path: Path, stands: bool) -> None:
    """Sales, movements of cash and Z, each after each two of them, with whatever of them comes last; also where the clock stands between them."""
    path = tmp_path / "ledger.sqlite3"
    async with opened_till(path) as (_, till):
        steps = {"sale": till.sell, "cash": till.move_cash, "z": till.close}
        for step in EACH_AFTER_EACH_TWO:
            till.at = START if stands else till.at
            await steps[step]()
            assert verify(path).problems == (), step
            examine_shape(path)  # what a start looks at
        assert [row[0] for row in query(path, "SELECT count(*) FROM entry")] == [EACH_AFTER_EACH_TWO.count("cash")]


async def test_totals_without_a_record_are_nought(tmp_path: Path) -> None:
    """A book that has certified nothing yet has nothing in its totals either."""
    path = tmp_path / "ledger.sqlite3"
    async with opened(path) as store:
        await Till.of(store)
    assert verify(path).clean
    tamper(path, "UPDATE total SET running = x'81a446562e6e02'")
    assert any("totals are not the sum of the records up to 0" in problem for problem in verify(path).problems)


@pytest.mark.parametrize(("seq", "follows"), [(3, "Z 1"), (5, "entry 1")])
async def test_a_record_lost_before_a_z_or_an_entry_is_found_there(tmp_path: Path, seq: int, follows: str) -> None:
    """What follows it is in its place, and lacks its link alone."""
    path = tmp_path / "ledger.sqlite3"
    async with opened_till(path) as (_, till):
        for step in (till.sell, till.sell, till.sell, till.close, till.sell, till.sell, till.move_cash, till.sell):
            await step()
    tamper(path, "DELETE FROM certification WHERE seq = ?", seq)
    found = [problem.partition(": ")[2] for problem in verify(path).problems]
    assert found == [f"records {seq} to {seq} are missing", f"{follows} does not continue the chain"]


@pytest.mark.parametrize(("first", "last"), [(64, 64), (60, 64), (64, 70)])
def test_a_checkpoint_at_a_lost_record_is_no_finding_of_its_own(path: Path, first: int, last: int) -> None:
    """Nor hides the next one."""
    tamper(path, "DELETE FROM certification WHERE seq BETWEEN ? AND ? AND book_id = 1", first, last)
    assert [word for problem in verify(path).problems if (word := problem.partition("checkpoint at record ")[2])] == [
        "128 is not the sum of what came before it"
    ]


def test_the_first_bad_record_is_named_first(path: Path) -> None:
    """One changed record is one finding: the chain goes on from what the next one was chained to."""
    tamper(path, "UPDATE certification SET line_ms = line_ms + 1 WHERE seq = 70 AND book_id = 1")
    assert verify(path).problems == (f"{NIM} (live): record 70 (invoice 'S-70') does not continue the chain",)


def test_the_chain_goes_on_behind_a_record_that_cannot_be_read(path: Path) -> None:
    """From the hash that it has; only sums are others without it."""
    tamper(path, "UPDATE certification SET payload = x'01ff' WHERE seq = 70 AND book_id = 1")
    problems = verify(path).problems
    assert not any("does not continue the chain" in problem for problem in problems[1:]), problems


def test_a_record_rewritten_with_its_own_hash_breaks_the_next(path: Path) -> None:
    """Who makes one record consistent in itself would have to rewrite all that follow, and every copy of a Z elsewhere."""
    tamper(path, "DELETE FROM certification WHERE seq = 70 AND book_id = 1")
    tamper(path, "UPDATE certification SET seq = seq - 1 WHERE seq > 70 AND book_id = 1")
    assert any("record 70 (invoice 'S-71') does not continue the chain" in p for p in verify(path).problems)


def test_a_disk_without_room_is_no_finding(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's own files have none while a record is read: nothing is said about the ledger."""

    def fails(*_: object) -> None:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr("daemon.store.maintenance.recompute.record_of", fails)
    with pytest.raises(StorageFull, match="cannot be opened for writing"):
        verify(path)


def test_only_so_many_findings_are_told(path: Path) -> None:
    """A change in each record is a hundred lines, and not one more."""
    tamper(path, "UPDATE certification SET code = 'FAKE' || id WHERE state = 'certified'")
    assert len(verify(path).problems) == 100


def test_an_unreadable_or_foreign_file_is_refused(tmp_path: Path) -> None:
    """There is nothing to verify in a file that is no ledger."""
    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(b"rubbish" * 1000)
    with pytest.raises(LedgerUnusable, match="the ledger is damaged"):
        verify(rubbish)
    with pytest.raises(LedgerUnusable):
        verify(tmp_path / "nothing")
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    with pytest.raises(LedgerUnusable, match="older version"):
        verify(empty)
