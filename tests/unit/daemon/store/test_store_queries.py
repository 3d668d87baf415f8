"""SQL is in named blocks, every one of which the schema understands and some code uses."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from daemon.store import closures, codec
from daemon.store.migrations import Migration, migrate, migrations
from daemon.store.queries import load

ROOMS = sorted(Path(str(resources.files("daemon.store"))).joinpath("sql").glob("*.sql"))
PARTS = {
    "closures": {"columns": closures.COLUMNS},
    "verify": {"record": codec.RECORD_COLUMNS, "closure": closures.COLUMNS},
    "health": {"record": codec.RECORD_COLUMNS, "closure": closures.COLUMNS},
}
ALL = [
    pytest.param(block, id=f"{room.stem}.{name}")
    for room in ROOMS
    for name, block in load(room.stem, **PARTS.get(room.stem, {"columns": codec.RECORD_COLUMNS})).items()
]


@contextlib.contextmanager
def migrated(*steps: Migration):
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, list(steps) or migrations())
        yield connection


@pytest.mark.parametrize("block", ALL)
def test_every_block_is_one_statement_of_the_schema(block: str) -> None:
    """SQLite can compile it, and a look-up does not read a whole table that grows for ever."""
    with migrated() as connection:
        values = [None] * block.count("?")
        plan = connection.execute(f"EXPLAIN QUERY PLAN {block}", values).fetchall()
    scans = [detail for *_, detail in plan if re.match(r"SCAN (certification|checkpoint|closure)\b", detail)]
    assert not scans, scans


def test_no_name_stands_twice() -> None:
    """A second block of the same name would hide the first."""
    for room in ROOMS:
        names = Counter(re.findall(r"^-- name: (\w+)$", room.read_text("utf-8"), re.MULTILINE))
        assert max(names.values()) == 1, (room.name, names)


def test_every_block_is_used() -> None:
    """No SQL lies around that nothing runs."""
    code = "".join(path.read_text("utf-8") for path in ROOMS[0].parent.parent.glob("*.py"))
    for room in ROOMS:
        for name in re.findall(r"^-- name: (\w+)$", room.read_text("utf-8"), re.MULTILINE):
            assert f'"{name}"' in code, f"{room.stem}.{name}"


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
    assert names == ["0001_ledger"]


def test_money_and_time_are_whole_numbers() -> None:
    """Every table is STRICT, and no column holds a float."""
    with migrated() as connection:
        tables = connection.execute(
            "SELECT name, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        assert tables
        for name, strict in tables:
            assert strict, name
            types = {row[2] for row in connection.execute(f"PRAGMA table_info({name})")}
            assert types <= {"INTEGER", "TEXT", "BLOB"}, name
