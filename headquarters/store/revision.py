"""Revision of the register: each change makes a new one and excludes other changes meanwhile.

The upper half counts, the lower half is random, so that two histories of a restored database never have the same
revision. `TRAIL` contains the last ones: a database that does not descend from a known revision has lost data."""

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator
from functools import cache

from sqlalchemy import BigInteger, Case, ColumnElement, Connection, bindparam, case, cast, select, text, update
from sqlalchemy import Text as SqlText
from sqlalchemy.sql.dml import ReturningInsert

from headquarters.store import tables
from headquarters.store.database import Database, InsertOf, Part, StoreError, insert_new, insert_of, is_sqlite

REVISION, TRAIL = "revision", "trail"
MAX_TRAIL = 100
_DRAWN_BITS = 32
_CHANGING = 8_490_002
"""Advisory lock, since PostgreSQL lets new readers of a row pass a waiting writer."""
_REVISION = select(tables.meta.c.value).where(tables.meta.c.name == REVISION)
ARRIVAL = "arrival"
TRIES = 5


class RevisionLost(Exception):
    """The database does not descend from the known revision."""


class StaleRing(Exception):
    """Keys have changed since the signatures were verified: verify again."""


def revision_of(connection: Connection) -> int:
    return int(connection.scalar(_REVISION) or 0)


def check_descent(connection: Connection, last: int) -> int:
    """The current revision. Raises RevisionLost if the database does not descend from `last`; also if there were more than
    `MAX_TRAIL` changes since."""
    revision = revision_of(connection)
    if last not in (0, revision) and str(last) not in _trail(connection):
        raise RevisionLost
    return revision


def lock_revision(connection: Connection, looked_with: int | None) -> None:
    """Raises StaleRing if the keys are not those of `looked_with`. Waits for a running change, and blocks changes
    until this transaction ends."""
    if looked_with is None:
        return
    if not is_sqlite(connection):
        connection.execute(text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": _CHANGING})
    value = connection.scalar(_REVISION.with_for_update(read=True))
    if int(value or 0) != looked_with:
        raise StaleRing


@contextlib.contextmanager
def changing(database: Database) -> Iterator[Connection]:
    """A transaction with a new revision; no message verified with older keys is stored after it. An unneeded revision
    only costs one more reading of the keys."""
    with database.write() as connection:
        lock_exclusively(connection)
        count_up(connection)
        yield connection


def after(before: ColumnElement[int], now: int | ColumnElement[int]) -> Case[int]:
    """Time of a change (ms): now, but later than `before`, whatever the clock was."""
    return case((before >= now, before + 1), else_=now)


def lock_exclusively(connection: Connection) -> None:
    """Excludes other changes and readers of the revision until this transaction ends."""
    if not is_sqlite(connection):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CHANGING})


def count_up(connection: Connection, beyond: int = 0) -> None:
    """Sets a new revision, with the current one and `beyond` as predecessors."""
    insert_new(
        connection, tables.meta, [{"name": name, "value": value} for name, value in ((REVISION, "0"), (TRAIL, ""))]
    )
    before = int(connection.scalar(_REVISION.with_for_update()) or 0)
    following = ((max(before, beyond) >> _DRAWN_BITS) + 1 << _DRAWN_BITS) | secrets.randbits(_DRAWN_BITS)
    past = " ".join([*_trail(connection), str(before), *([str(beyond)] if beyond else [])][-MAX_TRAIL:])
    for name, value in ((REVISION, str(following)), (TRAIL, past)):
        connection.execute(update(tables.meta).where(tables.meta.c.name == name).values(value=value))


def _trail(connection: Connection) -> list[str]:
    return str(connection.scalar(select(tables.meta.c.value).where(tables.meta.c.name == TRAIL)) or "").split()


def next_arrival(connection: Connection, now: int) -> int:
    """The next arrival number; its row is locked until the transaction ends."""
    return int(connection.scalar(_arriving(insert_of(connection)), {"now": now}) or 0)


@cache
def _arriving(insert: InsertOf) -> ReturningInsert[tuple[str]]:
    """Cached: building the statement takes as long as executing it."""
    meta, now = tables.meta, bindparam("now", type_=BigInteger)
    following = after(cast(meta.c.value, BigInteger), now)
    statement = insert(meta).values(name=ARRIVAL, value=cast(now, SqlText))
    statement = statement.on_conflict_do_update(index_elements=["name"], set_={"value": cast(following, SqlText)})
    return statement.returning(meta.c.value)


class Settled:
    """State of a register, shared by stores of one process. `look` restores data that the database has lost and returns
    the settled revision; without it the database is trusted."""

    def __init__(self) -> None:
        self.look: Callable[[], int] | None = None
        self._revision = -1
        self._looking = threading.Lock()

    @contextlib.contextmanager
    def reading(self, database: Database) -> Iterator[Connection]:
        """One snapshot of a register without losses."""
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(database.read())
            for _ in range(TRIES):
                if self.look is None or revision_of(connection) == self._revision:
                    break
                stack.close()  # `look` may wait for others: release the connection
                with self._looking:
                    with database.read() as connection:
                        is_settled = revision_of(connection) == self._revision
                    if not is_settled:  # another thread may have done it
                        self._revision = self.look()
                connection = stack.enter_context(database.read())
            else:
                raise StoreError("the register changes faster than it can be read")
            yield connection


class RegisterPart(Part):
    """Queries on the register."""

    def __init__(self, database: Database, settled: Settled) -> None:
        super().__init__(database)
        self.settled = settled

    def _reading(self) -> contextlib.AbstractContextManager[Connection]:
        return self.settled.reading(self._database)
