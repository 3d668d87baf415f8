"""The last word of each box, and what its books are told by it."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from exchange.closure import Mode
from exchange.instants import instant_millis
from exchange.presence import Presence, Wanted
from headquarters.core.finding import Kind
from headquarters.core.held import machine_of
from headquarters.core.presence_checks import facts_of
from headquarters.store import tables
from headquarters.store.closures import Book, StaleRing, lock_books, missing_of, settle_gaps_of
from headquarters.store.database import Database
from headquarters.store.findings import keep_fact, settle_passing
from headquarters.store.register import revision_of

TOLD_BY_PRESENCE: tuple[Kind, ...] = ("tax-server", "version", "clock")


class LastWord(msgspec.Struct, frozen=True):
    machine: str
    received_at: int
    presence: Presence


class Presences:
    def __init__(self, database: Database) -> None:
        self._database = database

    def take(
        self,
        presence: Presence,
        *,
        now: int,
        content: bytes,
        newest_version: str = "",
        quiet: int = 0,
        revision: int | None = None,
    ) -> list[Wanted]:
        """Kept when it is newer than the last, with what it shows; and what has to be asked of the box.

        A book that got a closure less than `quiet` milliseconds ago is being sent, and nothing is asked of it; with `quiet`
        below 0 nothing is asked at all. StaleRing as for closures."""
        machine = machine_of(presence.nim)
        with self._database.write() as connection:
            if revision is not None and revision_of(connection) != revision:
                raise StaleRing
            book = lock_books(connection, [(machine, presence.mode)])[machine, presence.mode]
            if _keep(connection, machine, presence, now, content):
                self._settle(connection, book, presence, now, newest_version)
            return _wanted(connection, machine, now, quiet)

    def _settle(self, connection: Connection, book: Book, presence: Presence, now: int, newest: str) -> None:
        at = instant_millis(presence.at, "at")
        told = presence.z if presence.waiting == 0 else min(presence.z, book.max_z)
        before = book.told_z
        book.told_z = max(before, told)
        if book.told_z != before:
            mine = (tables.book.c.machine == book.machine, tables.book.c.mode == book.mode)
            connection.execute(update(tables.book).where(*mine).values(told_z=book.told_z))
        settle_gaps_of(connection, book, now)
        last = book.around.get(book.max_z)
        facts = list(facts_of(presence, at=at, now=now, newest=newest, last=last, closed_at=book.closed_at))
        passing = [fact for fact in facts if fact.kind in TOLD_BY_PRESENCE]
        settle_passing(connection, book.key, (*TOLD_BY_PRESENCE, "late"), passing, now)
        for fact in facts:
            if fact.kind not in TOLD_BY_PRESENCE:
                keep_fact(connection, book.key, presence.nim, fact, now)

    def last_words(self, machines: list[str] | None = None) -> dict[str, LastWord]:
        table = tables.presence
        query = select(table.c.machine, table.c.received_at, table.c.body)
        if machines is not None:
            query = query.where(table.c.machine.in_(machines))
        with self._database.read() as connection:
            return {row[0]: _last_word(*row) for row in connection.execute(query)}


def _last_word(machine: str, received_at: int, body: bytes) -> LastWord:
    return LastWord(machine, received_at, msgspec.json.decode(body, type=Presence))


def _keep(connection: Connection, machine: str, presence: Presence, now: int, content: bytes) -> bool:
    """False when a later one is here already: two ways upstream need not agree on the order. By the box's clock, unless that
    was set back: one that is heard an hour after the last counts as the newer."""
    insert = sqlite_insert if connection.dialect.name == "sqlite" else postgresql_insert
    table = tables.presence
    row = {"machine": machine, "at": instant_millis(presence.at, "at"), "received_at": now, "body": content}
    statement = insert(table)
    new = statement.excluded
    newer = (new.at >= table.c.at) | (new.received_at > table.c.received_at + 3_600_000)
    replace = statement.on_conflict_do_update(
        index_elements=["machine"], set_={name: new[name] for name in ("at", "received_at", "body")}, where=newer
    )
    return connection.execute(replace, row, execution_options={"preserve_rowcount": True}).rowcount == 1


def _wanted(connection: Connection, machine: str, now: int, quiet: int) -> list[Wanted]:
    """From the first that is missing on, of each book."""
    if quiet < 0:
        return []
    modes: tuple[Mode, ...] = ("live", "test")
    table = tables.book.c
    held = {row.mode: row for row in connection.execute(select(tables.book).where(table.machine == machine))}
    wanted = []
    for mode in modes:
        row = held.get(mode)
        if row is None or row.held == max(row.max_z, row.told_z) or now - row.received_at < quiet:
            continue
        ranges = missing_of(connection, (machine, mode), max(row.max_z, row.told_z))
        wanted.append(Wanted(mode, ranges[0][0]))
        mine = (table.machine == machine, table.mode == mode)
        connection.execute(update(tables.book).where(*mine).values(asked_at=now))
    return wanted
