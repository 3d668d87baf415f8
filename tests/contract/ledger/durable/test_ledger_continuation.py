"""A restore loses nothing that the ledger in place has since the copy: a sound one stays, of a damaged one the rows since are taken over."""

import asyncio
import contextlib
import re
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from support.ledgers.ledger import START, Till, invoice, opened, opened_till, query, tamper

from daemon.core.clock import DAY, HOUR
from daemon.core.errors import LedgerUnusable
from daemon.core.invoice.number import TakenFrom
from daemon.core.ledger.deferred import DeferredSale
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.continuation import BY_ROW, NEEDED, OF_BOOK, OF_BOX, lacking
from daemon.store.maintenance.verify import examine_shape, verify
from daemon.store.sqlite.file import open_file
from daemon.store.sqlite.migrations import migrations
from daemon.store.tables.book.entries import hours_ahead, repair_time
from daemon.store.tables.meta import read_damage, write_damage

DAMAGE = "UPDATE certification SET payload = x'00' WHERE seq = 2"
"""Of a row that the copy has sound."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copy"


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    """Of the live books, without what a restore says of itself."""
    changes = {
        "book": "restored_at = 0, z_asked = 0",
        "deferred": "state = iif(state = 'doubtful', 'waiting', state), why = ''",
    }
    with contextlib.closing(open_file(path, "ro")) as ledger, contextlib.closing(sqlite3.connect(":memory:")) as memory:
        ledger.backup(memory)
        if table in changes:
            memory.execute(f"UPDATE {table} SET {changes[table]}")  # noqa: S608  names of ours
        where = {"audit": "action <> 'ledger.restored'", "book": "mode = 'live'"}.get(
            table, "true" if table in OF_BOX else "book_id IN (SELECT id FROM book WHERE mode = 'live')"
        )
        return memory.execute(f"SELECT * FROM {table} WHERE {where} ORDER BY 1, 2").fetchall()  # noqa: S608  names of ours


def all_rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    return {table: rows(path, table) for table in ("book", *BY_ROW, *NEEDED, *OF_BOOK, *OF_BOX)}


async def history(path: Path, copy: Path) -> None:
    """Two sales, one under way and one in the sandbox; the copy; then the end of the one under way, two sales, a credit note, cash, a Z, a key, and one
    more under way."""
    async with opened_till(path) as (store, till):
        await till.sell()
        await till.certify(invoice("K-1"), key=b"k1", body=b"1")
        begun = await till.begin(invoice("B-1"), key=b"b1", body=b"1")
        sandbox = await Till.of(store, mode="test")
        await sandbox.sell()
        backup(path, copy, at=START)
        await till.finish(begun, invoice("B-1"))
        await till.certify(invoice("K-2"), key=b"k2", body=b"2")
        reference = f"{till.book.nim}-{till.counters.fvc}"
        await till.certify(invoice("C-1", type_="FA", reference=reference))
        await till.move_cash()
        await sandbox.sell()
        await till.close()
        await till.sell()
        await till.fail(invoice("R-1"))
        await till.begin(invoice("B-2"), key=b"b2", body=b"2")


def test_a_sound_ledger_that_continues_the_copy_stays(path: Path, copy: Path) -> None:
    """Byte by byte, and what it has since is counted."""
    asyncio.run(history(path, copy))
    before = all_rows(path)
    done = restore(copy, path, at=START, keep_newer=True)
    assert (done.is_unchanged, done.aside, done.newer) == (True, None, ("S-2", "C-1", "K-2", "B-1"))
    assert all_rows(path) == before
    assert query(path, "SELECT restored_at FROM book") == [(0,), (0,)]


@pytest.mark.parametrize("damage", [DAMAGE, "UPDATE certification SET hash = x'00' WHERE seq = 2"])
def test_a_damaged_ledger_is_mended_with_the_copy(path: Path, copy: Path, damage: str) -> None:
    """The copy has the rows before, the ledger those since, up to its last commit: it is the same ledger, and nothing of the live books is lost."""
    asyncio.run(history(path, copy))
    before = all_rows(path)
    tamper(path, damage)
    done = restore(copy, path, at=START, keep_newer=True)
    assert (done.findings.clean, done.is_unchanged, len(done.newer), done.asks) == (True, False, 4, ())
    assert verify(path).problems == ()
    assert all_rows(path) == before
    assert query(path, "SELECT restored_at FROM book WHERE mode = 'live'") == [(0,)]
    assert query(path, "SELECT value FROM meta WHERE name = 'epochs'") == []
    assert query(path, "SELECT count(*) FROM certification WHERE number = 'S-1'") == [(2,)]


PAGE, SECTOR = 4096, 512


async def long_history(path: Path, copy: Path) -> None:
    """`history` between sales that fill pages."""
    await sell(path, 60)
    await history(path, copy)
    await sell(path, 60)


async def sell(path: Path, count: int) -> None:
    async with opened_till(path) as (store, till):
        for number in range(count):
            sale = invoice(f"{till.at}-{number}")
            await till.certify(sale, key=sale.number.encode(), body=b"1")
            if number == count // 2:
                await till.close()
        await store.ledger.aggregate(till.book)


def spoil(path: Path, page: int, at: int = 0, content: bytes = b"\xff" * PAGE) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE + at)
        file.write(content)


@pytest.fixture
def image(path: Path, copy: Path) -> bytes:
    """Of a ledger of 130 sales, half of them since the copy."""
    asyncio.run(long_history(path, copy))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.read_bytes()


@pytest.mark.long
def test_whichever_page_cannot_be_read(path: Path, copy: Path, image: bytes) -> None:
    """Nothing is lost, or what is lost is named; or the ledger stays, and the refusal says what would be lost. Nearly all pages harm no sale."""
    before = all_rows(path)
    pages = query(path, "SELECT pageno, name FROM dbstat ORDER BY pageno")
    harmless = unreadable = 0
    for page, name in pages:
        for left in ("-wal", "-shm"):
            path.with_name(path.name + left).unlink(missing_ok=True)
        path.write_bytes(image)
        spoil(path, page)
        damaged = path.read_bytes()
        refused = ""
        try:
            done = restore(copy, path, at=START, keep_newer=True)
        except LedgerUnusable as error:
            refused = str(error)
        if refused:
            assert ("--keep-newer" in refused, path.read_bytes() == damaged) == (True, True)
            continue
        if done.why_not:
            assert (name, done.newer) == ("sqlite_schema", ())
            unreadable += 1
            continue
        after = all_rows(path)
        lost = {table for table in before if after[table] != before[table]}
        assert (not lost) or done.findings.problems or done.findings.notes, name
        assert verify(path).of_file == 0
        assert len(done.newer) == 64 or "certification" in lost
        harmless += "certification" not in lost
        asyncio.run(sell(path, 1))
    assert harmless > 0.75 * (len(pages) - unreadable)


@pytest.mark.parametrize("is_noted", [True, False], ids=["noted", "new"])
@pytest.mark.parametrize("what", ["an index", "the rows of the copy", "states"])
def test_a_page_that_cannot_be_read(path: Path, copy: Path, image: bytes, what: str, *, is_noted: bool) -> None:
    """Of what the copy has or an index, nothing is lost; of states, the copy has an older one. So it is also when `mcfd verify` has noted the damage in
    the ledger, as it does each night."""
    before = all_rows(path)
    leaves = query(path, "SELECT pageno FROM dbstat WHERE name = 'certification' AND pagetype = 'leaf' ORDER BY pageno")
    name = {"an index": "certification_key", "states": "idempotency"}.get(what)
    [page] = query(path, "SELECT min(pageno) FROM dbstat WHERE name = ?", name)[0] if name else leaves[1]
    assert path.read_bytes() == image
    spoil(path, page)
    if is_noted:
        with contextlib.closing(open_file(path, "rw")) as ledger:
            write_damage(ledger, verify(path).damage)
    assert len(lacking(copy, path)) == 64
    done = restore(copy, path, at=START, keep_newer=True)
    after = all_rows(path)
    lost = {table: set(before[table]) - set(after[table]) for table in before if after[table] != before[table]}
    expected = {"idempotency"} if what == "states" else set()
    assert set(lost) == expected
    assert bool(done.findings.problems) == bool(expected)
    assert what != "states" or set(rows(copy, "idempotency")) == set(after["idempotency"])
    asyncio.run(sell(path, 1))


@pytest.mark.parametrize(
    ("leaf", "sector"), [(4, None), (4, 1), (7, None), (7, 1), (-2, None), (-2, 1), (-1, None), (-1, 6)]
)
def test_records_that_a_disk_has_lost_are_named_in_the_chain(
    path: Path, copy: Path, image: bytes, leaf: int, sector: int | None
) -> None:
    """A page of them that cannot be read, or a sector of zeros: beside those of the copy, around a Z, and the newest. The totals count them, the ledger is sound, and it can be copied: then, and as it grows."""
    before, running = rows(path, "certification"), query(path, "SELECT running FROM total")
    assert path.read_bytes() == image
    leaves = query(path, "SELECT pageno FROM dbstat WHERE name = 'certification' AND pagetype = 'leaf' ORDER BY pageno")
    spoil(path, leaves[leaf][0], *(() if sector is None else (sector * SECTOR, bytes(SECTOR))))
    done = restore(copy, path, at=START, keep_newer=True)
    assert 0 < len(set(before) - set(rows(path, "certification"))) <= 16
    assert not done.findings.problems
    assert query(path, "SELECT running FROM total") == running
    for _ in range(2):
        assert "a disk has lost the records" in backup(path, copy, at=START).notes[0]
        asyncio.run(sell(path, 70))


def test_the_newest_record_of_the_copy_is_lost_in_the_ledger(path: Path, copy: Path) -> None:
    """And one that the copy lacks, as a sector of zeros hides them: the one before shows that the ledger continues the
    copy."""
    asyncio.run(history(path, copy))
    [(newest,)] = query(copy, "SELECT max(seq) FROM certification WHERE book_id = 1")
    tamper(path, "DELETE FROM certification WHERE book_id = 1 AND seq IN (?, ?)", newest, newest + 2)
    done = restore(copy, path, at=START, keep_newer=True)
    assert (done.findings.problems, len(done.findings.notes), len(done.newer)) == ((), 1, 3)


@pytest.mark.parametrize("has_closed", [False, True])
def test_the_first_sale_of_a_machine_is_lost(path: Path, copy: Path, has_closed: bool) -> None:
    """One that the copy does not know yet, on a box with another. When its first period began stands in its first Z; it
    is sound, and so it stays."""

    async def history() -> None:
        async with opened_till(path) as (store, till):
            await till.sell()
            backup(path, copy, at=START)
            other = await Till.of(store, "EL02000099-1")
            for _ in range(3):
                await other.sell()
            if has_closed:
                await other.close()
            await other.sell()

    asyncio.run(history())
    tamper(path, "UPDATE certification SET payload = x'00' WHERE book_id = 2 AND seq = 1")
    done = restore(copy, path, at=START, keep_newer=True)
    assert (done.findings.problems, len(done.findings.notes), len(done.newer)) == ((), 1, 3)
    for _ in range(2):
        assert len(backup(path, copy, at=START).notes) == 1
        asyncio.run(close_again(path))


async def close_again(path: Path) -> None:
    async with opened(path) as store:
        other = await Till.of(store, "EL02000099-1")
        await other.sell()
        await other.close()


@pytest.mark.parametrize("payload", [b"", bytes(60), b"\x28\xb5\x2f\xfd"], ids=["empty", "zeros", "packed"])
def test_the_newest_record_whose_invoice_cannot_be_read(path: Path, copy: Path, image: bytes, payload: bytes) -> None:
    """It is named as one that a disk has lost, and mcfd starts, and sells after it."""
    assert path.read_bytes() == image
    tamper(path, "UPDATE certification SET payload = ? WHERE seq = (SELECT max(seq) FROM certification)", payload)
    assert not restore(copy, path, at=START, keep_newer=True).findings.problems
    for _ in range(2):
        assert "a disk has lost the records" in backup(path, copy, at=START).notes[0]
        asyncio.run(sell(path, 1))


@pytest.mark.parametrize("keep_newer", [True, False])
def test_a_definition_that_is_damaged(path: Path, copy: Path, image: bytes, keep_newer: bool) -> None:
    """In SQLite's own table of tables and indexes, and as text that is none: SQLite opens no table of such a file, and what says so is no text either."""
    before = all_rows(path)
    path.write_bytes(image.replace(b"indextake_over_spare_lasts", b"indextake_ov\xe5r_spare_lasts"))
    with pytest.raises(UnicodeDecodeError):
        query(path, "SELECT count(*) FROM book")
    with pytest.raises(LedgerUnusable, match="the ledger is damaged"):
        asyncio.run(sell(path, 1))
    for read in (examine_shape, verify, lambda ledger: backup(ledger, copy.with_name("another"), at=START)):
        with pytest.raises(LedgerUnusable, match="the ledger is damaged"):
            read(path)
    with pytest.raises(LedgerUnusable, match="take another copy"):
        restore(path, copy.with_name("another"), at=START)
    done = restore(copy, path, at=START, keep_newer=keep_newer)
    assert (done.findings.clean, len(done.newer)) == (True, 64 * keep_newer)
    assert (all_rows(path) == before) == keep_newer


