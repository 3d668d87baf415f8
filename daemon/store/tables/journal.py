"""Queries of the electronic journal: ended attempts newest first or as a stream, codes, numbers and credits.

The checkpoints turn a range of time into a range of seq, since time never goes back in a book."""

import re
import sqlite3
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise

import msgspec

from daemon.core.errors import LedgerUnusable
from daemon.core.invoice.invoice import without_accents
from daemon.core.invoice.number import same_number
from daemon.core.ledger.attempt import OPEN, OpenState, Record
from daemon.core.ledger.book import Book
from daemon.core.report.journal import Extent, Page
from daemon.store.sqlite.file import load
from daemon.store.tables.book import attempts
from daemon.store.tables.book.codec import RECORD_COLUMNS, UNREADABLE, each_of, read_invoice, record_of, unpack
from daemon.store.tables.book.totals import bracket

_SQL = load(__name__, columns=RECORD_COLUMNS)
_PLACES = load(__name__, columns="id, seq")
"""The same, for reading one by one."""

CHUNK = 128
"""Records that a stream reads at a time: constant memory, and no long read transaction that keeps the WAL growing."""

WALKED = 2000
"""Entries gone back through before the indexes of the numbers are used: these would read the row of each number that has
a frequent part, seconds in a large ledger."""

NUMBERS = 5_000
"""Numbers that one query searches in an index, about a millisecond; with four milliseconds one sale in a hundred took
ten longer, since its caches were cold."""

_MARKS = rb"(?:\xcc[\x80-\xbf]|\xcd[\x80-\xaf])*"
"""Combining accents in UTF-8, each after its letter."""

_LAST = sys.maxsize
_LAST_NUMBER = "\U0010ffff"

Between = tuple[int, int, int, int]
"""After a seq up to another; from a time until before another (ms)."""
Stretch = tuple[str, str]
"""After a number up to another."""


def extent(connection: sqlite3.Connection, book: Book) -> Extent:
    """How far the book goes now."""
    return Extent(*connection.execute(_SQL["extent"], (book.id,)).fetchone())


def journal(connection: sqlite3.Connection, book: Book, page: Page) -> list[Record]:
    """Newest first. Attempts that have not ended (begun, disputed) are found by asking for that state."""
    if page.state in OPEN:
        return list(_open_ones(connection, book, page))
    if page.number:
        return _of_number(connection, book, page)
    return _newest_first(connection, book, page, _between(connection, book, page))


def _newest_first(connection: sqlite3.Connection, book: Book, page: Page, between: Between) -> list[Record]:
    values = (book.id, *between, *attempts.search_parameters(page), page.part, page.part, page.limit)
    try:
        return [record_of(row) for row in connection.execute(_SQL["newest_first"], values)]
    except UNREADABLE:
        return _walk(connection, book, page, between, newest_first=True)


def _walk(
    connection: sqlite3.Connection, book: Book, page: Page, between: Between, *, newest_first: bool
) -> list[Record]:
    """Past what is damaged, by the index of the seqs alone; an entry that cannot be read may match."""
    after, upto, start, end = between
    page = msgspec.structs.replace(page, start=start, end=end)
    places = connection.execute(_PLACES["walk_back" if newest_first else "walk_on"], (book.id, after, upto)).fetchall()
    found = (
        record
        for record in each_of(connection, places)
        if record.state == "damaged" or (page.fits(record) and page.part in record.number)
    )
    return list(islice(found, page.limit))


def _each(connection: sqlite3.Connection, name: str, values: tuple[object, ...]) -> list[Record]:
    """Of a query that reads few rows."""
    try:
        return [record_of(row) for row in connection.execute(_SQL[name], values)]
    except UNREADABLE:
        return list(each_of(connection, connection.execute(_PLACES[name], values).fetchall()))


def _between(connection: sqlite3.Connection, book: Book, page: Page) -> Between:
    after, upto = bracket(connection, book, page.start, page.end)
    last = _LAST if upto is None else upto
    if page.before_seq:
        last = min(last, page.before_seq - 1)
    return max(after, page.after_seq), last, page.start, page.end


def reach(connection: sqlite3.Connection, book: Book, page: Page) -> tuple[int, int]:
    """The seqs of all ended entries of the page: after the first, up to the second; none if both are equal."""
    after, last, _, _ = _between(connection, book, page)
    (newest,) = connection.execute(_SQL["newest"], (book.id, last)).fetchone()
    return after, max(after, newest)


def newest_with_part(connection: sqlite3.Connection, book: Book, page: Page) -> tuple[list[Record], int]:
    """The newest entries whose number has the part, and the `before_seq` for older ones, 0 at the end. A frequent part
    is found soon this way."""
    after, newest = reach(connection, book, page)
    walked = max(after, newest - WALKED)
    found = _newest_first(connection, book, page, (walked, newest, page.start, page.end))
    return found, 0 if len(found) == page.limit or walked == after else walked + 1


