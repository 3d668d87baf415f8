"""The last presence of each box and its statements about the books; stored in batches, in one transaction."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, func, or_, select, update

from common.wire.instants import instant_millis
from common.wire.presence import Presence, WantedClosures
from headquarters.core import checks
from headquarters.core.checks import RequestedRange, facts_of, ledger_facts, machine_of
from headquarters.core.lateness import BootSpan, two_at_once, with_presence
from headquarters.core.wording import Fact
from headquarters.store import tables
from headquarters.store.book.books import Key, LockedBook, book_of, lock_books, missing_of, settle_gaps, update_books
from headquarters.store.database import Part, upsert
from headquarters.store.findings import add_fact, settle_passing
from headquarters.store.revision import lock_revision

PRESENCE_KINDS = ("tax-server", "version", "clock", "deferred")
FORGETS_MILLIS = 3_600_000


class StoredPresence(msgspec.Struct, frozen=True):
    machine: str
    received_at: int
    """ms"""
    body: bytes
    """original JSON"""

    @property
    def presence(self) -> Presence:
        return msgspec.json.decode(self.body, type=Presence)


class ReceivedPresence(msgspec.Struct, frozen=True):
    """A presence and its original bytes. No closures are requested of a book that received one less than `quiet` ms
    ago, because more are in transit; a negative `quiet` requests nothing."""

    presence: Presence
    content: bytes
    key_id: str
    """id of the signing key"""
    quiet: int = 0
    heard_at: int | None = None
    """When it arrived (ms), if it waited in a stream; None: now."""
    counts: bool = True
    """The returned ranges count as requested, because the box receives them in its answer."""

    @property
    def machine(self) -> str:
        return machine_of(self.presence.nim)

    @property
    def book(self) -> Key:
        return self.machine, self.presence.mode

    @property
    def at(self) -> int:
        """Time by the box's clock, in ms."""
        return instant_millis(self.presence.at, "at")


class Presences(Part):
    def store(
        self, presences: Sequence[ReceivedPresence], *, now: int, newest_version: str = "", revision: int | None = None
    ) -> list[list[WantedClosures]]:
        """Stores each presence that is newer than the last of its box, with its findings. Returns the closures to
        request, per presence. Raises StaleRing like `Closures.take`."""
        with self._database.write() as connection:
            lock_revision(connection, revision)
            books = lock_books(connection, sorted({received.book for received in presences}))
            fresh = _newer(connection, books, presences, now)
            _settle(connection, books, fresh, now, newest_version)
            _settle_clones(connection, presences, now)
            return _wanted(connection, presences, now)

    def last_z(self, machine: str, mode: str) -> int:
        """The last known Z number, received or stated by the box; 0 if there is none."""
        book, stated, closure = tables.book.c, tables.presence.c, tables.closure.c
        of_book = select(book.max_z, book.last_z).where(book.machine == machine, book.mode == mode)
        # Includes replaced ledgers: a machine never uses a number twice.
        of_all = select(func.max(closure.z)).where(closure.machine == machine, closure.mode == mode)
        with self._database.read() as connection:
            numbers: list[int] = [*(connection.execute(of_book).first() or ()), connection.scalar(of_all) or 0]
            body = connection.scalar(select(stated.body).where(stated.machine == machine))
        presence = msgspec.json.decode(body, type=Presence) if body else None
        return max(*numbers, presence.z if presence is not None and presence.mode == mode else 0)

    def latest(self, machines: Sequence[str] | None = None) -> dict[str, StoredPresence]:
        table = tables.presence.c
        query = select(table.machine, table.received_at, table.body)
        if machines is not None:
            query = query.where(table.machine.in_(machines))
        return {received.machine: received for received in self._database.rows(StoredPresence, query)}


def _settle_clones(connection: Connection, presences: Sequence[ReceivedPresence], now: int) -> None:
    """Recent starts of each box that has just sent a presence, including this one and regardless of the clocks of two
    boxes. Written when the start differs from the last one. A presence that waited in a stream does not show which
    boxes run now."""
    table = tables.presence
    just_now = [received for received in presences if received.heard_at is None and received.presence.mode == "live"]
    mine = table.c.machine.in_(sorted({received.machine for received in just_now}))
    rows = connection.execute(select(table.c.machine, table.c.boots).where(mine, table.c.boots.is_not(None)))
    boots = {machine: msgspec.msgpack.decode(content, type=list[BootSpan]) for machine, content in rows}
    changed: set[str] = set()
    for received in just_now:
        before = boots.get(received.machine, [])
        if not before or before[-1].boot != received.presence.boot:
            changed.add(received.machine)
        boots[received.machine] = with_presence(before, received.presence.boot, now)
    facts: dict[Key, list[Fact]] = {}
    for machine, book in {received.machine: received.book for received in just_now}.items():
        if machine in changed:
            content = msgspec.msgpack.encode(boots[machine])
            connection.execute(update(table).where(table.c.machine == machine).values(boots=content))
        both = two_at_once(boots[machine], now)
        facts[book] = [Fact("clone", "", {"first": both[0], "second": both[1]})] if both else []
    settle_passing(connection, ("clone",), facts, now)