def test_a_newer_closure_that_cannot_be_read(path: Path, copy: Path, image: bytes) -> None:
    """It is named, and what was found does not keep the new ledger locked while its numbers are written."""
    assert path.read_bytes() == image
    bad = "CAST(substr(body, 1, 9) || CAST(x'b6' AS TEXT) || substr(body, 11) AS BLOB)"
    tamper(path, f"UPDATE closure SET body = {bad} WHERE z_number = 2")  # noqa: S608  a value of ours
    done = restore(copy, path, at=START, keep_newer=True)
    assert "Z 2" in str(done.findings.problems)
    with contextlib.closing(open_file(path, "ro")) as ledger:
        assert read_damage(ledger).all
    assert len(done.newer) == 64


async def _fork(path: Path, copy: Path) -> None:
    """Both are sold in since the copy of the copy."""
    await history(path, copy)
    async with opened_till(copy) as (_, till):
        await till.certify(invoice("X-1"))


async def _older_version(path: Path, copy: Path) -> None:
    await history(path, copy)
    tamper(path, DAMAGE)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {len(migrations()) - 1}")


async def _other_ledger(path: Path, copy: Path) -> None:
    await history(path.with_name("other"), copy)
    await sell(path, 3)


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (_fork, "both were in use since"),
        (_older_version, "of an older version"),
        (_other_ledger, "it is another ledger"),
    ],
)
def test_a_ledger_that_does_not_continue_the_copy_stays(
    path: Path, copy: Path, happens: Callable[[Path, Path], Coroutine[None, None, None]], why: str
) -> None:
    """The refusal says why, and how many invoices would be lost; the copy alone is put back when it is asked for."""
    asyncio.run(happens(path, copy))
    before = path.read_bytes()
    for origin in (None, copy.with_name("archive")):
        with pytest.raises(LedgerUnusable, match=why) as refusal:
            restore(copy, path, at=START, keep_newer=True, origin=origin)
        assert re.search(rf"{origin or copy} lacks [34] invoices", str(refusal.value))
        assert path.read_bytes() == before
    assert restore(copy, path, at=START).findings.clean