def stretches(connection: sqlite3.Connection, book: Book) -> list[Stretch]:
    """Ranges of numbers with about equally many entries: bounded by the numbers of entries at equal distances, so that
    nothing has to be counted."""
    (newest,) = connection.execute(_SQL["newest"], (book.id, _LAST)).fetchone()
    rows = connection.execute(_SQL["numbers"], (NUMBERS, newest, book.id)).fetchall()
    return list(pairwise(["", *(number for (number,) in rows), _LAST_NUMBER]))


def with_part(connection: sqlite3.Connection, book: Book, page: Page, stretch: Stretch) -> list[Record]:
    """Of the numbers in that stretch, by their indexes; newest first."""
    numbers = (book.id, *stretch, page.part)
    values = (*numbers, *numbers, *_between(connection, book, page), *attempts.search_parameters(page), page.limit)
    return _each(connection, "with_part", values)


def of_customer(connection: sqlite3.Connection, book: Book, page: Page) -> tuple[list[Record], int]:
    """Of the next `page.limit` entries, newest first, those whose customer has `page.text` in name, IFU or phone; and the
    `before_seq` to continue, 0 at the end. An invoice is unpacked only if it may contain the text."""
    values = (book.id, *_between(connection, book, page), *attempts.search_parameters(page), page.limit)
    rows = connection.execute(_SQL["payloads"], values).fetchall()
    pattern, plain = pattern_of(page.text), without_accents(page.text)
    hits = [(record_id, seq) for record_id, seq, payload in rows if _is_named(payload, pattern, plain)]
    return list(each_of(connection, hits)), rows[-1][1] if len(rows) == page.limit else 0


def _is_named(payload: bytes, pattern: re.Pattern[bytes], plain: str) -> bool:
    """An invoice that cannot be read has no owner."""
    try:
        content = unpack(payload)
        return pattern.search(content) is not None and read_invoice(content).customer.is_named(plain)
    except LedgerUnusable:
        return False


def pattern_of(text: str) -> re.Pattern[bytes]:
    """The text in an invoice's bytes: capital or small letters, with accents or without."""
    letters = [{each, each.upper(), *_accented().get(each, ())} for each in without_accents(text)]
    choices = [b"|".join(re.escape(each.encode()) for each in sorted(variants)) for variants in letters]
    return re.compile(b"".join(b"(?:%b)%b" % (choice, _MARKS) for choice in choices))


@cache
def _accented() -> dict[str, list[str]]:
    """By the plain letter, those of Latin scripts with accents."""
    found: dict[str, list[str]] = {}
    for each in map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))):
        found.setdefault(without_accents(each), []).append(each)
    return found


def chunk(connection: sqlite3.Connection, book: Book, start: int, end: int, after_seq: int) -> list[Record]:
    """The next records of a stream, oldest first: those after the seq `after_seq`."""
    after, upto = bracket(connection, book, start, end)
    last = _LAST if upto is None else upto
    values = (book.id, max(after, after_seq), last, start, end, CHUNK)
    try:
        return [record_of(row) for row in connection.execute(_SQL["oldest_first"], values)]
    except UNREADABLE:
        between = (max(after, after_seq), last, start, end)
        return _walk(connection, book, Page(start, end, limit=CHUNK), between, newest_first=False)


def find_code(connection: sqlite3.Connection, book: Book, code: str) -> Record | None:
    return next(map(record_of, connection.execute(_SQL["by_code"], (book.id, code))), None)


def credits_on(connection: sqlite3.Connection, sale_id: int) -> list[Record]:
    """The certified credit notes on that sale, oldest first, a hundred at the most, of whichever machine."""
    return _each(connection, "credits", (sale_id,))


def _open_ones(connection: sqlite3.Connection, book: Book, page: Page) -> Iterator[Record]:
    state: OpenState = "begun" if page.state == "begun" else "disputed"
    for record in reversed(attempts.unfinished(connection, book, state)):
        if (
            (not page.number or same_number(page.number, record.number))
            and page.part in record.number
            and page.fits(record)
        ):
            yield record


def _of_number(connection: sqlite3.Connection, book: Book, page: Page) -> list[Record]:
    before = page.before_seq or _LAST
    try:
        found = attempts.failed_attempts(connection, book, page)
        holders = attempts.certified_numbers(connection, book, page.number)
        found += [holder for holder in holders if holder.seq < before and page.fits(holder)]
        return sorted(found, key=lambda record: -record.seq)[: page.limit]
    except UNREADABLE:
        places = connection.execute(_PLACES["of_number"], (book.id, page.number, before)).fetchall()
        each = each_of(connection, places)
        return [record for record in each if record.state == "damaged" or page.fits(record)][: page.limit]
