"""Unique values: the use of Idempotency-Keys, and invoice numbers in use. Functions on a connection."""

import re
import sqlite3
import sys
from collections.abc import Callable

import msgspec

from daemon.core.errors import KeyUseLost, NotFound
from daemon.core.invoice.invoice import CREDITS
from daemon.core.invoice.number import number_key
from daemon.core.ledger.book import Book, KeyUse
from daemon.core.machine.state import LastInvoice, short_nim
from daemon.store.sqlite.file import load
from daemon.store.tables.book import attempts, closures, deferred
from daemon.store.tables.meta import read_meta

_SQL = load(__name__)
PLACES = "places"
"""In `meta`: the highest place of each series in a ledger that was replaced."""
_ENDS_WITH_DIGITS = re.compile(r"(.*[^0-9]|)([0-9]{1,18})")


def find_key(connection: sqlite3.Connection, book: Book, key_hash: bytes, *, failed: bool = False) -> KeyUse | None:
    """The use of a key in this book or in one that shares keys; None if there is none. A request that failed without a
    change (decision 6) counts only with `failed`. KeyUseLost where a damaged ledger has lost what the key stands for:
    "not found" would have a till send it again."""
    row = connection.execute(_SQL["find_key"], (book.id, key_hash)).fetchone()
    if row is None:
        return None
    has_failed, sale_id, _, fingerprint, attempt_id, z_number, answer, *of = row
    if has_failed and not failed:
        return None
    if sale_id:
        return KeyUse(fingerprint, sale=deferred.by_id(connection, book, sale_id))
    try:
        if attempt_id is not None:
            return KeyUse(fingerprint, record=attempts.find_record(connection, Book(*of), attempt_id))
        if z_number is not None:
            return KeyUse(fingerprint, closure=closures.find_closure(connection, Book(*of), z_number))
    except NotFound as error:
        raise KeyUseLost from error
    return KeyUse(fingerprint, answer=answer or b"")


def count_numbers(connection: sqlite3.Connection, book: Book, prefix: str, digits: int) -> tuple[int, int]:
    """How many numbers of that prefix and so many digits are in use, and the highest of them, 0 without one."""
    glob = prefix + "[0-9]" * digits
    count, highest = connection.execute(_SQL["count_numbers"], (book.id, prefix, glob)).fetchone()
    waiting, last = deferred.numbers_in_use(connection, book, prefix, digits)
    return count + waiting, max(int(highest[len(prefix) :] or 0), last)


def bounds(connection: sqlite3.Connection, book: Book, prefix: str, digits: int) -> tuple[int, int]:
    """Two places of the series, 0 for none: the lowest with an open attempt, which may become free again; and the
    highest that a restored ledger has adopted from its machine, which may have used all before it."""
    found = connection.execute(_SQL["bounds"], (book.id, prefix + "[0-9]" * digits)).fetchone()
    lowest, highest = (int(number[len(prefix) :]) if number else 0 for number in found)
    return lowest, highest


def highest_missing(
    connection: sqlite3.Connection,
    book: Book,
    type_: str,
    prefix_of: Callable[[str], str],
    digits: int,
    *,
    machine: tuple[LastInvoice, int, int] | None = None,
) -> int:
    """The highest place of the series that invoices of that type may have and a restored ledger lacks, after it adopted
    its machine's last invoice; 0 for none. Computed by the counter of sales or credit notes, less the numbers that the
    last invoice's own series explains. `machine`: for a ledger that is not compared yet, the machine's last invoice and
    by how much its counters of sales and credit notes exceed the known ones."""

    def last_before(prefix: str, attempt_id: int) -> int:
        values = (book.id, prefix, prefix + "[0-9]" * digits, attempt_id)
        return int(connection.execute(_SQL["last_before"], values).fetchone()[0][len(prefix) :] or 0)

    taken_over, found = connection.execute(_SQL["adopted"], (book.id,)).fetchall(), 0
    if machine is not None:
        last, *moved = machine
        taken_over.append((sys.maxsize, last.type, number_key(last.number), *moved, True))
    for attempt_id, last_type, number, sold, credited, is_older in taken_over:
        highest = last_before(prefix_of(type_), attempt_id)
        missing, prefix = credited if type_ in CREDITS else sold, prefix_of(last_type)
        place = number[len(prefix) :] if number.startswith(prefix) else ""
        if not (is_older or place.isdecimal()):
            continue  # a stranger's
        if (last_type in CREDITS) == (type_ in CREDITS):
            missing -= int(place) - last_before(prefix, attempt_id) if place.isdecimal() else 1
        if highest and missing > 0:
            found = max(found, highest + missing)
    return found


def highest_replaced(connection: sqlite3.Connection, book: Book, prefix: str, digits: int) -> int:
    """The highest place of the series in a ledger that a copy has replaced; 0 for none."""
    places, found = read_places(connection), 0
    for (nim,) in connection.execute(_SQL["sharing"], (book.id,)).fetchall():
        if first := place_of(nim, prefix + "0" * digits):
            place = places.get(first[0], 0) - first[1]
            found = max(found, place) if place < 10**digits else found
    return found


def read_places(connection: sqlite3.Connection) -> dict[str, int]:
    """By name of the series (`place_of`), as stored at the last restore."""
    return msgspec.json.decode(read_meta(connection, PLACES) or "{}", type=dict[str, int])


def place_of(nim: str, number: str) -> tuple[str, int] | None:
    """A name for the machine's series of that number, and all digits at the number's end: the place, behind those of a
    prefix that ends with digits. None without digits, or with too many."""
    parts = _ENDS_WITH_DIGITS.fullmatch(number_key(number))
    return None if parts is None else (f"{short_nim(nim)} {parts[1]} {len(parts[2])}", int(parts[2]))


def is_reserved(connection: sqlite3.Connection, book: Book, number: str) -> bool:
    """Whether an attempt has that number, or one equal to it, or a sale waits with it."""
    return bool(connection.execute(_SQL["is_reserved"], (book.id, number, number_key(number))).fetchone()[0])