def test_a_ledger_whose_invoices_cannot_be_read_at_all_stays(path: Path, copy: Path, image: bytes) -> None:
    """What it has since the copy is unknown; the copy alone is put back when that is asked for."""
    assert path.read_bytes() == image
    tables = "SELECT rootpage FROM sqlite_schema WHERE name IN ('certification', 'certification_seq')"
    for (page,) in query(path, tables):
        spoil(path, page)
    damaged = path.read_bytes()
    with pytest.raises(LedgerUnusable, match="lacks invoices whose numbers cannot be read"):
        restore(copy, path, at=START, keep_newer=True)
    assert path.read_bytes() == damaged
    assert restore(copy, path, at=START).findings.clean


def test_a_ledger_whose_name_cannot_be_read_stays(path: Path, copy: Path, image: bytes) -> None:
    """It may be another one. The refusal says what SQLite has found."""
    path.write_bytes(image.replace(b"CREATE TABLE meta", b"CREATE TABLX meta"))
    damaged = path.read_bytes()
    with pytest.raises(
        LedgerUnusable, match=r"lacks 64 invoices \(B-1 to \S+-59\) .* \(it cannot be read: no such table: meta\)"
    ):
        restore(copy, path, at=START, keep_newer=True)
    assert path.read_bytes() == damaged


