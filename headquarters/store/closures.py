"""Closures: each kept once, in one transaction with what it shows, or not at all.

The rows of the books that a batch touches are locked first, in order, so that two instances that hold closures of one shop take
turns and each sees what the other has kept."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import msgspec
from sqlalchemy import Connection, and_, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from exchange.instants import instant_millis
from headquarters.core import checks
from headquarters.core.finding import Fact, Facts
from headquarters.core.held import Held
from headquarters.core.reception import Received
from headquarters.store import tables
from headquarters.store.database import Database
from headquarters.store.evidence import keep_fork
from headquarters.store.findings import Found, keep_found, settle_gaps
from headquarters.store.register import revision_of

Key = tuple[str, str]
"""A book: machine and mode."""


class Outcome(enum.Enum):
    STORED = "stored"
    KNOWN = "known"
    FORK = "fork"


class StaleRing(Exception):
    """Keys were added or revoked since these signatures were looked at: look again."""


class Book(msgspec.Struct):
    """A row of `book` under lock, and what of its closures is at hand, by number."""

    machine: str
    mode: str
    max_z: int = 0
    held: int = 0
    told_z: int = 0
    closed_at: int = 0
    around: dict[int, Held] = {}
    was_whole: bool = True

    @property
    def key(self) -> Key:
        return self.machine, self.mode

    @property
    def top(self) -> int:
        return max(self.max_z, self.told_z)

    @property
    def is_whole(self) -> bool:
        return self.held == self.top


class Closures:
    def __init__(self, database: Database) -> None:
        self._database = database

    def take(
        self,
        batch: Sequence[Received],
        *,
        now: int,
        revision: int | None = None,
        position: tuple[str, int] | None = None,
    ) -> list[Outcome]:
        """What became of each, durable when this returns; StaleRing when the keys are no longer those of `revision`.

        `position` is how far this batch goes in which stream. `now` in milliseconds."""
        with self._database.write() as connection:
            if revision is not None and revision_of(connection) != revision:
                raise StaleRing
            if position is not None:
                _move(connection, *position)
            return _Taking(connection, batch, now).run()

    def position(self, stream: str) -> int:
        """The last message of the stream that a batch has gone to; 0 when there was none."""
        with self._database.read() as connection:
            found = connection.scalar(select(tables.position.c.seq).where(tables.position.c.stream == stream))
            return int(found or 0)

    def move(self, stream: str, seq: int) -> None:
        with self._database.write() as connection:
            _move(connection, stream, seq)


class _Taking:
    """One batch in one transaction."""

    def __init__(self, connection: Connection, batch: Sequence[Received], now: int) -> None:
        self._connection = connection
        self._batch = batch
        self._now = now
        self._new: list[Received] = []
        self._found: list[Found] = []
        self._known: dict[tuple[str, str], bytes] = {}

    def run(self) -> list[Outcome]:
        keys = sorted({(received.machine, received.mode) for received in self._batch})
        books = lock_books(self._connection, keys)
        self._look(books)
        outcomes: dict[int, Outcome] = {}
        order = sorted(range(len(self._batch)), key=lambda index: self._batch[index].held.z)
        for index in order:
            received = self._batch[index]
            outcomes[index] = self._one(received, books[received.machine, received.mode])
        self._write(books)
        return [outcomes[index] for index in range(len(self._batch))]

    def _look(self, books: dict[Key, Book]) -> None:
        """Loads which of them are known, and the closures beside those that do not simply come next."""
        ids = [received.held.id for received in self._batch]
        table = tables.closure.c
        rows = self._connection.execute(select(table.machine, table.id, table.held).where(table.id.in_(ids)))
        for machine, id_, held in rows:
            self._known[machine, id_] = _held(held).digest
        wanted: dict[Key, set[int]] = {}
        for received in self._batch:
            book, z = books[received.machine, received.mode], received.held.z
            if (received.machine, received.held.id) not in self._known and z != book.max_z + 1:
                wanted.setdefault(book.key, set()).update((z - 1, z, z + 1))
        for key, numbers in wanted.items():
            books[key].around |= _numbered(self._connection, key, numbers)

    def _one(self, received: Received, book: Book) -> Outcome:
        held = received.held
        known = self._known.get((received.machine, held.id))
        if known is not None:
            return Outcome.KNOWN if known == held.digest else self._fork(received, "id")
        if held.z in book.around:
            return self._fork(received, "number", book.around[held.z].id)
        self._found += [Found(received, fact) for fact in checks.alone(held)]
        before, after = book.around.get(held.z - 1), book.around.get(held.z + 1)
        if before is not None:
            self._found += [Found(received, fact) for fact in self._pair(book, before, held)]
        if after is not None:
            self._found += [Found(received, fact) for fact in self._pair(book, held, after)]
        self._known[received.machine, held.id] = held.digest
        self._new.append(received)
        book.around[held.z] = held
        book.held += 1
        if held.z > book.max_z:
            book.max_z, book.closed_at = held.z, received.created_at
        return Outcome.STORED

    def _pair(self, book: Book, before: Held, after: Held) -> Iterable[Fact]:
        for fact in checks.pair(before, after):
            sibling = self._sibling(book, after) if fact.kind == "chain" else None
            if sibling is None:
                yield fact
            else:
                yield Fact("fork", f"{after.z}:previous", {"z": after.z, "what": "previous", "other": sibling})

    def _sibling(self, book: Book, held: Held) -> int | None:
        """Another closure of the book that says it follows the same one: the ledger was put back in between."""
        if held.previous_id is None:
            return None
        table = tables.closure.c
        followers = and_(table.machine == book.machine, table.mode == book.mode, table.previous_id == held.previous_id)
        found = self._connection.scalar(select(func.min(table.z)).where(followers, table.z != held.z))
        new = [
            r.held.z for r in self._new if (r.machine, r.mode) == book.key and r.held.previous_id == held.previous_id
        ]
        return next((z for z in (found, *new) if z is not None and z != held.z), None)

    def _fork(self, received: Received, what: str, other: str = "") -> Outcome:
        """Two closures where there can be one: the second is kept as evidence, and is never said to be delivered."""
        keep_fork(self._connection, received, self._now)
        facts: Facts = {"z": received.held.z, "what": what, "id": received.held.id, "other": other}
        key = f"{received.held.z}:{received.held.id}:{received.held.digest.hex()[:8]}"
        self._found.append(Found(received, Fact("fork", key, facts)))
        return Outcome.FORK

    def _write(self, books: dict[Key, Book]) -> None:
        if self._new:
            self._connection.execute(tables.closure.insert(), [_row(received, self._now) for received in self._new])
            self._connection.execute(tables.message.insert(), [_message(received) for received in self._new])
        touched = {(received.machine, received.mode) for received in self._new}
        if touched:
            keep_books(self._connection, [books[key] for key in sorted(touched)], self._now)
        keep_found(self._connection, self._found, self._now)
        for key in sorted(touched):
            settle_gaps_of(self._connection, books[key], self._now)


def settle_gaps_of(connection: Connection, book: Book, now: int) -> None:
    """The book's open gaps become what is missing now."""
    if book.was_whole and book.is_whole:
        return
    ranges = [] if book.is_whole else missing_of(connection, book.key, book.top)
    settle_gaps(connection, book.key, checks.gaps(ranges), now)


