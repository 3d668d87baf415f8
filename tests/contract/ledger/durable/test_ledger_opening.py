"""What a start finds: a new file, an older, newer or foreign one, one that is held or damaged."""

import asyncio
import contextlib
import os
import re
import sqlite3
from pathlib import Path

import pytest
from support.ledgers.ledger import NIM, Till, invoice, opened, opened_till, query, tamper

from daemon.core.errors import LedgerUnusable, StorageError, StorageFull
from daemon.store.maintenance import health
from daemon.store.maintenance.verify import examine_shape, verify
from daemon.store.sqlite import migrations
from daemon.store.sqlite.lock import LedgerLock
from daemon.store.sqlite.migrations import Migration
from daemon.store.tables.book.books import all_books, book_state, open_book
from daemon.store.tables.journal import find_code
from daemon.store.tables.keys import create_key
from daemon.store.tables.meta import Damage


async def fill(path: Path, count: int = 3) -> None:
    async with opened_till(path) as (_, till):
        for _ in range(count):
            await till.sell()
        await till.close()
        await till.sell()


async def refusal(path: Path, **options: object) -> str:
    with pytest.raises(StorageError) as caught:
        async with opened(path, **options):
            pass
    return str(caught.value)


async def test_a_ledger_is_made_where_there_is_none(tmp_path: Path) -> None:
    """The first start makes the file, its folders, and the newest schema; every commit waits for the disk."""
    path = tmp_path / "lib" / "state" / "ledger.sqlite3"
    async with opened(path) as store:
        assert query(path, "PRAGMA user_version") == [(migrations.migrations()[-1].number,)]
        assert query(path, "PRAGMA application_id") == [(migrations.APPLICATION_ID,)]
        assert query(path, "SELECT length(value) FROM meta WHERE name = 'ledger_id'") == [(36,)]
        pragmas = await store._open.writer.submit(
            lambda c: [c.execute(f"PRAGMA {p}").fetchone()[0] for p in ("journal_mode", "synchronous", "foreign_keys")]
        )
        assert pragmas == ["wal", 2, 1]
        till = await Till.of(store)
        assert verify(path).problems == ()  # also of a book in which nothing is yet, and of a Z of nothing
        await till.close()
        assert verify(path).problems == ()
        assert len(files := await asyncio.to_thread(lambda: list(path.parent.iterdir()))) > 3
        assert [file.name for file in files if file.stat().st_mode & 0o007] == []


async def test_everything_is_there_after_a_restart(path: Path) -> None:
    """A closed ledger is one file without a WAL, and opens to what it was."""
    await fill(path)
    assert not path.with_name(path.name + "-wal").exists()
    async with opened(path) as store:
        state = store.ledger.peek(book_state, await store.ledger.write(open_book, NIM, "live"))
        assert (state.last_seq, state.z_number, state.last_number) == (4, 1, "S-4")


async def test_a_second_daemon_is_refused_by_name(path: Path) -> None:
    """The one that comes later is told which process holds the ledger, and so is a command that would write; one that reads is let in, and
    writes nothing."""
    async with opened(path):
        text = await refusal(path)
        assert await refusal(path, opening="command") == text
        async with opened(path, opening="read") as beside:
            assert await beside.journal.read(all_books) == []
            with pytest.raises(StorageFull, match="read-only"):
                await beside.ledger.write(create_key, NIM, "live", "", at=1)
    assert str(os.getpid()) in text
    assert str(path) in text
    async with opened(path):
        pass


async def test_a_newer_schema_is_refused(path: Path) -> None:
    """An older mcfd does not touch what a newer one has migrated, and says which is which."""
    await fill(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    text = await refusal(path)
    assert "newer mcfd" in text
    assert "99" in text
    assert query(path, "PRAGMA user_version") == [(99,)]


async def test_a_file_that_is_no_ledger_is_refused(path: Path, tmp_path: Path) -> None:
    """Another program's database, or none at all, is left as it is."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cat (name TEXT)")
    assert "another program" in await refusal(path)
    assert query(path, "SELECT name FROM sqlite_schema") == [("cat",)]
    rubbish, content = tmp_path / "rubbish", b"Caisse 1;15000\n" * 1000
    rubbish.write_bytes(content)
    assert "damaged" in await refusal(rubbish)
    assert rubbish.read_bytes() == content


STEPS = [
    Migration(1, "ledger", migrations.migrations()[0].script),
    Migration(2, "cat", "CREATE TABLE cat (name TEXT) STRICT;\n-- a comment; with a semicolon\nDROP TABLE meta;\n"),
]
NEWER = [
    *migrations.migrations(),
    Migration(len(migrations.migrations()) + 1, "cat", "CREATE TABLE cat (name TEXT) STRICT;\n"),
]


def test_a_migration_is_applied_once_and_in_order(path: Path) -> None:
    """An older file gets what it lacks, a current one nothing."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.migrate(connection, STEPS[:1])
        assert not migrations.is_current(connection, STEPS)
        migrations.migrate(connection, STEPS)
        migrations.migrate(connection, STEPS)
        assert migrations.is_current(connection, STEPS)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    assert "cat" in tables
    assert "meta" not in tables


def test_an_interrupted_migration_leaves_the_old_schema(path: Path) -> None:
    """A migration that fails in the middle is undone as a whole, and can be tried again."""
    broken = Migration(2, "broken", "CREATE TABLE cat (name TEXT) STRICT;\nDROP TABLE dog;\n")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="dog"):
            migrations.migrate(connection, [STEPS[0], broken])
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'cat'").fetchone() is None
        migrations.migrate(connection, STEPS)


