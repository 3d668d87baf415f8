"""Closures: each is stored exactly once, in one transaction with its findings.

The books of a batch are locked first and in order, so that two instances with closures of one shop run in turn and
each sees the other's result."""

import enum
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, delete, literal, or_, select, update

from common.wire.instants import instant_millis
from headquarters.core import checks
from headquarters.core.checks import ClosureRecord
from headquarters.core.reception import Received, ReceivedCalendar
from headquarters.core.wording import Fact, Facts
from headquarters.store import tables
from headquarters.store.book.books import (
    Key,
    LockedBook,
    count_closures,
    lock_books,
    numbered_closures,
    read_record,
    settle_gaps,
    settle_replaced,
    update_books,
)
from headquarters.store.database import READ_AT_ONCE, Part
from headquarters.store.evidence import add_fork, store_withdrawn
from headquarters.store.findings import add_fact, invalidate
from headquarters.store.revision import lock_revision, next_arrival
from headquarters.store.stream_ranges import StreamMessages, add_messages


class StoreOutcome(enum.Enum):
    STORED = "stored"
    DUPLICATE = "known"
    FORK = "fork"


class Closures(Part):
    def store(
        self,
        batch: Sequence[Received | ReceivedCalendar],
        *,
        now: int,
        revision: int | None = None,
        messages: StreamMessages | None = None,
    ) -> list[StoreOutcome]:
        """Outcome of each closure, durable on return. Raises StaleRing if the keys are no longer those of `revision`.

        `messages`: those of the batch, including refused ones. `now` in milliseconds."""
        with self._database.write() as connection:
            lock_revision(connection, revision)
            closures = [one for one in batch if isinstance(one, Received)]
            days = iter(_Storing(connection, closures, now).run() if closures else ())
            outcomes = [
                next(days) if isinstance(one, Received) else _store_calendar(connection, one, now) for one in batch
            ]
            if messages is not None:
                add_messages(connection, messages)
            return outcomes


def _store_calendar(connection: Connection, received: ReceivedCalendar, now: int) -> StoreOutcome:
    """Stores a month or year closure. Another closure with the same id is a fork, never acknowledged. Another one with
    the same number is stored beside it: a restored ledger closes the period again."""
    table, data = tables.calendar_closure, received.data
    digest = hashlib.sha256(received.data.body.encode()).digest()
    mine = and_(table.c.machine == received.machine, table.c.id == data.report_id)
    stored = connection.scalar(select(table.c.digest).where(mine))
    if stored == digest:
        return StoreOutcome.DUPLICATE
    of_number = {"mode": data.mode, "kind": data.kind, "number": data.number, "ledger_id": data.ledger_id}
    same = and_(table.c.machine == received.machine, *(table.c[name] == value for name, value in of_number.items()))
    if stored is not None or connection.scalar(select(table.c.id).where(same).limit(1)) is not None:
        facts: Facts = {"what": "calendar", "period": data.period, "id": data.report_id}
        fact = Fact("fork", f"{data.period}:{data.report_id}:{digest.hex()[:8]}", facts)
        add_fact(connection, (received.machine, data.mode), data.nim, fact, now)
    if stored is not None:
        add_fork(connection, received, now)
        return StoreOutcome.FORK
    row = {
        **{name: getattr(data, name) for name in ("kind", "number", "period", "first_z", "last_z")},
        "id": data.report_id,
        "zs": data.z_count,
        "grand_ttc": data.grand_total.total_ttc,
        "digest": digest,
        "body": received.message.body,
    }
    connection.execute(table.insert(), row | _of_both(received, now))
    return StoreOutcome.STORED


