"""SQL is in named blocks, every one of which the schema understands and some code uses."""

import contextlib
import functools
import re
import sqlite3
from importlib import resources
from pathlib import Path

import pytest

from daemon.store.sqlite.file import load
from daemon.store.sqlite.migrations import Migration, migrate, migrations
from daemon.store.tables.book import closures, codec, deferred, entries, take_overs

STORE = Path(str(resources.files("daemon.store")))
FILES = sorted(file for file in STORE.rglob("*.sql") if file.parent.name != "schema")
PARTS = {
    "acts": {"columns": entries.COLUMNS},
    "cash": {"columns": entries.COLUMNS},
    "entries": {"columns": entries.COLUMNS},
    "calendar_closures": {"columns": entries.COLUMNS},
    "closures": {"columns": closures.COLUMNS},
    "deferred": {"columns": deferred.COLUMNS},
    "outages": {"columns": entries.COLUMNS},
    "take_overs": {"columns": take_overs.COLUMNS},
    "recompute": {"record": codec.RECORD_COLUMNS, "closure": closures.COLUMNS},
    "sandbox": {"entry": entries.COLUMNS},
    "year_lines": {"record": codec.RECORD_COLUMNS, "closure": closures.COLUMNS, "entry": entries.COLUMNS},
    "health": {"record": codec.RECORD_COLUMNS, "closure": closures.COLUMNS},
}
ALL = [
    pytest.param(block, id=f"{file.stem}.{name}")
    for file in FILES
    for name, block in load(
        ".".join(("daemon.store", *file.relative_to(STORE).with_suffix("").parts)),
        **PARTS.get(file.stem, {"columns": codec.RECORD_COLUMNS}),
    ).items()
]


@contextlib.contextmanager
def migrated(*steps: Migration):
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        if steps:
            migrate(connection, list(steps))
        else:
            connection.deserialize(newest())
        yield connection


@functools.cache
def newest() -> bytes:
    """An empty ledger of the newest schema."""
    with migrated(*migrations()) as connection:
        return connection.serialize()


def values_for(block: str) -> dict[str, None] | list[None]:
    """NULL for each of its values, by name, by number or by place."""
    if names := re.findall(r":([a-z_]+)", block):
        return dict.fromkeys(names)
    numbers = [int(number) for number in re.findall(r"[?]([0-9]+)", block)]
    return [None] * (max(numbers) if numbers else block.count("?"))


@pytest.mark.parametrize("block", ALL)
def test_every_block_is_one_statement_of_the_schema(block: str) -> None:
    """SQLite can compile it, and a look-up does not read a whole table that grows for ever, nor a whole book for one number."""
    with migrated() as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {block}", values_for(block)).fetchall()
    scans = [detail for *_, detail in plan if re.match(r"SCAN (certification|checkpoint|closure)\b", detail)]
    assert not scans, scans
    if re.search(r"number = [?] AND state (NOT )?IN", block):
        assert not [detail for *_, detail in plan if "certification_seq" in detail], plan


def test_no_index_of_a_certification_has_a_list_of_three() -> None:
    """SQLite makes a table of it anew for each row that is written; of two it makes none."""
    with migrated() as connection:
        query = "SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'certification'"
        indexes = [sql for (sql,) in connection.execute(query)]
    assert indexes
    for sql in indexes:
        assert all(values.count(",") < 2 for values in re.findall(r"IN \(([^)]*)\)", sql)), sql


def test_every_block_is_used() -> None:
    """No SQL lies around that nothing runs."""
    code = "".join(path.read_text("utf-8") for path in STORE.rglob("*.py"))
    for file in FILES:
        for name in re.findall(r"^-- name: (\w+)$", file.read_text("utf-8"), re.MULTILINE):
            assert f'"{name}"' in code, f"{file.stem}.{name}"


def test_the_schema_is_all_migrations_applied() -> None:
    """One at a time or all at once, an empty file ends with the same tables and indexes."""
    with migrated() as whole, contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as stepped:
        steps = migrations()
        for count in range(1, len(steps) + 1):
            migrate(stepped, steps[:count])
        query = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"
        assert stepped.execute(query).fetchall() == whole.execute(query).fetchall()
        assert stepped.execute("PRAGMA user_version").fetchone() == (len(steps),)


def test_a_released_migration_never_changes() -> None:
    """What has been applied on somebody's box stays as it is; a change is a new file. (Pinned at each release.)"""
    names = [f"{step.number:04d}_{step.name}" for step in migrations()]
    assert names == [
        "0001_ledger",
        "0002_people",
        "0003_attempt_life",
        "0004_cash",
        "0005_strict_key",
        "0006_sandbox",
        "0007_epoch_names",
        "0008_originals",
        "0009_exactly_once",
        "0010_law",
        "0011_calendar",
        "0012_deferred",
        "0013_number_year",
        "0014_outages",
        "0015_take_over",
        "0016_relay_keys",
        "0017_machine_pair",
        "0018_isf_index",
        "0019_take_over_times",
        "0020_pair_taxpayer",
        "0021_key_rate",
        "0022_served_pair",
        "0023_number_indexes",
    ]


def test_money_and_time_are_whole_numbers() -> None:
    """Every table is STRICT, and no column holds a float."""
    with migrated() as connection:
        tables = connection.execute(
            "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        assert tables
        for name, strict in tables:
            assert strict, name
            types = {row[2] for row in connection.execute(f"PRAGMA table_info({name})")}
            assert types <= {"INTEGER", "TEXT", "BLOB"}, name
