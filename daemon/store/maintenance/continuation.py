"""What the ledger in place has since a copy of it was made. A restore loses none of it: a sound ledger that continues the
copy stays; of a damaged one the later rows are taken over into the copy, which is then verified as a whole."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Final

from common.language import Counted, Text
from daemon.core.errors import LedgerUnusable
from daemon.core.ledger.book import Book
from daemon.core.ledger.entries import NO_CASH, RecordsLost
from daemon.core.ledger.tally import subtract
from daemon.core.report.fiscal_reports import totals_of
from daemon.store.maintenance.verify import OLDER, Progress, VerifyResult, examine_shape, is_room, verify
from daemon.store.sqlite.disk_failure import as_storage_error
from daemon.store.sqlite.file import UNREADABLE, load, open_file, open_to_read, transaction, value_of
from daemon.store.sqlite.migrations import is_current, migrations
from daemon.store.tables.book import books, entries, totals
from daemon.store.tables.book.settlements import has_code
from daemon.store.tables.meta import LEDGER_ID, Damage, read_damage, read_meta, write_damage

_SQL = load(__name__)
_LOST = (*UNREADABLE, LedgerUnusable, OSError)

BY_ROW: Final = ("certification", "closure", "entry", "audit")
"""Rows are only added: those that the copy lacks are read, so damage among the earlier ones does no harm."""
REPAIRED: Final = {
    "certification": "chained_at IS NOT NULL",
    "closure": "coalesce(chained_at, chained_start) IS NOT NULL",
    "entry": "chained_at IS NOT NULL",
}
"""Of a row whose time was repaired."""
NEEDED: Final = ("total", "checkpoint", "take_over", "machine_pair")
"""All rows of the live books: older ones do not go with newer records. A sandbox is the copy's, as `book_start` is."""
OF_BOOK: Final = ("idempotency", "event", "outbox", "settlement", "letterhead", "deferred")
"""All rows of the live books; of a table that cannot be read, those of the copy."""
OF_BOX: Final = ("api_key", "person")
"""All rows, or those of the copy; sessions end with a restore."""
ROWS_OF_PAGE: Final = 100
"""More than fit."""
IGNORE_SCHEMA_ERRORS: Final = "PRAGMA writable_schema = ON"
UNKNOWN: Final = "?"
"""For the number of an invoice."""


def lacking(source: Path, target: Path) -> list[str]:
    """Numbers of the live invoices, certified or waiting, that the ledger in place has and the copy lacks, newest first;
    empty if it cannot be read at all."""
    found: list[str] = []
    with (
        contextlib.suppress(*_LOST),
        closing(_open_damaged(target)) as present,
        closing(open_to_read(source)) as copy,
    ):
        try:
            found.extend(_numbers_lacking(present, copy))
        except UNREADABLE:
            found.extend([UNKNOWN] * _is_same_ledger(copy, present))
    return found


def invoices_text(lacks: Sequence[str]) -> Text:
    """What `lacking` has found: how many, the first and the last."""
    numbers = [number for number in lacks if number != UNKNOWN]
    if not numbers:
        return Text("invoices whose numbers cannot be read")
    return Counted(
        "invoice {last}", "{count} invoices ({first} to {last})", len(lacks), first=numbers[-1], last=numbers[0]
    )


def _numbers_lacking(present: sqlite3.Connection, copy: sqlite3.Connection) -> Iterator[str]:
    """Those after the last row that both have, then those that the copy has as under way: another machine's row may be later."""
    saved = value_of(copy.execute("SELECT coalesce(max(id), 0) FROM certification"))
    unended, hidden = {row_id for (row_id,) in copy.execute(_SQL["unended"])}, _hidden(present, saved)
    for row_id in range(max(_last_row(present, saved), *hidden, 0), 0, -1):
        number = hidden.get(row_id) or _number_lacking(present, copy, row_id)
        if number is None or (number == UNKNOWN and row_id <= saved):
            break
        unended.discard(row_id)
        if number:
            yield number
    yield from filter(None, (_number_lacking(present, copy, row_id) for row_id in sorted(unended, reverse=True)))
    waiting = set(copy.execute(_SQL["addresses"]))
    yield from (number for number, *address in present.execute(_SQL["waiting"]) if tuple(address) not in waiting)


def _open_damaged(target: Path) -> sqlite3.Connection:
    """To read what is left: tables and indexes whose definitions are damaged are not there."""
    present = open_to_read(target)
    present.execute(IGNORE_SCHEMA_ERRORS)
    return present


