"""Many rows in one statement, as each of the two databases takes them best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    any_,
    func,
    literal,
    select,
)
from sqlalchemy import column as sql_column
from sqlalchemy import values as sql_values
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import ARRAY

Row = dict[str, Any]
_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy's own


def is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


def among(connection: Connection, column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    """`column` is one of them; one parameter on PostgreSQL, however many they are."""
    if is_sqlite(connection):
        return column.in_(values)
    return column == any_(_as_array(values, column))


def with_keys(
    connection: Connection, key: tuple[Column[Any], Column[Any]], values: Sequence[tuple[Any, Any]], column: Column[Any]
) -> Select[Any]:
    """The key and `column` of each row that has one of these keys; by the key's index, however many rows there are."""
    wanted: FromClause
    if is_sqlite(connection):
        named = [sql_column(name, part.type) for name, part in zip("ab", key, strict=True)]
        wanted = sql_values(*named, name="wanted").data(list(values)).cte("wanted")
    else:
        arrays = [_as_array([value[n] for value in values], part) for n, part in enumerate(key)]
        wanted = func.unnest(*arrays).table_valued("a", "b").render_derived(name="wanted")
    return select(*key, column).where(key[0] == wanted.c.a, key[1] == wanted.c.b)


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """With `on_conflict_…`, which both have, each in its own dialect."""
    return sqlite.insert(table) if is_sqlite(connection) else postgresql.insert(table)


def insert_new(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Those that are there already stay as they are."""
    if is_sqlite(connection):
        connection.execute(sqlite.insert(table).on_conflict_do_nothing(), rows)
    elif rows:
        _insert(connection, table, rows, "DO NOTHING")


def insert_all(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """New rows, with the same columns each; by COPY where there is one."""
    if is_sqlite(connection):
        connection.execute(table.insert(), rows)
        return
    names = list(rows[0])
    driver: Any = connection.connection.driver_connection
    order = f"COPY {_named(table)} ({_listed(table, names)}) FROM STDIN (FORMAT BINARY)"
    with driver.cursor() as cursor, cursor.copy(order) as copy:
        copy.set_types([_type(table.c[name]) for name in names])
        for row in rows:
            copy.write_row([row[name] for name in names])


def write_all(connection: Connection, table: Table, rows: Sequence[Row], replaced: Sequence[str]) -> None:
    """New rows, or where there is one with that primary key, its columns `replaced`. Each key once."""
    if not rows:
        return
    key = [column.name for column in table.primary_key]
    if is_sqlite(connection):
        statement = sqlite.insert(table)
        new = {name: statement.excluded[name] for name in replaced}
        connection.execute(statement.on_conflict_do_update(index_elements=key, set_=new), rows)
        return
    new_values = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in replaced)
    _insert(connection, table, rows, f"({_listed(table, key)}) DO UPDATE SET {new_values}")


def _insert(connection: Connection, table: Table, rows: Sequence[Row], conflict: str) -> None:
    """An array for each column, in one statement however many rows there are."""
    names = list(rows[0])
    arrays = ", ".join(f"%s::{_type(table.c[name])}[]" for name in names)
    statement = (
        f"INSERT INTO {_named(table)} ({_listed(table, names)}) SELECT * FROM unnest({arrays}) "  # noqa: S608  # names of our own tables
        f"ON CONFLICT {conflict}"
    )
    connection.exec_driver_sql(statement, tuple([row[name] for row in rows] for name in names))


def _as_array(values: Sequence[Any], column: ColumnElement[Any]) -> ColumnElement[Any]:
    return literal(list(values), ARRAY(column.type))


def _type(column: Column[Any]) -> str:
    return column.type.compile(_POSTGRESQL).lower()


def _quoted(name: str) -> str:
    return _POSTGRESQL.identifier_preparer.quote(name)


def _named(table: Table) -> str:
    return _quoted(table.name)


def _listed(table: Table, names: Sequence[str]) -> str:
    return ", ".join(_quoted(table.c[name].name) for name in names)