class _Storing:
    """Stores one batch in one transaction."""

    def __init__(self, connection: Connection, batch: Sequence[Received], now: int) -> None:
        self._connection = connection
        self._batch = batch
        self._now = now
        self._new: list[Received] = []
        self._found: list[tuple[Received, Fact]] = []
        self._digests: dict[tuple[str, str], bytes] = {}
        self._irregular: set[Key] = set()
        """Books with a new closure that does not simply follow the last one."""

    def run(self) -> list[StoreOutcome]:
        keys = sorted({(received.machine, received.mode) for received in self._batch})
        books = lock_books(self._connection, keys)
        self._look(books)
        outcomes: dict[int, StoreOutcome] = {}
        order = sorted(range(len(self._batch)), key=lambda index: self._batch[index].record.z)
        for index in order:
            received = self._batch[index]
            outcomes[index] = self._one(received, books[received.machine, received.mode])
        self._write(books)
        return [outcomes[index] for index in range(len(self._batch))]

    def _look(self, books: dict[Key, LockedBook]) -> None:
        """Loads the known closures of the batch, and the neighbours of those that do not follow directly."""
        ids: dict[str, list[str]] = {}
        for received in self._batch:
            ids.setdefault(received.machine, []).append(received.record.id)
        table = tables.closure.c
        # Grouped by machine: for pairs in one `IN` SQLite would read every closure, and SQLAlchemy compiles `VALUES`
        # each time.
        wanted = or_(*(and_(table.machine == machine, table.id.in_(of_it)) for machine, of_it in ids.items()))
        query = select(table.machine, table.id, table.record).where(wanted)
        for machine, id_, record in self._connection.execute(query):
            self._digests[machine, id_] = read_record(record).digest
        around: dict[Key, set[int]] = {}
        for received in self._batch:
            book, z = books[received.machine, received.mode], received.record.z
            if (received.machine, received.record.id) not in self._digests and z != book.max_z + 1:
                around.setdefault(book.key, set()).update((z - 1, z, z + 1))
        for key, numbers in around.items():
            books[key].around |= numbered_closures(self._connection, books[key], numbers)

    def _one(self, received: Received, book: LockedBook) -> StoreOutcome:
        record = received.record
        stored = self._digests.get((received.machine, record.id))
        if stored is not None:
            return StoreOutcome.DUPLICATE if stored == record.digest else self._fork(received, "id")
        if not book.follows(record.ledger_id):
            return self._late(received, book)
        if record.z in book.around:
            return self._fork(received, "number", book.around[record.z].id)
        self._keep(received)
        before, after = book.around.get(record.z - 1), book.around.get(record.z + 1)
        if record.previous_id != (before.id if before else None) or after is not None:
            self._irregular.add(book.key)
        if before is not None:
            self._found += [(received, fact) for fact in self._pair(book, before, record)]
        if after is not None:
            self._found += [(received, fact) for fact in self._pair(book, record, after)]
        book.around[record.z] = record
        book.closure_count += 1
        if record.z > book.max_z:
            book.max_z, book.closed_at = record.z, received.created_at
        return StoreOutcome.STORED

    def _keep(self, received: Received) -> None:
        self._found += [(received, fact) for fact in checks.alone(received.record)]
        self._digests[received.machine, received.record.id] = received.record.digest
        self._new.append(received)

    def _late(self, received: Received, book: LockedBook) -> StoreOutcome:
        """Stores a closure of a ledger that was replaced by an accepted one: it has sales, but is no part of the
        book."""
        table, record = tables.closure.c, received.record
        mine = and_(table.machine == book.machine, table.mode == book.mode, table.ledger_id != book.ledger)
        new = (one.id for one in self._new_of(book) if one.z == record.z and one.ledger_id != book.ledger)
        stored = self._connection.scalar(select(table.id).where(mine, table.z == record.z).limit(1))
        if other := stored or next(new, None):
            return self._fork(received, "number", other)
        self._keep(received)
        return StoreOutcome.STORED

    def _pair(self, book: LockedBook, before: ClosureRecord, after: ClosureRecord) -> Iterable[Fact]:
        for fact in checks.pair(before, after):
            sibling = self._sibling(book, after) if fact.kind == "chain" else None
            if sibling is None:
                yield fact
            else:
                what = "again" if checks.has_sales_of(after, sibling) else "previous"
                yield Fact("fork", f"{after.z}:previous", {"z": after.z, "what": what, "other": sibling.z})

    def _sibling(self, book: LockedBook, record: ClosureRecord) -> ClosureRecord | None:
        """Another closure with the same predecessor: the ledger was restored in between. None if there is none."""
        if record.previous_id is None:
            return None
        table = tables.closure.c
        followers = (table.machine == book.machine, table.mode == book.mode, table.previous_id == record.previous_id)
        query = select(table.record).where(*followers, table.z != record.z).order_by(table.z).limit(1)
        found = self._connection.scalar(query)
        new = [each for each in self._new_of(book) if each.previous_id == record.previous_id and each.z != record.z]
        return read_record(found) if found is not None else next(iter(new), None)

    def _with_outcome(self, received: Received, fact: Fact) -> Fact:
        """Of sales that a restored ledger has again: whether the totals count them twice."""
        if fact.facts.get("what") != "again":
            return fact
        table, z = tables.closure.c, fact.facts["other"]
        mine = and_(table.machine == received.machine, table.mode == received.mode, table.z == z)
        is_replaced = self._connection.scalar(select(table.id).where(mine, table.replaced_by.is_not(None)).limit(1))
        return fact if is_replaced is None else Fact(fact.kind, fact.key, fact.facts | {"what": "replaced"})

    def _new_of(self, book: LockedBook) -> list[ClosureRecord]:
        """New closures of this batch."""
        return [received.record for received in self._new if (received.machine, received.mode) == book.key]

    def _fork(self, received: Received, what: str, other: str = "") -> StoreOutcome:
        """Two closures for one place: the second is stored as evidence and never acknowledged."""
        add_fork(self._connection, received, self._now)
        facts: Facts = {"z": received.record.z, "what": what, "id": received.record.id, "other": other}
        key = f"{received.record.z}:{received.record.id}:{received.record.digest.hex()[:8]}"
        self._found.append((received, Fact("fork", key, facts)))
        return StoreOutcome.FORK

    def _write(self, books: dict[Key, LockedBook]) -> None:
        if self._new:
            self._connection.execute(tables.message.insert(), [_message(received) for received in self._new])
            arrival = next_arrival(self._connection, self._now)
            rows = [_row(received, self._now) | {"arrival": arrival} for received in self._new]
            self._connection.execute(tables.closure.insert(), rows)
            for key in sorted(self._irregular):
                settle_replaced(self._connection, key)
        touched = [books[key] for key in sorted({(received.machine, received.mode) for received in self._new})]
        update_books(self._connection, touched, self._now)
        for received, fact in self._found:
            facts = self._with_outcome(received, fact)
            add_fact(self._connection, (received.machine, received.mode), received.data.nim, facts, self._now)
        settle_gaps(self._connection, touched, self._now)


