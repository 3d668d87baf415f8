"""People who log in, and their sessions; each change is in the audit log, in the same transaction. Times in ms."""

import sqlite3
from collections.abc import Mapping
from typing import Final

from common.language import Text
from daemon.core.audit import DAEMON, Actor
from daemon.core.clock import HOUR
from daemon.core.errors import InvalidRequest, NotFound
from daemon.core.people import Person, Role, Session
from daemon.store.sqlite.file import load, read_as
from daemon.store.tables import audit

IDLE_MS: Final = 12 * HOUR
"""Without a request, after which a session is over."""

_SQL = load(__name__)


def create_person(
    connection: sqlite3.Connection, name: str, role: Role, password: str, *, at: int, by: Actor = DAEMON
) -> None:
    """`password` is the hash. One who was disabled comes back. InvalidRequest when the name is taken."""
    if connection.execute(_SQL["again"], (role, password, name)).rowcount != 1:
        try:
            connection.execute(_SQL["insert"], (name, role, password, at))
        except sqlite3.IntegrityError:
            raise InvalidRequest.at("name", Text("is taken")) from None
    audit.add(connection, "user.created", f"user {name}", at=at, by=by, detail={"role": role})


def set_password(connection: sqlite3.Connection, name: str, password: str, *, at: int, by: Actor = DAEMON) -> None:
    """Ends their sessions. NotFound when there is none of that name who may log in."""
    _change(connection, "set_password", (password, name))
    audit.add(connection, "user.password_changed", f"user {name}", at=at, by=by)


def disable_person(connection: sqlite3.Connection, name: str, *, at: int, by: Actor = DAEMON) -> None:
    """At once: their sessions end. NotFound as above."""
    _change(connection, "disable", (at, name))
    audit.add(connection, "user.disabled", f"user {name}", at=at, by=by)


def _change(connection: sqlite3.Connection, block: str, values: tuple[str | int, str]) -> None:
    name = values[1]
    if connection.execute(_SQL[block], values).rowcount != 1:
        raise NotFound(Text("there is no user {name}", name=name))
    connection.execute(_SQL["end_sessions"], (name,))


def list_people(connection: sqlite3.Connection) -> list[Person]:
    """By name, those that were disabled included."""
    return list(read_as(Person, connection.execute(_SQL["list"])))


def find_person(connection: sqlite3.Connection, name: str) -> tuple[Person, str] | None:
    """With the hash of the password."""
    row = connection.execute(_SQL["by_name"], (name,)).fetchone()
    return None if row is None else (Person(*row[:-1]), row[-1])


# -- sessions -----------------------------------------------------------------------------------------------------------------


def open_session(
    connection: sqlite3.Connection, person_id: int, name: str, digest: bytes, *, at: int, by: Actor = DAEMON
) -> None:
    connection.execute(_SQL["open_session"], (digest, person_id, at, at, by.address))
    audit.add(connection, "user.logged_in", f"user {name}", at=at, by=by)


def find_session(connection: sqlite3.Connection, digest: bytes) -> Session | None:
    """None when it was ended, or its person disabled."""
    return next(read_as(Session, connection.execute(_SQL["session"], (digest,))), None)


def end_session(connection: sqlite3.Connection, digest: bytes, *, at: int, by: Actor = DAEMON) -> None:
    session = find_session(connection, digest)
    if session is not None:
        connection.execute(_SQL["end_session"], (digest,))
        audit.add(connection, "user.logged_out", f"user {session.name}", at=at, by=by)


def note_session_uses(connection: sqlite3.Connection, uses: Mapping[bytes, int], idle_before: int) -> None:
    """When each session was used last; those that were not used since `idle_before` (ms) end."""
    connection.executemany(_SQL["touch"], [(at, digest) for digest, at in uses.items()])
    connection.execute(_SQL["end_idle"], (idle_before,))


def end_all_sessions(connection: sqlite3.Connection) -> None:
    """A copy of the ledger has sessions that have ended since."""
    connection.execute(_SQL["end_all_sessions"])
