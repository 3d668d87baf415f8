"""A SQLite or PostgreSQL database: connections, durable transactions, migration, and statements for many rows."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Select, Table, Update, create_engine, event, text
from sqlalchemy import Row as RowOfQuery
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError

from headquarters.store.tables import HEAD, NewerVersion, upgrade, version_of

POOL = {"pool_size": 12, "max_overflow": -1}
"""Connections that are kept. Each thread needs one: their number is the limit."""
READ_AT_ONCE = 1000
"""Rows of a long result in memory at a time."""
BUSY_SECONDS = 20
WAL_AGAIN_SECONDS = 0.02
MIGRATING = 8_490_001
"""Advisory lock: instances that start together migrate one after the other."""

LEAST_ROOM = 256 * 1024
"""Bytes without which SQLite cannot work."""

Row = dict[str, Any]
T = TypeVar("T")
InsertOf = Callable[[Table], sqlite.Insert | postgresql.Insert]


class StoreError(Exception):
    """The database is unusable at the moment; nothing of the call was stored."""


class BadContent(StoreError):
    """The database rejects a value, and would reject it again."""


class BadUrl(ValueError):
    """Not a usable database URL; the message has the reason and never a password."""


def parse_url(text_url: str) -> URL:
    """Accepts `sqlite:///FILE` and `postgresql://…`. Raises BadUrl."""
    try:
        url = make_url(text_url)
    except (ArgumentError, ValueError):  # the port is not a number
        raise BadUrl("not a URL; sqlite:///FILE or postgresql://USER@HOST/DATABASE") from None
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername != "sqlite":
        raise BadUrl(f"{url.drivername} is neither sqlite nor postgresql")
    if not url.database or url.database == ":memory:":
        raise BadUrl("sqlite needs a file: sqlite:////var/lib/mcfd-hq/hq.sqlite3")
    return url


class Database:
    """Thread-safe. Database errors are raised as StoreError."""

    def __init__(self, url: str) -> None:
        parsed = parse_url(url)
        self.is_sqlite = parsed.drivername == "sqlite"
        self._folder = Path(parsed.database).absolute().parent if self.is_sqlite and parsed.database else None
        self.engine = _sqlite(parsed) if self.is_sqlite else _postgresql(parsed)
        one_snapshot = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        self._reading = self.engine.execution_options(reading=True, **one_snapshot)

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction, durable when it ends; on SQLite there is only one writer."""
        with _store_errors(self._folder), self.engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """One snapshot; waits for no writer."""
        with _store_errors(self._folder), self._reading.begin() as connection:
            yield connection

    def rows(self, kind: Callable[..., T], query: Select[Any]) -> list[T]:
        """Each row as `kind`, with the columns as keyword arguments."""
        with self.read() as connection:
            return [kind(**row) for row in connection.execute(query).mappings()]

    def found(self, query: Select[Any]) -> Sequence[RowOfQuery[Any]]:
        """Rows with the columns as attributes."""
        with self.read() as connection:
            return connection.execute(query).all()

    def scalar(self, query: Select[T]) -> T | None:
        with self.read() as connection:
            return connection.scalar(query)

    def update_one(self, statement: Update) -> bool:
        """False if no row matches."""
        with self.write() as connection:
            return connection.execute(statement).rowcount == 1

    def migrate(self, settle: Callable[[Connection], None]) -> None:
        """From any older version, and `settle` in the same transaction; concurrent instances migrate one after the
        other. Raises StoreError if the tables are newer."""
        with self.read() as connection:
            if version_of(connection) == HEAD:
                return
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATING})
            try:
                upgrade(connection)
                settle(connection)
            except NewerVersion as error:
                raise StoreError(f"the tables are of a newer version ({error}) than this program") from None

    def close(self) -> None:
        self.engine.dispose()


class Part:
    """Queries on one subject."""

    def __init__(self, database: Database) -> None:
        self._database = database


@contextlib.contextmanager
def _store_errors(folder: Path | None) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        raise BadContent(_reason(error.orig)) from error
    except UnicodeEncodeError as error:  # a command-line argument that is not UTF-8
        raise BadContent(error.reason) from error
    except DBAPIError as error:
        raise StoreError(_reason(error.orig) + (_disk_fault(folder) if folder else "")) from error


def _disk_fault(folder: Path) -> str:
    """Why nothing can be written there, which SQLite does not say; empty if there is room."""
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        return f" ({folder}: {error.strerror})"
    if disk.f_flag & os.ST_RDONLY:
        return f" ({folder} is read-only)"
    return f" (the disk of {folder} is full)" if disk.f_bavail * disk.f_frsize < LEAST_ROOM else ""


def _reason(error: BaseException | None) -> str:
    """The first line of the message; the rest is SQL with values."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False}, **POOL)

    @event.listens_for(engine, "connect")
    def settle(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver starts no transactions
        _use_wal(connection, engine.dialect.loaded_dbapi.OperationalError)
        for pragma in ("synchronous = FULL", "foreign_keys = ON", "cache_size = -16000"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        reading = connection.get_execution_options().get("reading", False)
        # A writer locks at once: a transaction that reads first could be rejected at its first write.
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _use_wal(connection: Any, locked: type[Exception]) -> None:
    """Retries, since SQLite does not wait for another connection that switches a new file to WAL at the same time."""
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
        **POOL,
        pool_pre_ping=True,  # a connection from before a restart of PostgreSQL is replaced before its use
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
    """Chunks limited by statement size and memory."""
    for first in range(0, len(rows), READ_AT_ONCE):
        yield rows[first : first + READ_AT_ONCE]


def is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


def insert_of(connection: Connection) -> InsertOf:
    """The dialect's insert; both have `on_conflict_…`."""
    return sqlite.insert if is_sqlite(connection) else postgresql.insert


def insert_new(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Inserts rows; existing ones stay unchanged."""
    if rows:
        connection.execute(insert_of(connection)(table).on_conflict_do_nothing(), rows)


def upsert(connection: Connection, table: Table, rows: Sequence[Row], replaced: Sequence[str]) -> None:
    """Inserts rows; if the primary key exists, updates the columns `replaced`. Each key may occur once."""
    if rows:
        connection.execute(_upserting(insert_of(connection), table, tuple(replaced)), rows)


@cache
def _upserting(insert: InsertOf, table: Table, replaced: tuple[str, ...]) -> sqlite.Insert | postgresql.Insert:
    """Cached: building the statement takes as long as executing it."""
    statement = insert(table)
    values = {name: statement.excluded[name] for name in replaced}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=values)