def _row(received: Received, now: int) -> dict[str, object]:
    data, record = received.data, received.record
    return {
        **_of_both(received, now),
        **{name: getattr(record, name) for name in ("id", "z", "previous_id", "proven")},
        "day": received.day,
        "period_start": instant_millis(data.period_start, "data.period_start"),
        "period_end": instant_millis(data.period_end, "data.period_end"),
        "groups": msgspec.msgpack.encode([[g.group, g.ht, g.tva, g.ttc] for g in data.by_group]),
        "payments": msgspec.msgpack.encode([[p.label, p.amount] for p in data.by_payment]),
        "record": msgspec.msgpack.encode(record),
        "stream_seq": received.message.stream_seq,
    }


def _of_both(received: Received | ReceivedCalendar, now: int) -> dict[str, object]:
    """Columns that days have in common with months and years."""
    data = received.data
    return {
        **{name: getattr(data, name) for name in ("nim", "mode", "ledger_id", "epoch")},
        **{name: getattr(received, name) for name in ("machine", "created_at", "key_id")},
        "certs": data.certs_count,
        "ttc": data.total_ttc,
        "ht": data.total_ht,
        "tva": data.total_tva,
        "received_at": now if received.message.at is None else min(now, received.message.at),
        "via": received.message.via,
    }


