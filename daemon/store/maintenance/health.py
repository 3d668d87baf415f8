"""The check of the ledger's file at every start, in bounded time: SQLite's own check of all tables in a small file, of
the small tables in a large one; that the index finds the newest numbers, so that none is certified twice; and the end
of each chain. The complete check is `mcfd verify`, every night: a damaged file stops the start, and certification,
until repaired."""

import re
import sqlite3
from collections.abc import Iterator, Sequence

from common.language import Text
from daemon.core.errors import LedgerUnusable
from daemon.core.ledger import chain
from daemon.core.ledger.book import Book
from daemon.store.sqlite.disk_failure import DAMAGED, is_rubbish
from daemon.store.sqlite.file import load
from daemon.store.tables.book.books import BookHead, all_books, read_head, read_start
from daemon.store.tables.book.closures import COLUMNS, closure_of
from daemon.store.tables.book.codec import PAYLOAD, RECORD_COLUMNS, SEQ, record_of, unpack
from daemon.store.tables.book.entries import last_entry, link_after, losses
from daemon.store.tables.meta import read_damage

SMALL_BYTES = 16_000_000
"""Size of a small file: its check takes 0.2 s on a PC and a second on a small box. SQLite 3.40 cannot interrupt it."""
NUMBERS = 10_000
"""Of the newest, more than a till sends again; `mcfd verify` checks all."""
CONSTRAINT = re.compile(r"CHECK (\((?:[^()]|\([^()]*\))+\))")
"""With brackets in it one deep, as all of them are written in the schema."""
_SMALL_TABLES = ("meta", "book", "total", "api_key", "outbox", "settlement")

_SQL = load(__name__, record=RECORD_COLUMNS, closure=COLUMNS)


def examine(connection: sqlite3.Connection) -> None:
    """LedgerUnusable, saying what to do, when something is wrong."""
    try:
        if found := read_damage(connection).file:
            raise LedgerUnusable(Text("{state} ({found})", state=DAMAGED, found=found[0]))
        _check_file(connection)
        for book in all_books(connection):
            _check_end(connection, book)
    except sqlite3.DatabaseError as error:
        raise LedgerUnusable(Text("{state} ({error})", state=DAMAGED, error=error)) from error


def previous_hash(connection: sqlite3.Connection, book: Book, seq: int) -> bytes:
    """What the record `seq` is chained to: the last closure or entry before it, or the record before it."""
    return link_after(connection, book, seq - 1)


def _check_file(connection: sqlite3.Connection) -> None:
    """All of a small file; of a large one what is soon looked at."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    is_small = pages * page_size <= SMALL_BYTES
    for found in file_faults(connection, () if is_small else _SMALL_TABLES, most=1):
        raise LedgerUnusable(Text("{state} ({found})", state=DAMAGED, found=found))
    if not is_small:
        _check_numbers(connection)


def file_faults(connection: sqlite3.Connection, tables: Sequence[str] = (), *, most: int) -> Iterator[str]:
    """What SQLite's own check finds in these tables and their indexes, in the whole file without any; each in one line."""
    checks = [f"integrity_check({table})" for table in tables] or [f"integrity_check({most})"]
    try:
        found = [text for check in checks for (text,) in connection.execute(f"PRAGMA {check}")]
    except sqlite3.OperationalError as error:
        if not is_rubbish(error):
            raise
        # An entry's body is no JSON any more, which an index needs: the chain's check reports it.
        names = [name for (name,) in connection.execute(_SQL["tables"])]
        others = [f"integrity_check({name})" for name in names if name != "entry"]
        found = [text for check in (*others, "quick_check(entry)") for (text,) in connection.execute(f"PRAGMA {check}")]
    yield from ("; ".join(text.splitlines()) for text in found if text != "ok")
    yield from _constraint_faults(connection, tables)


def _constraint_faults(connection: sqlite3.Connection, tables: Sequence[str]) -> Iterator[str]:
    """In a file that is opened read-only, SQLite's check leaves out the constraints of the columns."""
    if not connection.execute("PRAGMA query_only").fetchone()[0]:
        return
    for name, text in connection.execute(_SQL["constrained"]).fetchall():
        constraints = " AND ".join(CONSTRAINT.findall(text))
        if (
            name in (tables or (name,))
            and connection.execute(
                f'SELECT 1 FROM "{name}" WHERE NOT ({constraints}) LIMIT 1'  # noqa: S608  of our own schema
            ).fetchone()
        ):
            yield f"CHECK constraint failed in {name}"


def _check_numbers(connection: sqlite3.Connection) -> None:
    """Looks the newest numbers up by their index: one that is not found would be certified again."""
    for (number,) in connection.execute(_SQL["unindexed"], (NUMBERS,)):
        raise LedgerUnusable(Text("{state} (the index does not find invoice {number!r})", state=DAMAGED, number=number))


def _check_end(connection: sqlite3.Connection, book: Book) -> None:
    """The last record and the last closure are what their hashes say, and the book's head is the later of the two."""

    def expect(link: bytes, stored: bytes, what: str) -> None:
        """The link that follows from the one before, unless that was lost."""
        _expect(book, link == stored or stored.hex() in losses(connection, book), what)

    head = read_head(connection, book.id)
    start = read_start(connection, book.id)
    record_seq = start.seq
    row = connection.execute(_SQL["last_record"], (book.id,)).fetchone()
    if row is not None:
        record_seq = row[SEQ]
        try:
            content = unpack(row[PAYLOAD])
            record = record_of(row, content)
            previous = previous_hash(connection, book, record_seq)
            expect(chain.record_hash(previous, record, content), record.hash, Text("record {seq}", seq=record_seq))
        except LedgerUnusable:
            lost = losses(connection, book).values()
            if not any(each.has(record_seq) for each in lost):
                raise
    row = connection.execute(_SQL["last_closure"], (book.id,)).fetchone()
    if row is not None:
        closure = closure_of(row)
        before = link_after(connection, book, closure.last_seq, closure.z_number - 1)
        expect(chain.closure_hash(before, closure), closure.hash, Text("Z {z_number}", z_number=closure.z_number))
    entry = last_entry(connection, book)
    if entry is not None and entry.id > start.entry_id:
        before = link_after(connection, book, entry.after_seq, entry.after_z, entry.id)
        expect(chain.entry_hash(before, entry), entry.hash, Text("entry {number}", number=entry.id))
    if head.seq > record_seq:  # the losses are found by reading every entry
        record_seq = max((record_seq, *(each.last_seq for each in losses(connection, book).values())))
    _expect(
        book,
        head == BookHead(record_seq, head.at, link_after(connection, book, record_seq)),
        Text("the end of the chain"),
    )


def _expect(book: Book, holds: bool, what: str) -> None:
    if not holds:
        raise LedgerUnusable(
            Text(
                "{state} ({what} of {nim}, {mode}, is not what it was; see `mcfd verify`)",
                state=DAMAGED,
                what=what,
                nim=book.nim,
                mode=book.mode,
            )
        )