def _last_row(present: sqlite3.Connection, saved: int) -> int:
    """By the index, since the page of the newest rows may be the damaged one; else by the rows. At most as many after
    `saved` as the file can have: the number may be damaged itself."""
    most: int = saved + value_of(present.execute("PRAGMA page_count")) * ROWS_OF_PAGE
    try:
        last: int = value_of(present.execute(_SQL["last_in_index"]))
    except UNREADABLE:
        last = value_of(present.execute(_SQL["last"]))
    return min(last, most)


def _hidden(present: sqlite3.Connection, saved: int) -> dict[int, str]:
    """Numbers of the rows after `saved` that the index has and the table does not: SQLite overlooks or misreads a row that has been zeroed, without
    an error."""
    found: dict[int, str] = {}
    with contextlib.suppress(*UNREADABLE):
        for row_id, number in present.execute(_SQL["in_index"], (saved,)).fetchall():
            with contextlib.suppress(*UNREADABLE):
                if not present.execute(_SQL["is_there"], (row_id,)).fetchone():
                    found[row_id] = str(number)
    return found


def _number_lacking(present: sqlite3.Connection, copy: sqlite3.Connection, row_id: int) -> str | None:
    """The number if the row is a live certification; empty if it is none, None if the copy has it."""
    try:
        row = present.execute(_SQL["certified"], (row_id,)).fetchone()
    except UNREADABLE:
        return UNKNOWN
    if row is None:
        return ""
    number, code = row
    return None if has_code(copy, code) else str(number)


def sound_continuation(source: Path, target: Path, progress: Callable[[int, int], None]) -> VerifyResult | None:
    """Findings of the ledger in place if it is sound and has all of the copy; else None."""
    with (
        contextlib.suppress(*_LOST),
        closing(open_to_read(target)) as present,
        closing(open_to_read(source)) as copy,
    ):
        if _continues(copy, present) and not read_damage(present).all:
            findings = verify(target, progress)
            return findings if findings.clean else None
    return None


def _continues(copy: sqlite3.Connection, present: sqlite3.Connection) -> bool:
    """Whether the chains of the present ledger contain those of the copy."""
    return _is_same_ledger(copy, present) and all(
        _has_link(copy, present, table, row_id) for table, row_id in copy.execute(_SQL["newest_links"]).fetchall()
    )


def _has_link(copy: sqlite3.Connection, present: sqlite3.Connection, table: str, row_id: int) -> bool:
    """Whether both have the same row, or if the present one is lost the same row before it."""
    sql = f"SELECT hash FROM {table} WHERE id = ?"  # noqa: S608  of our own schema
    later = f"SELECT 1 FROM {table} WHERE id >= ?"  # noqa: S608
    for each in range(row_id, 0, -1):
        link = value_of(copy.execute(sql, (each,)), None)
        try:
            found = value_of(present.execute(sql, (each,)), None)
            is_older = found is None and not value_of(present.execute(later, (row_id,)))
        except UNREADABLE:
            continue
        if link is not None and (is_older or found is not None):
            return bool(found == link)
    return False


def usable_continuation(
    copy: Path, findings: VerifyResult, source: Path, target: Path, progress: Progress
) -> VerifyResult | None:
    """The findings if mcfd can work with a `copy` of `source` that has the newer rows of `target`: at most single ones
    of them are damaged, or missing, as entries of the chain say from now on. LedgerUnusable if they do not continue the
    copy."""
    if findings.clean:
        return findings
    with (
        contextlib.suppress(*UNREADABLE),
        closing(_open_damaged(target)) as present,
        closing(open_to_read(source)) as saved,
    ):
        if not _continues(saved, present):
            raise LedgerUnusable(Text("it lacks what the copy has: it is older, or both were in use since"))
        if findings.losses:
            with closing(open_file(copy, "rw")) as mended:
                with transaction(mended):  # the totals then show what all have counted
                    for book, _ in findings.losses:
                        totals.add_new(mended, book, UTC)
                losses = verify(copy, progress).losses
                with transaction(mended):
                    _name_losses(mended, losses)
            findings = verify(copy, progress)
        with contextlib.suppress(LedgerUnusable):
            examine_shape(copy)
            return None if findings.of_file else findings
    return None


def _name_losses(connection: sqlite3.Connection, losses: Iterable[tuple[Book, RecordsLost]]) -> None:
    """With an entry for each in its book's chain the ledger is sound, and so are its backups. Of the newest records of
    a book, what no totals have counted is `unexplained`: the machine has counted it since the last Z."""
    for book, loss in sorted(losses, key=lambda each: bool(each[1].next_hash)):
        if not loss.next_hash:  # the first one, since it has to follow the end of its book
            row, state = totals.read_totals(connection, book.id), books.book_state(connection, book)
            counted = totals_of(book, subtract(row.running, row.closed), NO_CASH, {})["certs_count"]
            connection.execute(_SQL["uncounted"], {"book": book.id, "z": state.z_number, "counted": counted})
        entries.append(connection, book, loss, 0)