def missing_of(connection: Connection, key: Key, top: int) -> list[tuple[int, int]]:
    """Found beside each other in the database: a book of ten years is not read here for one gap."""
    table = tables.closure.c
    of_book = and_(table.machine == key[0], table.mode == key[1])
    following = func.lead(table.z).over(order_by=table.z).label("following")
    numbered = select(table.z.label("z"), following).where(of_book).subquery().c
    jumps = select(numbered.z, numbered.following).where(numbered.following > numbered.z + 1).order_by(numbered.z)
    ranges = [(z + 1, following - 1) for z, following in connection.execute(jumps)]
    first, last = connection.execute(select(func.min(table.z), func.max(table.z)).where(of_book)).one()
    if first is None:
        return [(1, top)] if top else []
    head = [(1, first - 1)] if first > 1 else []
    return [*head, *ranges, *([(last + 1, top)] if top > last else [])]


def lock_books(connection: Connection, keys: Sequence[Key]) -> dict[Key, Book]:
    """Rows of `book`, made where there are none, held until the transaction ends."""
    if not keys:
        return {}
    found = _locked(connection, keys)
    fresh = [key for key in keys if key not in found]
    if fresh:
        insert = sqlite_insert if connection.dialect.name == "sqlite" else postgresql_insert
        empty = {"max_z": 0, "held": 0, "told_z": 0, "closed_at": 0, "received_at": 0, "asked_at": 0}
        rows = [{"machine": machine, "mode": mode, **empty} for machine, mode in fresh]
        connection.execute(insert(tables.book).on_conflict_do_nothing(), rows)
        found |= _locked(connection, fresh)
    return found


