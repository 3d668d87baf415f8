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
    """`look` makes good what the database has lost, and says up to which revision; without it the database is believed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._looking = threading.Lock()
        self._revision = -1
        self.look: Callable[[], int] | None = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """One snapshot of a register that lacks nothing of what is known here."""
        with contextlib.ExitStack() as stack:
            connection = stack.enter_context(self._database.read())
            for _ in range(TRIES):
                if self.look is None or revision_of(connection) == self._revision:
                    break
                stack.close()  # nobody looks while a connection is held
                self._settle(self.look)
                connection = stack.enter_context(self._database.read())
            else:
                raise StoreError("the register changes faster than it can be read")
            yield connection

    def _settle(self, look: Callable[[], int]) -> None:
        with self._looking:
            with self._database.read() as connection:
                is_settled = revision_of(connection) == self._revision
            if not is_settled:  # by whoever was first
                self._revision = look()