def test_an_older_ledger_is_replaced(path: Path, copy: Path) -> None:
    """It has no invoice that the copy lacks."""
    asyncio.run(sell(path, 3))
    image = path.read_bytes()
    asyncio.run(sell(path, 3))
    backup(path, copy, at=START)
    path.write_bytes(image)
    done = restore(copy, path, at=START, keep_newer=True)
    assert (done.findings.records, done.newer, "it is older" in str(done.why_not)) == (6, (), True)
    assert query(path, "SELECT restored_at FROM book") == [(START,)]


def test_a_last_z_that_is_entered_is_not_lost_to_a_sound_ledger(path: Path, copy: Path) -> None:
    """A person who says it again, after a restore that asked for it, is heard."""
    asyncio.run(history(path, copy))
    assert restore(copy, path, at=START, last_z=7, keep_newer=True).findings.clean
    assert query(path, "SELECT z_number FROM book WHERE mode = 'live'") == [(7,)]
    assert query(path, "SELECT count(*) FROM certification WHERE number = 'K-2'") == [(1,)]


def test_a_mended_ledger_whose_last_commits_are_missing_is_compared_with_its_machine(path: Path, copy: Path) -> None:
    """As after every restore; so is one of which nothing shows how many there were."""
    asyncio.run(history(path, copy))
    mark, image = path.with_name(f"{path.name}.commits"), path.read_bytes()
    asyncio.run(sell(path, 1))
    for text in (mark.read_bytes(), b""):
        path.write_bytes(image)
        mark.write_bytes(text)
        tamper(path, DAMAGE)
        assert restore(copy, path, at=START, keep_newer=True).findings.clean
        assert query(path, "SELECT restored_at FROM book WHERE mode = 'live'") == [(START,)]


