"""The numbers that must never come twice, in a small file beside the ledger: an older copy of the ledger does not bring them back.

For each book the last numbers of months and years, the last Z number `given`, one `reserved` for a Z that is being made, the question for the last Z while it has no answer, and
the ledgers whose numbers these are; and the hashes of revoked keys. The file is durable
before the transaction that it is about, so that a copy of the ledger from before knows what was given after it. A number that is reserved
and not given belongs to a Z that a crash may have cut off: the ledger that reserved it tells (`Store.open`); where that one is gone, it counts
as given.

Written whole under another name, synced and renamed. It names its ledger's books by machine, mode and taxpayer, as decision 33 does."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from pathlib import Path

import msgspec

from common.files import real_path, sync_path
from common.language import Text
from common.language.system import reason
from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.core.machine.state import short_nim
from daemon.store.sqlite.disk_failure import file_failed

SUFFIX = ".high-water"


class Mark(msgspec.Struct, frozen=True):
    """`highest` is the last number in use; `reserved` is 0 or `highest + 1`. The names in the file are those of version 0.1.0."""

    highest: int = msgspec.field(default=0, name="given")
    reserved: int = 0
    question: int = msgspec.field(default=0, name="asked")
    """The question for the last Z that is open; 0: none. A ledger's row has it as well, and the negative number once it is answered."""
    months: int = 0
    """The last number of a closed month; a number is counted after its closure, or at the next start."""
    years: int = 0


class Marks(msgspec.Struct, frozen=True):
    books: dict[str, Mark] = {}
    revoked: frozenset[str] = frozenset()
    """SHA-256 of the keys, in hex."""
    ledgers: dict[str, frozenset[str]] = {}
    """For each book the ids of the ledgers that have counted its numbers here: of no other ledger is it known what was given since."""
    incomplete: bool = False
    """A ledger was put back of which nothing here knew: a book that begins later may have had numbers in the lost one."""


def mark_path(ledger: Path) -> Path:
    real = real_path(ledger)
    return real.with_name(real.name + SUFFIX)


def read_marks(ledger: Path) -> Marks | None:
    """None when there is no file. LedgerUnusable when there is one that cannot be read: guessing would give a number twice."""
    found = [marks for path in _paths(ledger) if (marks := _read(path)) is not None]
    return functools.reduce(merged, found) if found else None


def _paths(ledger: Path) -> set[Path]:
    """Version 0.1.0 had its file beside the ledger's name in the configuration, also where that is a symbolic link."""
    return {mark_path(ledger), ledger.with_name(ledger.name + SUFFIX)}


def _read(path: Path) -> Marks | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerUnusable(Text("{path} cannot be read ({why})", path=path, why=reason(error))) from error
    try:
        return msgspec.json.decode(content, type=Marks)
    except msgspec.MsgspecError as error:
        raise LedgerUnusable(
            Text(
                "{path} is damaged; it holds the last Z numbers: move it away, and say the last Z on paper with `mcfd machine last-z`",
                path=path,
            )
        ) from error


def write_marks(ledger: Path, marks: Marks) -> None:
    """Durable when it returns; StorageFull when it cannot be, and then the file is as before."""
    path = mark_path(ledger)
    part = path.with_name(path.name + ".part")
    content = msgspec.json.encode(marks, order="deterministic")
    try:
        descriptor = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(path)
        sync_path(path.parent)
    except OSError as error:
        file_failed(error, is_sync=True)
        with contextlib.suppress(OSError):
            part.unlink()
        raise StorageFull(Text("{path} cannot be written ({why})", path=path, why=reason(error))) from error


