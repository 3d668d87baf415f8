"""People after a restore: those disabled since the copy stay disabled, passwords changed since stay valid, and all
sessions end. The changes come from the audit logs of both ledgers after their last common entry; no clock is read."""

import contextlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from daemon.core.audit import Actor
from daemon.store.sqlite.file import UNREADABLE, load, open_to_read, value_of
from daemon.store.tables import audit
from daemon.store.tables.people import end_all_sessions

_SQL = load(__name__)


class Login(NamedTuple):
    """`password` is the hash; `disabled_at` is 0 for one who may log in."""

    role: str
    password: str
    disabled_at: int


def take_over_people(copy: sqlite3.Connection, replaced: Path, *, at: int, by: Actor) -> None:
    """Takes changes of the replaced ledger over into the copy; nothing if it cannot be read."""
    end_all_sessions(copy)
    for name, login in _changed(copy, replaced).items():
        copy.execute(_SQL["write"], (*login, name))
        action = "user.disabled" if login.disabled_at else "user.password_changed"
        audit.add(copy, action, f"user {name}", at=at, by=by)


def _changed(copy: sqlite3.Connection, replaced: Path) -> dict[str, Login]:
    """By name, in its order; only what is another one in the copy."""
    with contextlib.suppress(*UNREADABLE), closing(open_to_read(replaced)) as before:
        fork = _fork(copy, before)
        there, here, changed_here = _logins(before), _logins(copy), _changed_since(copy, fork)
        names = sorted(_changed_since(before, fork) & here.keys() & there.keys())
        logins = {name: newer(here[name], there[name], is_changed_in_both=name in changed_here) for name in names}
        return {name: login for name, login in logins.items() if login != here[name]}
    return {}


def newer(copy: Login, replaced: Login, *, is_changed_in_both: bool) -> Login:
    """The login of a person who was changed in the replaced ledger. If both ledgers changed it, disabled wins."""
    if is_changed_in_both and copy.disabled_at:
        return copy
    return replaced


def _fork(copy: sqlite3.Connection, replaced: sqlite3.Connection) -> int:
    """The last entry that both audit logs have; 0 for none. A chain that is equal at an entry is equal before it."""
    for entry, link in replaced.execute(_SQL["newest_first"]):
        if value_of(copy.execute(_SQL["hash"], (entry,)), b"") == link:
            return int(entry)
    return 0


def _changed_since(connection: sqlite3.Connection, entry: int) -> set[str]:
    return {name for (name,) in connection.execute(_SQL["changed"], (entry,))}


def _logins(connection: sqlite3.Connection) -> dict[str, Login]:
    return {name: Login(*login) for name, *login in connection.execute(_SQL["logins"])}