async def _waiting(path: Path, copy: Path) -> None:
    """One sale has waited since before the copy was made, one since then."""
    async with opened_till(path) as (store, till):
        for number in ("W-1", "W-2"):
            sold = invoice(number)
            row = (0, number, b"f", "request", number, sold.type, sold.total_ttc, till.at, f"address {number}")
            await store.ledger.defer(till.book, DeferredSale(*row, invoice=sold), "requested", TakenFrom())
            if number == "W-1":
                backup(path, copy, at=START)


def test_a_sale_that_waits_since_the_copy_is_counted(path: Path, copy: Path) -> None:
    """The customer has its paper, as of one that is certified."""
    asyncio.run(_waiting(path, copy))
    assert restore(copy, path, at=START, keep_newer=True).newer == ("W-2",)


async def _repaired(path: Path, copy: Path) -> None:
    """A clock was wrong when the copy was made; its times are corrected since."""
    async with opened_till(path) as (store, till):
        await till.sell()
        right, till.at = till.at, till.at + 40 * DAY
        await till.sell()
        await till.move_cash()
        await till.close()
        backup(path, copy, at=START)
        ahead = hours_ahead(till.at, right)
        await store.decisions.write(repair_time, till.book, now=right + HOUR, ahead=ahead, reason="wrong day")
        till.at = right + HOUR
        await till.sell()


def test_times_that_were_repaired_since(path: Path, copy: Path) -> None:
    """Of rows that the copy has."""
    asyncio.run(_repaired(path, copy))
    before = all_rows(path)
    [(page,)] = query(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'certification_key'")
    query(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    spoil(path, page)
    assert restore(copy, path, at=START, keep_newer=True).findings.clean
    assert all_rows(path) == before


def test_every_table_is_taken_over(path: Path, copy: Path) -> None:
    """But for sessions, which end, and where a sandbox begins, which is the copy's as its rows are."""
    asyncio.run(history(path, copy))
    tables = {name for (name,) in query(path, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert tables == {"book", "meta", "session", "book_start", *BY_ROW, *NEEDED, *OF_BOOK, *OF_BOX}


async def _certified_behind_another_machine(path: Path, copy: Path) -> None:
    """B-1 and B-2 are under way and a third machine has certified after them when the copy is made; only they change since."""
    async with opened(path) as store:
        tills = [await Till.of(store, nim=f"EL0200001{number}-1") for number in (5, 6, 7)]
        sales = [invoice("B-1"), invoice("B-2")]
        begun = [await till.begin(sale) for till, sale in zip(tills, sales, strict=False)]
        await tills[2].sell()
        backup(path, copy, at=START)
        for till, attempt, sale in zip(tills, begun, sales, strict=False):
            await till.finish(attempt, sale)


def test_sales_that_were_under_way_when_the_copy_was_made_are_counted(path: Path, copy: Path) -> None:
    """Also where the copy has a later sale of another machine."""
    asyncio.run(_certified_behind_another_machine(path, copy))
    assert lacking(copy, path) == ["B-2", "B-1"]


@pytest.mark.parametrize("at", [None, *range(0, PAGE, SECTOR)])
@pytest.mark.parametrize("since", [5, 300])
def test_all_invoices_since_the_copy_are_counted_whichever_of_their_pages_is_damaged(
    path: Path, copy: Path, since: int, at: int | None
) -> None:
    """Few or many, and also on the page that has rows from before and after the copy. A sector of zeros, as a torn write leaves it, hides rows from
    SQLite without an error."""
    asyncio.run(sell(path, 50))
    backup(path, copy, at=START)
    asyncio.run(sell(path, since))
    query(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    image = path.read_bytes()
    leaves = query(path, "SELECT pageno FROM dbstat WHERE name = 'certification' AND pagetype = 'leaf' ORDER BY pageno")
    for (page,) in leaves:
        path.write_bytes(image)
        spoil(path, page, *(() if at is None else (at, bytes(SECTOR))))
        assert len(lacking(copy, path)) == since