def _locked(connection: Connection, keys: Sequence[Key]) -> dict[Key, Book]:
    table = tables.book.c
    modes = {mode for _, mode in keys}
    of_mode = [and_(table.mode == mode, table.machine.in_([m for m, k in keys if k == mode])) for mode in sorted(modes)]
    query = select(tables.book).where(or_(*of_mode)).order_by(table.machine, table.mode).with_for_update()
    books = {}
    for row in connection.execute(query):
        book = Book(row.machine, row.mode, row.max_z, row.held, row.told_z, row.closed_at, {})
        book.was_whole = book.is_whole
        if row.last is not None:
            book.around[row.max_z] = _held(row.last)
        books[book.key] = book
    return books


def keep_books(connection: Connection, books: Sequence[Book], now: int) -> None:
    """In one statement for all of them."""
    insert = sqlite_insert if connection.dialect.name == "sqlite" else postgresql_insert
    statement = insert(tables.book)
    new = statement.excluded
    names = ("max_z", "held", "told_z", "last", "closed_at", "received_at")
    rows = [
        {
            "machine": book.machine,
            "mode": book.mode,
            "max_z": book.max_z,
            "held": book.held,
            "told_z": book.told_z,
            "last": msgspec.msgpack.encode(book.around[book.max_z]),
            "closed_at": book.closed_at,
            "received_at": now,
            "asked_at": 0,
        }
        for book in books
    ]
    keep = statement.on_conflict_do_update(index_elements=["machine", "mode"], set_={name: new[name] for name in names})
    connection.execute(keep, rows)


def _numbered(connection: Connection, key: Key, numbers: set[int]) -> dict[int, Held]:
    table = tables.closure.c
    query = select(table.z, table.held).where(
        table.machine == key[0], table.mode == key[1], table.z.in_(sorted(numbers))
    )
    return {z: _held(held) for z, held in connection.execute(query)}


def _held(content: bytes) -> Held:
    return msgspec.msgpack.decode(content, type=Held)


def _move(connection: Connection, stream: str, seq: int) -> None:
    table = tables.position
    done = connection.execute(
        update(table).where(table.c.stream == stream, table.c.seq < seq).values(seq=seq),
    )
    if done.rowcount == 0:
        insert = sqlite_insert if connection.dialect.name == "sqlite" else postgresql_insert
        connection.execute(insert(table).on_conflict_do_nothing(), {"stream": stream, "seq": seq})


def _row(received: Received, now: int) -> dict[str, object]:
    data, held = received.data, received.held
    return {
        "machine": received.machine,
        "id": held.id,
        "nim": data.nim,
        "mode": data.mode,
        "ledger_id": data.ledger_id,
        "epoch": data.epoch,
        "z": held.z,
        "day": received.day,
        "period_start": instant_millis(data.period_start, "data.period_start"),
        "period_end": instant_millis(data.period_end, "data.period_end"),
        "created_at": received.created_at,
        "received_at": now,
        "certs": data.certs_count,
        "ttc": data.total_ttc,
        "ht": data.total_ht,
        "tva": data.total_tva,
        "groups": msgspec.msgpack.encode([[g.group, g.ht, g.tva, g.ttc] for g in data.by_group]),
        "payments": msgspec.msgpack.encode([[p.label, p.amount] for p in data.by_payment]),
        "held": msgspec.msgpack.encode(held),
        "previous_id": held.previous_id,
        "proven": held.proven,
        "key_id": received.key_id,
        "via": received.message.via,
        "stream_seq": received.message.stream_seq,
    }


def _message(received: Received) -> dict[str, object]:
    headers = msgspec.json.encode(dict(received.message.headers)).decode()
    return {"machine": received.machine, "id": received.held.id, "headers": headers, "body": received.message.body}