def _message(received: Received) -> dict[str, object]:
    headers = msgspec.json.encode(dict(received.message.headers)).decode()
    return {"machine": received.machine, "id": received.record.id, "headers": headers, "body": received.message.body}


def withdraw(connection: Connection, machine: str, key_id: str, since: int, now: int) -> int:
    """Withdraws closures received under this key since `since` (ms, by headquarters' clock: a thief chooses the times
    in forged closures). Returns their number. They are stored as evidence; their findings are solved."""
    table = tables.closure.c
    theirs = and_(table.machine == machine, table.key_id == key_id, table.received_at >= since)
    modes = connection.scalars(select(table.mode).where(theirs).distinct().order_by(table.mode)).all()
    books = list(lock_books(connection, [(machine, mode) for mode in modes]).values())
    numbers = {book.key: _withdraw(connection, book, theirs, now) for book in books}
    for book in books:
        count_closures(connection, book)
        settle_replaced(connection, book.key)
        book.was_whole = False  # settles the book's gaps again
    update_books(connection, books, None)
    note = f"withdrawn with key {key_id}"
    for key, found in numbers.items():
        invalidate(connection, key, partial(_is_about, found | {z + 1 for z in found}), note, now)
    settle_gaps(connection, books, now)
    # Nothing is in transit and nothing requested: the answer to the next presence requests these closures.
    soon = and_(tables.book.c.machine == machine, tables.book.c.mode.in_(modes))
    connection.execute(update(tables.book).where(soon).values(received_at=0, requested_at=0, requests=None))
    return sum(map(len, numbers.values())) + _withdraw_calendar_closures(
        connection, machine, key_id, note, since=since, now=now
    )


def _is_about(numbers: set[int], facts: Facts) -> bool:
    return facts.get("z") in numbers


def _withdraw_calendar_closures(
    connection: Connection, machine: str, key_id: str, note: str, *, since: int, now: int
) -> int:
    """Withdraws the month and year closures among them; the box sends its own again. A finding about two closures with
    one number is solved when only one is left."""
    table = tables.calendar_closure.c
    of_number = (table.mode, table.kind, table.number, table.ledger_id)
    theirs = and_(table.machine == machine, table.key_id == key_id, table.received_at >= since)
    query = select(table.id, table.number.label("z"), table.nim, table.via, literal("{}").label("headers"), table.body)
    rows = connection.execute(query.add_columns(*of_number).where(theirs)).mappings().all()
    store_withdrawn(connection, rows, now)
    connection.execute(delete(tables.calendar_closure).where(theirs))
    left = {row.id: row[1:] for row in connection.execute(select(table.id, *of_number).where(table.machine == machine))}
    gone = {row["id"]: (row["mode"], row["kind"], row["number"], row["ledger_id"]) for row in rows}
    alone = {number for number, count in Counter(left.values()).items() if count == 1 and number in gone.values()}

    def is_gone(facts: Facts) -> bool:
        return facts.get("id") in gone or left.get(str(facts.get("id"))) in alone

    for mode in {mode for mode, *_ in gone.values()}:
        invalidate(connection, (machine, mode), is_gone, note, now)
    return len(rows)


def _withdraw(connection: Connection, book: LockedBook, theirs: ColumnElement[bool], now: int) -> set[int]:
    """Moves the book's closures to the evidence. Returns their numbers."""
    table, message = tables.closure.c, tables.message.c
    query = (
        select(table.id, table.z, table.nim, table.via, message.headers, message.body)
        .join(tables.message, and_(message.machine == table.machine, message.id == table.id))
        .where(theirs, table.mode == book.mode)
        .limit(READ_AT_ONCE)
    )
    numbers: set[int] = set()
    while rows := connection.execute(query).mappings().all():
        store_withdrawn(connection, rows, now)
        ids = [row["id"] for row in rows]
        for of in (tables.message, tables.closure):
            connection.execute(delete(of).where(of.c.machine == book.machine, of.c.id.in_(ids)))
        numbers.update(row["z"] for row in rows)
    return numbers
