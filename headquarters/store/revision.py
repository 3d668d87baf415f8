"""The revision of the register: every change has one of its own, and is alone while it is made.

It counts up, and its lower half is drawn, so that two histories of a database that was put back never have the same one. `TRAIL` are the last
ones: a database that has not come from a known revision has lost something."""

from __future__ import annotations

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
MOST_TRAIL = 100
_DRAWN_BITS = 32
_CHANGING = 8_490_002
"""The advisory lock. Not the row alone: PostgreSQL lets new readers of a row pass a waiting writer, for as long as they come."""
_REVISION = select(tables.meta.c.value).where(tables.meta.c.name == REVISION)
ARRIVAL = "arrival"
TRIES = 5


class PutBack(Exception):
    """The database has not come from the revision that is known."""


class StaleRing(Exception):
    """Keys were added or revoked since these signatures were looked at: look again."""


def revision_of(connection: Connection) -> int:
    return int(connection.scalar(_REVISION) or 0)


def check_descent(connection: Connection, last: int) -> int:
    """The revision; PutBack when the database has not gone on from the one that is known. It has kept the last `MOST_TRAIL` alone, so that the same
    is said of one that was changed very often meanwhile."""
    revision = revision_of(connection)
    if last not in (0, revision) and str(last) not in _trail(connection):
        raise PutBack
    return revision


def hold_revision(connection: Connection, looked_with: int | None) -> None:
    """StaleRing unless the keys are those of that revision, and none is added or revoked before this transaction ends. A change of
    them is waited for first."""
    if looked_with is None:
        return
    if not is_sqlite(connection):
        connection.execute(text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": _CHANGING})
    value = connection.scalar(_REVISION.with_for_update(read=True))
    if int(value or 0) != looked_with:
        raise StaleRing


@contextlib.contextmanager
def changing(database: Database) -> Iterator[Connection]:
    """A transaction that changes the register, under a revision of its own; no word that an old key has signed is on its way any more. Also when
    nothing changes: the price is one more look at the keys."""
    with database.write() as connection:
        be_alone(connection)
        count_up(connection)
        yield connection


def after(before: ColumnElement[int], now: int | ColumnElement[int]) -> Case[int]:
    """The time of a change (ms): now, but always later than that of the one before, whatever the clock was then."""
    return case((before >= now, before + 1), else_=now)


def be_alone(connection: Connection) -> None:
    """Until this transaction ends, no other one changes the register or has its revision."""
    if not is_sqlite(connection):
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CHANGING})


def count_up(connection: Connection, beyond: int = 0) -> None:
    """The next revision, which comes from `beyond` as well."""
    insert_new(
        connection, tables.meta, [{"name": name, "value": value} for name, value in ((REVISION, "0"), (TRAIL, ""))]
    )
    before = int(connection.scalar(_REVISION.with_for_update()) or 0)
    following = ((max(before, beyond) >> _DRAWN_BITS) + 1 << _DRAWN_BITS) | secrets.randbits(_DRAWN_BITS)
    past = " ".join([*_trail(connection), str(before), *([str(beyond)] if beyond else [])][-MOST_TRAIL:])
    for name, value in ((REVISION, str(following)), (TRAIL, past)):
        connection.execute(update(tables.meta).where(tables.meta.c.name == name).values(value=value))


def _trail(connection: Connection) -> list[str]:
    return str(connection.scalar(select(tables.meta.c.value).where(tables.meta.c.name == TRAIL)) or "").split()


def next_arrival(connection: Connection, now: int) -> int:
    """ClosureRecord until the transaction ends."""
    return int(connection.scalar(_arriving(insert_of(connection)), {"now": now}) or 0)


@cache
def _arriving(insert: InsertOf) -> ReturningInsert[tuple[str]]:
    """Made once: making it takes as long as executing it."""
    meta, now = tables.meta, bindparam("now", type_=BigInteger)
    following = after(cast(meta.c.value, BigInteger), now)
    statement = insert(meta).values(name=ARRIVAL, value=cast(now, SqlText))
    statement = statement.on_conflict_do_update(index_elements=["name"], set_={"value": cast(following, SqlText)})
    return statement.returning(meta.c.value)


class Settled:
    """`look` makes good what the database has lost, and says up to which revision; without it the database is believed. `beside`: of the same program,
    which reads by other connections."""

    def __init__(self, database: Database, beside: Settled | None = None) -> None:
        self._database = database
        self.state: _RevisionState = beside.state if beside is not None else _RevisionState()

    def look_by(self, look: Callable[[], int]) -> None:
        self.state.look = look

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """One snapshot of a register that lacks nothing of what is known here."""
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(self._database.read())
            for _ in range(TRIES):
                if self.state.look is None or revision_of(connection) == self.state.revision:
                    break
                stack.close()  # no waiter looks while a connection is in use
                self._settle(self.state.look)
                connection = stack.enter_context(self._database.read())
            else:
                raise StoreError("the register changes faster than it can be read")
            yield connection

    def _settle(self, look: Callable[[], int]) -> None:
        with self.state.looking:
            with self._database.read() as connection:
                is_settled = revision_of(connection) == self.state.revision
            if not is_settled:  # by the first
                self.state.revision = look()


class RegisterPart(Part):
    """What is asked of the register."""

    def __init__(self, database: Database, settled: Settled | None = None) -> None:
        super().__init__(database)
        self.settled = settled or Settled(database)


class _RevisionState:
    def __init__(self) -> None:
        self.revision = -1
        self.looking = threading.Lock()
        self.look: Callable[[], int] | None = None
