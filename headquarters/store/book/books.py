"""Books: last number, stored closures, followed ledger. Their rows are the locks for writing closures."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, or_, select, update

from headquarters.core.checks import ClosureRecord, Missing, gap_of, replaced
from headquarters.store import tables
from headquarters.store.database import insert_new, upsert
from headquarters.store.findings import settle_passing

Key = tuple[str, str]
"""Key of a book: machine and mode."""
PLAIN_COLUMNS = ("max_z", "closure_count", "last_z", "last_z_key", "closed_at", "ledger")


class LockedBook(msgspec.Struct):
    """A locked row of `book`, with the closures loaded so far by number. `ledger` is None until a person accepts
    another ledger than the first one; from then on only closures of the accepted ledger count in the book."""

    machine: str
    mode: str
    max_z: int = 0
    closure_count: int = 0
    """number of stored closures"""
    last_z: int = 0
    """last Z number stated by the box"""
    closed_at: int = 0
    ledger: str | None = None
    last_z_key: str | None = None
    """id of the key that signed this statement"""
    around: dict[int, ClosureRecord] = {}
    was_whole: bool = True
    is_newly_followed: bool = False

    @property
    def key(self) -> Key:
        return self.machine, self.mode

    @property
    def top(self) -> int:
        return max(self.max_z, self.last_z)

    @property
    def last(self) -> ClosureRecord | None:
        return self.around.get(self.max_z)

    @property
    def is_whole(self) -> bool:
        return self.closure_count == self.top

    def follows(self, ledger_id: str) -> bool:
        return self.ledger in (None, ledger_id)


def lock_books(connection: Connection, keys: Sequence[Key]) -> dict[Key, LockedBook]:
    """Locks rows of `book` until the end of the transaction; creates missing ones."""
    if not keys:
        return {}
    found = _locked(connection, keys)
    fresh = [key for key in keys if key not in found]
    if fresh:
        empty = {"max_z": 0, "closure_count": 0, "last_z": 0, "closed_at": 0, "received_at": 0, "requested_at": 0}
        insert_new(connection, tables.book, [{"machine": machine, "mode": mode, **empty} for machine, mode in fresh])
        found |= _locked(connection, fresh)
    accepted = accepted_ledgers(connection, sorted({machine for machine, _ in keys}))
    for book in found.values():
        if book.ledger != accepted.get(book.machine):
            _follow(connection, book, accepted.get(book.machine))
    return found


def _locked(connection: Connection, keys: Sequence[Key]) -> dict[Key, LockedBook]:
    table = tables.book.c
    modes = {mode for _, mode in keys}
    of_mode = [and_(table.mode == mode, table.machine.in_([m for m, k in keys if k == mode])) for mode in sorted(modes)]
    query = select(tables.book).where(or_(*of_mode)).order_by(table.machine, table.mode).with_for_update()
    books = {}
    for row in connection.execute(query):
        book = book_of(row)
        book.was_whole = book.is_whole
        if row.last is not None:
            book.around[row.max_z] = read_record(row.last)
        books[book.key] = book
    return books


def book_of(row: Row[Any]) -> LockedBook:
    return LockedBook(row.machine, row.mode, **{name: getattr(row, name) for name in PLAIN_COLUMNS})


def accepted_ledgers(connection: Connection, machines: Sequence[str]) -> dict[str, str]:
    """The last accepted ledger of each machine that has one."""
    table = tables.ledger.c
    query = select(table.machine, table.ledger_id).where(table.machine.in_(machines))
    return {row.machine: row.ledger_id for row in connection.execute(query.order_by(table.accepted_at))}


def _follow(connection: Connection, book: LockedBook, ledger: str | None) -> None:
    """The book follows this ledger from now on: its stored closures count, those of other ledgers do not."""
    book.ledger = ledger
    count_closures(connection, book)
    book.last_z, book.last_z_key = 0, None
    book.was_whole, book.is_newly_followed = False, True  # settles the book's gaps again


def count_closures(connection: Connection, book: LockedBook) -> None:
    """Recomputes last number and count of the book from the stored closures."""
    table = tables.closure.c
    book.closure_count, last = connection.execute(
        select(func.count(table.z.distinct()), func.max(table.z)).where(of_book(book))
    ).one()
    book.max_z, book.closed_at, book.around = last or 0, 0, {}
    newest = select(table.record, table.created_at).where(of_book(book), table.z == book.max_z)
    if (row := connection.execute(newest).first()) is not None:
        book.around[book.max_z], book.closed_at = read_record(row.record), row.created_at


def of_book(book: LockedBook) -> ColumnElement[bool]:
    """Condition: closures that count in the book."""
    table = tables.closure.c
    mine = and_(table.machine == book.machine, table.mode == book.mode)
    return mine if book.ledger is None else and_(mine, table.ledger_id == book.ledger)


def update_books(connection: Connection, books: Sequence[LockedBook], received_at: int | None) -> None:
    """`received_at` is given if new closures arrived."""
    rows = [
        {name: getattr(book, name) for name in ("machine", "mode", *PLAIN_COLUMNS)}
        | {"last": book.last and msgspec.msgpack.encode(book.last), "received_at": received_at or 0, "requested_at": 0}
        for book in books
    ]
    replaced = (*PLAIN_COLUMNS, "last", *(["received_at"] if received_at else []))
    upsert(connection, tables.book, rows, replaced)


def settle_gaps(connection: Connection, books: Sequence[LockedBook], now: int) -> None:
    """Replaces the open gaps of these books with the current ones."""
    changed = [book for book in books if not (book.was_whole and book.is_whole)]
    found = {book.key: [] if book.is_whole else [*map(gap_of, missing_of(connection, book))] for book in changed}
    settle_passing(connection, ("gap",), found, now)


def settle_all_replaced(connection: Connection) -> None:
    """`settle_replaced` for each book in which two closures follow the same one."""
    table = tables.closure.c
    forked = select(table.machine, table.mode).group_by(table.machine, table.mode, table.previous_id)
    for machine, mode in connection.execute(forked.having(func.count() > 1).distinct()).all():
        settle_replaced(connection, (machine, mode))


def settle_replaced(connection: Connection, key: Key) -> None:
    """Marks the closures of a book whose sales a later one of a restored ledger has again, and no others."""
    table = tables.closure.c
    mine = and_(table.machine == key[0], table.mode == key[1], table.ledger_id != "")
    query = select(table.id, table.ledger_id, table.replaced_by, table.record).where(mine)
    ledgers: dict[str, list[ClosureRecord]] = {}
    stored: dict[str, int | None] = {}
    for row in connection.execute(query.order_by(table.z, table.epoch)):
        ledgers.setdefault(row.ledger_id, []).append(read_record(row.record))
        stored[row.id] = row.replaced_by
    found = {id_: z for records in ledgers.values() for id_, z in replaced(records).items()}
    for id_, replaced_by in stored.items():
        if found.get(id_) != replaced_by:
            one = and_(table.machine == key[0], table.id == id_)
            connection.execute(update(tables.closure).where(one).values(replaced_by=found.get(id_)))


def reset_requests(connection: Connection, machine: str) -> None:
    """Allows repeated requests for refused closures, because a change may now make them acceptable."""
    connection.execute(update(tables.book).where(tables.book.c.machine == machine).values(requests=None))


def withdraw_statements(connection: Connection, machine: str, key_id: str, now: int) -> None:
    """Discards statements about the machine that only this key signed: the last Z number and the last presence. A
    running box repeats them within minutes. Statements stored before the key was recorded are discarded with any
    key."""
    table, presence = tables.book.c, tables.presence.c
    of_key, of_presence = (or_(each.is_(None), each == key_id) for each in (table.last_z_key, presence.key_id))
    theirs = select(table.machine, table.mode).where(table.machine == machine, table.last_z > 0, of_key)
    books = list(lock_books(connection, [(row.machine, row.mode) for row in connection.execute(theirs)]).values())
    for book in books:
        book.last_z, book.last_z_key = 0, None
    update_books(connection, books, None)
    settle_gaps(connection, books, now)
    connection.execute(delete(tables.presence).where(presence.machine == machine, of_presence))


def missing_of(connection: Connection, book: LockedBook) -> list[Missing]:
    """Gaps in the book's numbers, found in the database: a book of ten years is not loaded for one gap. A gap that the
    ledger itself declares is `is_gone`; it is omitted if the ledger was accepted in place of another, where it is
    expected."""
    table = tables.closure.c
    following = func.lead(table.z).over(order_by=table.z).label("following")
    numbered = select(table.z.label("z"), following).where(of_book(book)).subquery().c
    jumps = select(numbered.z, numbered.following).where(numbered.following > numbered.z + 1).order_by(numbered.z)
    ranges = [(z + 1, following - 1) for z, following in connection.execute(jumps)]
    oldest, newest = connection.execute(select(func.min(table.z), func.max(table.z)).where(of_book(book))).one()
    if oldest is None:
        return [Missing(1, book.top)] if book.top else []
    if oldest > 1:
        ranges.insert(0, (1, oldest - 1))
    after = numbered_closures(connection, book, {end + 1 for _, end in ranges})
    found = [
        Missing(first, last, any(begin <= first and last <= end for begin, end in after[last + 1].gone))
        for first, last in ranges
    ]
    if book.top > newest:
        found.append(Missing(newest + 1, book.top))
    return [one for one in found if not (one.is_gone and book.ledger)]


def numbered_closures(connection: Connection, book: LockedBook, numbers: set[int]) -> dict[int, ClosureRecord]:
    table = tables.closure.c
    query = select(table.z, table.record).where(of_book(book), table.z.in_(numbers))
    return {z: read_record(record) for z, record in connection.execute(query)} if numbers else {}


def read_record(content: bytes) -> ClosureRecord:
    return msgspec.msgpack.decode(content, type=ClosureRecord)
