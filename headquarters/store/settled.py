"""Nothing that a running program has known of the register is forgotten when its database is put back, or another one takes its place.

Whatever decides by the register who may do what reads by `reading`: when the revision there is not the one that was looked at last, it is looked
at first what the database has lost, and that comes back before anything of it is used."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from sqlalchemy import Connection

from headquarters.store.database import Database, StoreError
from headquarters.store.revision import revision_of

TRIES = 5


class Settled:
    """`look` makes good what the database has lost, and says up to which revision; without it the database is believed. `beside`: of the same program,
    which reads by other connections."""

    def __init__(self, database: Database, beside: Settled | None = None) -> None:
        self._database = database
        self.known: _Known = beside.known if beside is not None else _Known()

    def look_by(self, look: Callable[[], int]) -> None:
        self.known.look = look

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """One snapshot of a register that lacks nothing of what is known here."""
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(self._database.read())
            for _ in range(TRIES):
                if self.known.look is None or revision_of(connection) == self.known.revision:
                    break
                stack.close()  # nobody looks while a connection is held
                self._settle(self.known.look)
                connection = stack.enter_context(self._database.read())
            else:
                raise StoreError("the register changes faster than it can be read")
            yield connection

    def _settle(self, look: Callable[[], int]) -> None:
        with self.known.looking:
            with self._database.read() as connection:
                is_settled = revision_of(connection) == self.known.revision
            if not is_settled:  # by whoever was first
                self.known.revision = look()


class _Known:
    def __init__(self) -> None:
        self.revision = -1
        self.looking = threading.Lock()
        self.look: Callable[[], int] | None = None
