"""One database, SQLite or PostgreSQL: its connections, transactions that are durable when they end, its migrations, and many rows in one
statement."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Select, Table, Update, create_engine, event, text
from sqlalchemy import Row as RowOfQuery
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from headquarters.store.tables import HEAD, NewerVersion, upgrade, version_of

POOL = 6
READ_AT_ONCE = 1000
"""Rows of a long answer that are in memory at a time."""
BUSY_SECONDS = 20
WAL_AGAIN_SECONDS = 0.02
MIGRATING = 8_490_001
"""The advisory lock: two instances that start at once migrate one after the other."""

Row = dict[str, Any]
T = TypeVar("T")
InsertOf = Callable[[Table], sqlite.Insert | postgresql.Insert]


class StoreError(Exception):
    """The database cannot be used now; nothing of the call was stored."""


class BadContent(StoreError):
    """The database refuses a value, and will refuse it again."""


class BadUrl(ValueError):
    """Not the URL of a database that headquarters can use; says why, and shows no password."""


def parse_url(text_url: str) -> URL:
    """`sqlite:///FILE` or `postgresql://…`."""
    try:
        url = make_url(text_url)
    except (ArgumentError, ValueError):  # a port that is no number
        raise BadUrl("not a URL; sqlite:///FILE or postgresql://USER@HOST/DATABASE") from None
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername != "sqlite":
        raise BadUrl(f"{url.drivername} is neither sqlite nor postgresql")
    if not url.database or url.database == ":memory:":
        raise BadUrl("sqlite needs a file: sqlite:////var/lib/mcfd-hq/hq.sqlite3")
    return url


class Database:
    """For any number of threads. Errors of the database itself come out as StoreError."""

    def __init__(self, url: str) -> None:
        parsed = parse_url(url)
        self.is_sqlite = parsed.drivername == "sqlite"
        self.engine = _sqlite(parsed) if self.is_sqlite else _postgresql(parsed)
        one_snapshot = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._reading = self.engine.execution_options(reading=True, **one_snapshot)

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction, on disk when it ends; on SQLite the only one that writes."""
        with _store_errors(), self.engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """One snapshot, which waits for no writer."""
        with _store_errors(), self._reading.begin() as connection:
            yield connection

    def rows(self, kind: Callable[..., T], query: Select[Any]) -> list[T]:
        """Each row as `kind`, whose fields are called as the columns."""
        with self.read() as connection:
            return [kind(**row) for row in connection.execute(query).mappings()]

    def found(self, query: Select[Any]) -> Sequence[RowOfQuery[Any]]:
        """Each row with the names of the columns."""
        with self.read() as connection:
            return connection.execute(query).all()

    def scalar(self, query: Select[T]) -> T | None:
        with self.read() as connection:
            return connection.scalar(query)

    def update_one(self, statement: Update) -> bool:
        """False when there is no such row."""
        with self.write() as connection:
            return connection.execute(statement).rowcount == 1

    def migrate(self) -> None:
        """From any version on; at once with other instances, one after the other."""
        with self.read() as connection:
            if version_of(connection) == HEAD:
                return
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATING})
            try:
                upgrade(connection)
            except NewerVersion as error:
                raise StoreError(f"the tables are of a newer version ({error}) than this program") from None

    def close(self) -> None:
        self.engine.dispose()


class Part:
    """What is asked of one database about one matter."""

    def __init__(self, database: Database) -> None:
        self._database = database


@contextlib.contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except PoolTimeout as error:
        raise StoreError("every connection is in use") from error
    except DataError as error:
        raise BadContent(_reason(error.orig)) from error
    except UnicodeEncodeError as error:  # of a command line that is no UTF-8
        raise BadContent(error.reason) from error
    except DBAPIError as error:
        raise StoreError(_reason(error.orig)) from error


def _reason(error: BaseException | None) -> str:
    """Its first line: the rest is SQL and its values."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})

    @event.listens_for(engine, "connect")
    def settle(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        _use_wal(connection, engine.dialect.loaded_dbapi.OperationalError)
        for pragma in ("synchronous = FULL", "foreign_keys = ON", "cache_size = -16000"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        reading = connection.get_execution_options().get("reading", False)
        # A writer takes the lock at once: one that reads first and writes then can be refused in the middle.
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _use_wal(connection: Any, locked: type[Exception]) -> None:
    """SQLite does not wait for another connection that does the same in a new file at that moment; so we do."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except locked:
            if time.monotonic() > deadline:
                raise
            time.sleep(WAL_AGAIN_SECONDS)
        else:
            return


def _postgresql(url: URL) -> Engine:
    return create_engine(
        url,
        pool_size=POOL,
        max_overflow=0,
        pool_timeout=BUSY_SECONDS,
        isolation_level="READ COMMITTED",
        connect_args={
            "connect_timeout": 5,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 4,
            "tcp_user_timeout": 30_000,
            "options": "-c lock_timeout=20s -c idle_in_transaction_session_timeout=60s",
        },
    )


def parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """So many at a time as a statement takes, and the memory."""
    for first in range(0, len(rows), READ_AT_ONCE):
        yield rows[first : first + READ_AT_ONCE]


def is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


def insert_of(connection: Connection) -> InsertOf:
    """With `on_conflict_…`, which both have, each in its own dialect."""
    return sqlite.insert if is_sqlite(connection) else postgresql.insert


def insert_new(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Those that are there already stay as they are."""
    if rows:
        connection.execute(insert_of(connection)(table).on_conflict_do_nothing(), rows)


def upsert(connection: Connection, table: Table, rows: Sequence[Row], replaced: Sequence[str]) -> None:
    """New rows, or where there is one with that primary key, its columns `replaced`. Each key once."""
    if rows:
        connection.execute(_upserting(insert_of(connection), table, tuple(replaced)), rows)


@cache
def _upserting(insert: InsertOf, table: Table, replaced: tuple[str, ...]) -> sqlite.Insert | postgresql.Insert:
    """Made once: making it takes as long as executing it."""
    statement = insert(table)
    values = {name: statement.excluded[name] for name in replaced}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=values)