def _is_same_ledger(copy: sqlite3.Connection, present: sqlite3.Connection) -> bool:
    return bool(read_meta(copy, LEDGER_ID)) and read_meta(copy, LEDGER_ID) == read_meta(present, LEDGER_ID)


def take_over_newer(copy: sqlite3.Connection, target: Path) -> list[str]:
    """Takes what the ledger in place has since into its copy, whose schema is the present one. Only `verify` shows
    whether the chains go on. Returns the tables of which rows cannot be read, and so are as in the copy. LedgerUnusable
    if it is another ledger, of an older version, or cannot be read at all."""
    try:
        with closing(_open_damaged(target)) as present:
            if not is_current(present, migrations()):
                raise LedgerUnusable(OLDER(path=target))
            if not _is_same_ledger(copy, present):
                raise LedgerUnusable(Text("it is another ledger, of which this is no copy"))
        copy.execute(IGNORE_SCHEMA_ERRORS)
        copy.execute("ATTACH ? AS present", (f"{target.absolute().as_uri()}?mode=ro",))
        return _take_rows(copy)
    except UNREADABLE as error:
        if isinstance(error, sqlite3.Error) and is_room(error):
            raise as_storage_error(error) from error
        raise LedgerUnusable(Text("it cannot be read: {error}", error=error)) from error


def _take_rows(copy: sqlite3.Connection) -> list[str]:
    newest = {table: value_of(copy.execute(f"SELECT coalesce(max(id), 0) FROM main.{table}")) for table in BY_ROW}  # noqa: S608  of our own schema
    unended = copy.execute(_SQL["unended"]).fetchall()
    live = "book_id IN (SELECT id FROM main.book WHERE mode = 'live')"
    _replace(copy, "book", "mode = 'live'")
    _replace(copy, "meta", "true")
    write_damage(copy, Damage())  # what is known of it is of the ledger that gives way
    for table in NEEDED:
        _replace(copy, table, live)
    for row_id in unended:
        _is_read(partial(_replace, copy, "certification", "id = ?", row_id))
    unread = [
        table for table in BY_ROW if not _take_later(copy, table, "true" if table == "audit" else live, newest[table])
    ]
    if copy.execute(_SQL["repairs"], (newest["entry"],)).fetchone():
        _take_repaired(copy, newest, live)
    for tables, condition in ((OF_BOOK, live), (OF_BOX, "true")):
        unread += [table for table in tables if not _is_read(partial(_replace, copy, table, condition))]
    return unread


def _is_read(take: Callable[[], object]) -> bool:
    """Takes rows; False if they cannot be read."""
    try:
        take()
    except UNREADABLE as error:
        if is_room(error):
            raise
        return False
    return True


def _replace(copy: sqlite3.Connection, table: str, condition: str, values: tuple[int, ...] = ()) -> None:
    """All of its rows on the condition, or none."""
    copy.execute("BEGIN")
    with copy:
        copy.execute(f"DELETE FROM main.{table} WHERE {condition}", values)  # noqa: S608  of our own schema
        copy.execute(f"INSERT INTO main.{table} SELECT * FROM present.{table} NOT INDEXED WHERE {condition}", values)  # noqa: S608  of our own schema


def _take_repaired(copy: sqlite3.Connection, newest: Mapping[str, int], live: str) -> None:
    """Takes the rows that the copy has with their former times."""
    for table, is_repaired in REPAIRED.items():
        sql = f"REPLACE INTO main.{table} SELECT * FROM present.{table} WHERE id = ? AND {is_repaired} AND {live}"  # noqa: S608  of our own schema
        for row_id in range(newest[table], 0, -1):
            _is_read(partial(copy.execute, sql, (row_id,)))


def _take_later(copy: sqlite3.Connection, table: str, condition: str, newest: int) -> bool:
    """Takes the rows after `newest`; where a page cannot be read, those that can be, each by its id. Whether all can."""
    sql = f"INSERT INTO main.{table} SELECT * FROM present.{table} NOT INDEXED WHERE {condition} AND id"  # noqa: S608  of our own schema

    def by_id() -> None:
        last = newest + value_of(copy.execute("PRAGMA present.page_count")) * ROWS_OF_PAGE
        with contextlib.suppress(*UNREADABLE):  # the page of the newest rows may be the damaged one
            last = min(last, value_of(copy.execute(f"SELECT max(id) FROM present.{table}")))  # noqa: S608  of our own schema
        for row_id in range(newest + 1, last + 1):
            _is_read(partial(copy.execute, f"{sql} = ?", (row_id,)))

    is_whole = _is_read(partial(copy.execute, f"{sql} > ?", (newest,)))
    if not is_whole:
        _is_read(by_id)
    return is_whole