def test_a_migration_that_loses_a_parent_is_undone(path: Path) -> None:
    """Foreign keys are not enforced while a table is made anew: what it has left is looked at before the new schema counts."""
    script = "CREATE TABLE cat (id INTEGER PRIMARY KEY);\nCREATE TABLE kitten (cat REFERENCES cat);\nINSERT INTO kitten VALUES (7);\n"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(LedgerUnusable, match="a row of kitten refers to a missing cat"):
            migrations.migrate(connection, [STEPS[0], Migration(2, "cat", script)])
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'cat'").fetchone() is None
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


async def test_a_command_does_not_migrate_under_a_running_daemon(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer command beside an older daemon leaves the schema alone; alone, it migrates."""
    async with opened(path):
        monkeypatch.setattr("daemon.store.store.migrations", lambda: NEWER)
        assert "in use" in await refusal(path, opening="read")
        assert query(path, "PRAGMA user_version") == [(len(NEWER) - 1,)]
    for _ in range(2):  # the lock is free again each time
        async with opened(path, opening="read"):
            assert query(path, "PRAGMA user_version") == [(len(NEWER),)]
        LedgerLock.acquire(path).release()


def flip_in_index(path: Path, index: str, content: bytes) -> int:
    """One bit of a number, where the index has it."""
    pages = [page for (page,) in query(path, "SELECT pageno FROM dbstat WHERE name = ?", index)]
    image = bytearray(path.read_bytes())
    for page in pages:
        at = image.find(content, (page - 1) * 4096, page * 4096)
        if at >= 0:
            image[at + len(content) - 1] ^= 1
            path.write_bytes(image)
            return len(image)
    raise AssertionError("the index does not hold it")


@pytest.mark.parametrize("small", [True, False])
async def test_a_flipped_bit_in_the_index_of_numbers_is_noticed_at_the_start(
    path: Path, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    """The table has the number, its index does not find it: it would be certified twice. Also in a ledger too large to be checked whole."""
    await fill(path, count=60)
    size = flip_in_index(path, "certification_number", b"S-17")
    monkeypatch.setattr(health, "SMALL_BYTES", size - (not small))
    monkeypatch.setattr(health, "NUMBERS", 61 - 16)
    text = await refusal(path)
    assert "damaged" in text
    assert ("'S-17'" in text) is not small


def empty_page(path: Path, page: int) -> None:
    """No cells."""
    image = bytearray(path.read_bytes())
    image[(page - 1) * 4096 + 3 : (page - 1) * 4096 + 5] = b"\0\0"
    path.write_bytes(image)


async def test_an_open_attempt_that_its_index_does_not_find_is_noticed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would become of what is in doubt. An entry of that index has no value but the book and the row."""
    monkeypatch.setattr(health, "SMALL_BYTES", 0)
    async with opened(path) as store:
        await (await Till.of(store)).begin(invoice("F-1"))
    [(root,)] = query(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'certification_open'")
    empty_page(path, root)
    assert "'F-1'" in await refusal(path)


async def test_what_verify_finds_in_the_file_stops_certification_and_the_next_start(path: Path) -> None:
    """At night, beside the daemon: nothing is certified with it from then on. A clean `verify` ends that.
    What was noted stays damage where the note itself cannot be read any more."""
    await fill(path)
    async with opened(path) as store:
        book = await store.ledger.write(open_book, NIM, "live")
        flipped = Damage(file=("file: row 3 missing from index certification_number",))
        await store.retention.note_verified(Damage(entries=("record 2 does not continue the chain",)), at=1)
        await store.ledger.check_free_space(book)
        await store.retention.note_verified(flipped, at=1)
        with pytest.raises(LedgerUnusable, match="row 3 missing from index"):
            await store.ledger.check_free_space(book)
    for change in ("UPDATE meta SET value = value", "UPDATE meta SET value = '{' || value WHERE name = 'damage'"):
        tamper(path, change)
        assert "row 3 missing from index" in await refusal(path)
    async with opened(path, opening="command") as store:
        await store.retention.note_verified(Damage(), at=1)
    async with opened(path) as store:
        await store.ledger.check_free_space(book)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE certification SET code = 'X' WHERE seq = 4", "record 4"),
        ("DELETE FROM certification WHERE seq = 4", "end of the chain"),
        ("UPDATE closure SET total_ttc = 1", "Z 1"),
        ("UPDATE book SET head = zeroblob(32)", "end of the chain"),
        ("UPDATE certification SET payload = x'0102' WHERE seq = 4", "cannot be read"),
    ],
)
async def test_a_changed_end_of_the_chain_is_noticed_at_the_start(path: Path, change: str, named: str) -> None:
    """The last record, the last Z and the head of each book are recomputed at every start."""
    await fill(path)
    tamper(path, change)
    assert named in await refusal(path)


