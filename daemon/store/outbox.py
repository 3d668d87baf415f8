"""The outbox: rows for headquarters and webhooks, stored in the transaction of their subject."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from common.language.reasons import to_stored
from daemon.core.audit import DAEMON, Actor
from daemon.core.delivery import Backlog, Outgoing, Proof, WaitingEvent
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book
from daemon.core.ledger.chain import GENESIS
from daemon.core.ledger.entries import Gap
from daemon.store.sqlite.connection import SqliteConnection
from daemon.store.sqlite.file import OUTBOX, load, read_as
from daemon.store.sqlite.writer import Writer
from daemon.store.tables import audit
from daemon.store.tables.book.books import books_named, lineage_of
from daemon.store.tables.events import UPSTREAM
from daemon.store.tables.meta import Lineage, read_meta, write_meta

_SQL = load(OUTBOX)
WEBHOOKS = "webhooks"


@dataclass(eq=False)
class Outbox:
    """One destination's rows: the port of `usecases.replicate`, and the same for events."""

    writer: Writer
    reads: SqliteConnection
    destination: str = UPSTREAM

    async def backlog(self) -> Sequence[Backlog]:
        return await self.reads.run(partial(_backlog, destination=self.destination))

    async def waiting(self, nim: str, mode: Mode, limit: int) -> Sequence[Outgoing]:
        """Closures that are neither sent nor parked, by z_number."""
        waiting = partial(_waiting, destination=self.destination, nim=nim, mode=mode, limit=limit)
        return await self.reads.run(waiting)

    async def waiting_events(self, book: Book, limit: int) -> Sequence[WaitingEvent]:
        values = (self.destination, book.id, limit)
        return await self.reads.run(
            lambda connection: list(read_as(WaitingEvent, connection.execute(_SQL["waiting_events"], values)))
        )

    async def mark_sent(self, outgoing_id: int, *, at: int) -> None:
        await self._write("mark_sent", at, outgoing_id)

    async def mark_failed(self, outgoing_id: int, error: str, *, at: int, next_at: int) -> None:
        await self._write("mark_failed", to_stored(error), at, next_at, outgoing_id)

    async def park(self, outgoing_id: int, error: str, *, at: int) -> None:
        await self._write("park", to_stored(error), at, outgoing_id)

    async def offer_again(self, nim: str, mode: Mode, *, before: int) -> int:
        """What was parked before then (ms) waits again; how many. Nothing is written when there is nothing."""
        values = (self.destination, nim, mode, before)
        if not await self.reads.run(lambda connection: connection.execute(_SQL["count_parked"], values).fetchone()[0]):
            return 0
        return await self._write("offer_again", *values)

    async def replay(self, *, nim: str | None, from_z: int | None, at: int, by: Actor = DAEMON) -> int:
        """Queues parked rows, or all closures from a Z number on, again; returns how many. Audited if any."""
        name, values = ("replay_parked", ()) if from_z is None else ("replay_from", (from_z,))
        detail = ({"nim": nim} if nim else {}) | ({"from_z": str(from_z)} if from_z else {})

        def job(connection: sqlite3.Connection) -> int:
            again = connection.execute(_SQL[name], (self.destination, *values, nim, nim)).rowcount
            if again:
                fields = {"count": str(again), **detail}
                audit.add(connection, "outbox.replayed", self.destination, at=at, by=by, detail=fields)
            return again

        return await self.writer.submit(job)

    async def resend(self, nim: str, mode: Mode, from_z: int, to_z: int) -> int:
        """The same of one book, both ends included, as headquarters asks for it."""
        return await self._write("resend", self.destination, nim, mode, from_z, to_z)

    async def _write(self, name: str, *values: object) -> int:
        return await self.writer.submit(
            lambda connection: connection.execute(_SQL[name], values).rowcount,
        )


def refused_closures(connection: sqlite3.Connection, book: Book) -> dict[str, str]:
    """The book's closures that headquarters refused: report id to the stored reason."""
    return dict(connection.execute(_SQL["refused"], (UPSTREAM, book.id)))


class Resettled(msgspec.Struct, frozen=True):
    """Rows that go to a receiver under its new name, and rows never sent of receivers that are gone."""

    moved: int
    gone: int


def resettle(connection: sqlite3.Connection, webhooks: Mapping[str, str]) -> Resettled:
    """Fits the outbox to the configured `webhooks` (address by name). A webhook that was renamed keeps its rows; rows
    of a removed webhook are deleted. Upstream is not affected."""
    before = msgspec.json.decode(read_meta(connection, WEBHOOKS) or "{}", type=dict[str, str])
    moved = 0
    for name, url in webhooks.items():
        for old in {each for each, address in before.items() if address == url} - webhooks.keys():
            moved += connection.execute(_SQL["move"], (name, old)).rowcount
    destinations = [row[0] for row in connection.execute(_SQL["destinations"])]
    gone = [destination for destination in destinations if destination not in {UPSTREAM, *webhooks}]
    unsent = sum(connection.execute(_SQL["forget_unsent"], (destination,)).rowcount for destination in gone)
    for destination in gone:
        connection.execute(_SQL["forget_sent"], (destination,))
    if before != webhooks:
        write_meta(connection, WEBHOOKS, msgspec.json.encode(dict(webhooks)).decode())
    return Resettled(moved, unsent)


def _waiting(connection: sqlite3.Connection, destination: str, nim: str, mode: Mode, limit: int) -> list[Outgoing]:
    closures: list[Outgoing] = []
    for book_id in books_named(connection, nim, mode):
        lineage, values = lineage_of(connection, book_id), (destination, book_id, limit)
        closures += [_outgoing(row, lineage) for row in connection.execute(_SQL["waiting_closures"], values)]
        calendar = partial(Outgoing, lineage=(lineage.ledger_id, lineage.epoch))
        closures += read_as(calendar, connection.execute(_SQL["waiting_calendar"], values))
    return sorted(closures, key=attrgetter("id"))[:limit]


def _outgoing(row: tuple[Any, ...], lineage: Lineage) -> Outgoing:
    """`row` as `waiting_closures` has it."""
    closure_row, first_seq, last_seq, previous_id, previous_hash, *opening, gaps = row[9:]
    proof = Proof(
        ledger_id=lineage.ledger_id,
        epoch=max((each.number for each in lineage.epochs if each.after < closure_row), default=0),
        first_seq=first_seq,
        last_seq=last_seq,
        previous_report_id=previous_id,
        previous_head=GENESIS if previous_hash is None else previous_hash,
        opening=None if previous_id is None else (opening[0], opening[1], opening[2]),
        gaps=msgspec.json.decode(gaps, type=tuple[Gap, ...]),
    )
    return msgspec.structs.replace(Outgoing(*row[:9]), proof=proof)


def _backlog(connection: sqlite3.Connection, destination: str) -> list[Backlog]:
    return list(read_as(Backlog, connection.execute(_SQL["backlog"], {"destination": destination})))
