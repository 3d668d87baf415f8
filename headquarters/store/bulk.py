"""Many rows in one statement, in the words of each of the two databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

Row = dict[str, Any]


def is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """With `on_conflict_…`, which both have, each in its own dialect."""
    return sqlite.insert(table) if is_sqlite(connection) else postgresql.insert(table)


def insert_new(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Those that are there already stay as they are."""
    if rows:
        connection.execute(insert_into(connection, table).on_conflict_do_nothing(), rows)


def upsert(connection: Connection, table: Table, rows: Sequence[Row], replaced: Sequence[str]) -> None:
    """New rows, or where there is one with that primary key, its columns `replaced`. Each key once."""
    if rows:
        statement = insert_into(connection, table)
        values = {name: statement.excluded[name] for name in replaced}
        connection.execute(statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=values), rows)