async def test_damage_found_at_work_is_told_as_such(path: Path) -> None:
    """A page that goes bad while the daemon runs: LedgerUnusable, not a riddle of SQLite's."""
    await fill(path, count=200)
    async with opened(path) as store:
        book = await store.ledger.write(open_book, NIM, "live")
        [(first_page,)] = query(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'certification_code'")
        damage(path, page=first_page)
        with pytest.raises(LedgerUnusable, match="damaged"):
            await store.journal.read(find_code, book, "ABC")


async def test_a_locked_ledger_is_waited_for_then_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program that writes for too long fails the write, and the next one succeeds when it is gone."""
    monkeypatch.setattr("daemon.store.sqlite.file.BUSY_SECONDS", 0.05)
    async with opened_till(path) as (_, till):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageFull, match="another program"):
                await till.begin(invoice("F-1"))
            other.execute("ROLLBACK")
        assert (await till.certify(invoice("F-1"))).seq == 1


def damage(path: Path, *, page: int) -> None:
    """`page` counts from 1, as in SQLite."""
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(range(256)) * 16)


@pytest.mark.parametrize("is_small", [True, False])
async def test_up_to_which_size_a_start_reads_the_whole_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    """To the byte: a page of an unused index is noticed in a file that is not larger, and is left to `mcfd verify` in one that is. What to do is said in
    one line: a restore that takes over what the copy lacks."""
    await fill(path, count=60)
    size = await asyncio.to_thread(lambda: path.stat().st_size)
    monkeypatch.setattr(health, "SMALL_BYTES", size if is_small else size - 1)
    [(page,)] = query(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'certification_code'")
    damage(path, page=page)
    if is_small:
        assert re.fullmatch(".*damaged.*mcfd restore --keep-newer.*", await refusal(path))
    else:
        async with opened(path):
            pass


async def test_a_row_that_sqlite_itself_finds_wrong_is_noticed_at_the_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own check says so in a row, and not by an error; `mcfd verify` tells it as well."""
    await fill(path)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE outbox SET state = 'lost'")
    assert "CHECK constraint failed in outbox" in await refusal(path)
    assert any(problem.startswith("file: CHECK constraint failed in outbox") for problem in verify(path).problems)
    monkeypatch.setattr(health, "SMALL_BYTES", 0)
    with pytest.raises(LedgerUnusable, match="outbox"):
        examine_shape(path)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("UPDATE outbox SET state = 'waiting'")
        connection.execute("UPDATE certification SET state = 'lost' WHERE id = 1")
    examine_shape(path)  # of a large file not every table is read


def test_every_constraint_of_the_schema_is_one_that_verify_reads() -> None:
    """It reads them itself: SQLite's own check leaves them out in a file that is opened read-only."""
    for step in migrations.migrations():
        assert step.script.count("CHECK") == len(health.CONSTRAINT.findall(step.script)), step.name


async def test_an_entry_at_the_end_is_looked_at_too(path: Path) -> None:
    """An activation, cash, a gap: whatever was written last."""
    async with opened_till(path) as (store, till):
        await till.sell()
        await store.decisions.set_last_z(till.book, 3)
    tamper(path, "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), '3', '2') AS BLOB)")
    assert "entry 1" in await refusal(path)


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A folder that cannot be made, a path that is a folder: one clear line with the path in it."""
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "ledger.sqlite3"
    assert str(path) in await refusal(path)
    folder = tmp_path / "folder"
    folder.mkdir()
    assert str(folder) in await refusal(folder)