class HighWater:
    """The marks of one ledger, as this process last wrote them. `ledger_id` is the open ledger's."""

    def __init__(self, ledger: Path, ledger_id: str = "") -> None:
        self._ledger = ledger
        self._id = ledger_id
        self._lock = threading.Lock()  # the writer reserves while another thread writes what was given in another book
        self.marks = read_marks(ledger) or Marks()
        self.unmet: set[str] = set()
        """Books that have met their machine, and whose names the disk has not taken yet."""

    def highest(self, book: str) -> int:
        return max((self._mark(name).highest for name in names_of(self.marks, book)), default=0)

    def calendar(self, book: str) -> tuple[int, int]:
        """The last numbers of closed months and years."""
        marks = [self._mark(name) for name in names_of(self.marks, book)]
        return max((mark.months for mark in marks), default=0), max((mark.years for mark in marks), default=0)

    def count(self, book: str, months: int, years: int) -> None:
        """After a closure with these numbers, or for numbers that were learned from elsewhere."""
        with self._lock:
            mark = self._mark(book)
            if mark.months < months or mark.years < years:
                months, years = max(mark.months, months), max(mark.years, years)
                self._put(book, msgspec.structs.replace(mark, months=months, years=years))

    def reserved(self, book: str) -> int:
        return self._mark(book).reserved

    def question(self, book: str) -> int:
        """The open question, 0 for none."""
        return self._mark(book).question

    def knows(self, book: str) -> bool:
        """Whether a ledger with that book has ever worked here; of no taxpayer: with any book of that machine."""
        return any(name == book or book == without_taxpayer(book) for name in names_of(self.marks, book))

    def has_met(self, book: str) -> bool:
        """Whether this ledger's book is written down, and nothing of it under no taxpayer's name."""
        unowned = without_taxpayer(book)
        return (
            book in self.marks.books
            and self._id in self.marks.ledgers.get(book, frozenset())
            and (unowned == book or unowned not in self.marks.books)
        )

    def reserve(self, book: str, z_number: int) -> None:
        """Before the transaction of that Z."""
        with self._lock:
            highest = max(self.highest(book), z_number - 1)
            self._put(book, msgspec.structs.replace(self._mark(book), highest=highest, reserved=z_number, question=0))

    def give(self, book: str, z_number: int) -> None:
        """After it, or for a number that was learned from elsewhere; also makes the book known."""
        with self._lock:
            mark = self.marks.books.get(book)
            if mark is None or mark.reserved or mark.highest < z_number:
                highest = max(self.highest(book), z_number)
                self._put(book, msgspec.structs.replace(self._mark(book), highest=highest, reserved=0))

    def meet(self, book: str) -> None:
        """A ledger has that book and knows its machine; durable, whatever numbers are known. What stands under no taxpayer's name is this one's."""
        with self._lock:
            if self.has_met(book):
                return
            mark, unowned = self._mark(book), without_taxpayer(book)
            books = {name: each for name, each in self.marks.books.items() if name != unowned}
            months, years = self.calendar(book)
            books[book] = msgspec.structs.replace(mark, highest=self.highest(book), months=months, years=years)
            counted = self.marks.ledgers.get(book, frozenset()) | ({self._id} - {""})
            ledgers = {**self.marks.ledgers, book: counted} if counted else self.marks.ledgers
            self._write(msgspec.structs.replace(self.marks, books=books, ledgers=ledgers))

    def ask(self, book: str, question: int) -> None:
        """The last Z of that book is unknown (0: it is known)."""
        with self._lock:
            if self.question(book) != question:
                self._put(book, msgspec.structs.replace(self._mark(book), question=question))

    def revoke(self, key_hash: bytes) -> None:
        text = key_hash.hex()
        with self._lock:
            if text not in self.marks.revoked:
                self._write(msgspec.structs.replace(self.marks, revoked=self.marks.revoked | {text}))

    def _mark(self, book: str) -> Mark:
        return self.marks.books.get(book, Mark())

    def _put(self, book: str, mark: Mark) -> None:
        self._write(msgspec.structs.replace(self.marks, books={**self.marks.books, book: mark}))

    def _write(self, marks: Marks) -> None:
        write_marks(self._ledger, marks)
        self.marks = marks


def book_name(nim: str, mode: str, ifu: str) -> str:
    """As the file names a book: machine up to the dash, mode, taxpayer."""
    return f"{short_nim(nim)} {mode} {ifu}"


def without_taxpayer(book: str) -> str:
    """The name that a book of the same machine has as long as its taxpayer is not known."""
    return book.rpartition(" ")[0] + " "


def names_of(marks: Marks, book: str) -> list[str]:
    """The names under which numbers of that book may stand: its own, and that without a taxpayer, for a Z that was made before the machine sent
    its taxpayer. A book whose taxpayer is not known may be any of its machine."""
    unowned = without_taxpayer(book)
    return [name for name in marks.books if name in (book, unowned) or (book == unowned == without_taxpayer(name))]


def merged(one: Marks, other: Marks) -> Marks:
    """The higher of each number, and every revoked key; a question that either asks."""
    names = one.books.keys() | other.books.keys()
    books = {name: _higher(one.books.get(name, Mark()), other.books.get(name, Mark())) for name in names}
    counted = one.ledgers.keys() | other.ledgers.keys()
    ledgers = {name: one.ledgers.get(name, frozenset()) | other.ledgers.get(name, frozenset()) for name in counted}
    return Marks(books, one.revoked | other.revoked, ledgers, one.incomplete or other.incomplete)


def _higher(one: Mark, other: Mark) -> Mark:
    highest = max(one.highest, other.highest)
    reserved = max(one.reserved, other.reserved)
    months, years = max(one.months, other.months), max(one.years, other.years)
    return Mark(highest, reserved if reserved > highest else 0, other.question or one.question, months, years)