def _newer(
    connection: Connection, books: dict[Key, LockedBook], presences: Sequence[ReceivedPresence], now: int
) -> list[ReceivedPresence]:
    """The last presence of each book that is newer than the stored one: two upstream ways may deliver in different
    orders, and each presence arrives on both. Newer by the box's clock; if that was set back, a presence that arrives
    an hour later is newer, or at once if the stored time was ahead of ours. It is also newer if the stored arrival is
    in the future: our own clock was wrong."""
    table = tables.presence.c
    machines = sorted({received.machine for received in presences})
    query = select(tables.presence).where(table.machine.in_(machines))
    stored = {row.machine: row for row in connection.execute(query)}

    def is_newer(received: ReceivedPresence) -> bool:
        last: Any = stored.get(received.machine)
        if last is None or received.at > last.at or last.received_at > now + FORGETS_MILLIS:
            return True
        # A time ahead of ours says nothing about the order of arrival.
        is_ahead = last.at - last.received_at > checks.CLOCK_SECONDS * 1000
        return _arrived_at(received, now) - int(last.received_at) > (0 if is_ahead else FORGETS_MILLIS)

    fresh = sorted(filter(is_newer, presences), key=lambda received: received.at)
    last = {received.machine: received for received in fresh}
    rows = [
        {"machine": machine, "at": received.at, "received_at": _arrived_at(received, now)}
        | _columns(received, stored.get(machine), books[received.book].max_z)
        for machine, received in sorted(last.items())
    ]
    upsert(connection, tables.presence, rows, replaced=("at", "received_at", "body", "key_id"))
    return list({received.book: received for received in fresh}.values())


def _arrived_at(received: ReceivedPresence, now: int) -> int:
    return now if received.heard_at is None else min(received.heard_at, now)


def _columns(received: ReceivedPresence, before: Any, received_z: int) -> dict[str, str | bytes | None]:
    """While a box requests its last Z number, its earlier presence is preserved if only that one has the number."""
    if before is not None and received.presence.wants_last_z:
        body: bytes = before.body
        if msgspec.json.decode(body, type=Presence).z > max(received.presence.z, received_z):
            return {"body": body, "key_id": before.key_id}
    return {"body": received.content, "key_id": received.key_id}


def _settle(
    connection: Connection, books: dict[Key, LockedBook], presences: Sequence[ReceivedPresence], now: int, newest: str
) -> None:
    """`presences` has one presence per book."""
    changed = [books[received.book] for received in presences if _update_stated_z(books[received.book], received)]
    update_books(connection, sorted(changed, key=lambda book: book.key), None)
    settle_gaps(connection, [books[received.book] for received in presences], now)
    passing = {
        received.book: [*facts_of(received.presence, at=received.at, now=_arrived_at(received, now), newest=newest)]
        for received in presences
    }
    settle_passing(connection, PRESENCE_KINDS, passing, now)
    signs = {received.book: () for received in presences if _arrived_at(received, now) > now - FORGETS_MILLIS}
    settle_passing(connection, ("late",), signs, now)
    for received in presences:
        book = books[received.book]
        for fact in ledger_facts(received.presence, received.at, book.ledger, book.last, book.closed_at):
            add_fact(connection, received.book, received.presence.nim, fact, now)


def _update_stated_z(book: LockedBook, received: ReceivedPresence) -> bool:
    """Updates the book's last stated Z and its key. True if they changed, or if the book follows another ledger since
    the last call."""
    before, presence = (book.last_z, book.last_z_key), received.presence
    if book.follows(presence.ledger):
        z = presence.z if presence.waiting == 0 else min(presence.z, book.max_z)
        if z and z >= book.last_z:
            book.last_z, book.last_z_key = z, received.key_id
    return (book.last_z, book.last_z_key) != before or book.is_newly_followed


def _wanted(connection: Connection, presences: Sequence[ReceivedPresence], now: int) -> list[list[WantedClosures]]:
    """Missing closures of each presence's box that may be requested now."""
    table = tables.book.c
    asking = {received.machine: received for received in presences if received.quiet >= 0}
    lacks = or_(table.closure_count < table.max_z, table.closure_count < table.last_z)
    query = select(tables.book).where(table.machine.in_(sorted(asking)), lacks)
    wanted: dict[str, list[WantedClosures]] = {}
    for row in connection.execute(query.order_by(table.machine, table.mode)).all():
        received = asking[row.machine]
        if abs(now - row.received_at) < received.quiet:
            continue
        missing = [one for one in missing_of(connection, book_of(row)) if not one.is_gone]
        requests = [] if row.requests is None else msgspec.msgpack.decode(row.requests, type=list[RequestedRange])
        due = checks.due(requests, missing, now)
        wanted.setdefault(row.machine, []).extend(WantedClosures(row.mode, one.first, one.last) for one in due)
        if due and received.counts:
            counted = msgspec.msgpack.encode(checks.counted(requests, missing, due, now))
            mine = (table.machine == row.machine, table.mode == row.mode)
            connection.execute(update(tables.book).where(*mine).values(requested_at=now, requests=counted))
    return [wanted.get(received.machine, []) if received.quiet >= 0 else [] for received in presences]
