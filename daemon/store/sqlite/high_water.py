"""The high-water file beside the ledger: numbers that must never be given twice, even after an older copy is restored.

For each book it has the last numbers of months and years, the last Z number (`highest`), the number `reserved` for a Z
in progress, the open question for the last Z, and the ids of the ledgers that counted here; also the hashes of revoked
keys. The file is durable before the transaction to which it belongs, so it knows what was given after a copy was made.
A number that is reserved and not given belongs to a Z that a crash may have interrupted. The ledger that reserved it
decides (`Store.open`); without that ledger the number counts as given.

The file is replaced by a synced temporary one. Books are named by machine, mode and taxpayer (decision 33)."""

import contextlib
import functools
import os
import threading
from pathlib import Path

import msgspec

from common.files import read_file, real_path, sync_path
from common.language import Text
from common.language.system import reason
from daemon.core.errors import LedgerUnusable, StorageFull
from daemon.core.machine.state import short_nim
from daemon.store.sqlite.disk_failure import file_failed

SUFFIX = ".high-water"


class Mark(msgspec.Struct, frozen=True):
    """`highest`: the last number in use; `reserved`: 0 or `highest + 1`. Names in the file are those of 0.1.0."""

    highest: int = msgspec.field(default=0, name="given")
    reserved: int = 0
    question: int = msgspec.field(default=0, name="asked")
    """Id of the open question for the last Z, 0 for none; in the ledger's row negative once answered."""
    months: int = 0
    """Number of the last closed month, counted after its closure or at the next start."""
    years: int = 0


class Marks(msgspec.Struct, frozen=True):
    books: dict[str, Mark] = {}
    revoked: frozenset[str] = frozenset()
    """SHA-256 of the keys, in hex."""
    ledgers: dict[str, frozenset[str]] = {}
    """By book, the ids of the ledgers whose numbers are counted here; for any other ledger this file proves nothing."""
    incomplete: bool = False
    """A ledger unknown to this file was restored: a book that begins later may have had numbers in the lost one."""


def mark_path(ledger: Path) -> Path:
    real = real_path(ledger)
    return real.with_name(real.name + SUFFIX)


def read_marks(ledger: Path) -> Marks | None:
    """None without a file; LedgerUnusable if it cannot be read, since a guess could give a number twice."""
    found = [marks for path in _paths(ledger) if (marks := _read(path)) is not None]
    return functools.reduce(merged, found) if found else None


def _paths(ledger: Path) -> set[Path]:
    """Also where 0.1.0 had the file: beside the configured path, even if that is a symbolic link."""
    return {mark_path(ledger), ledger.with_name(ledger.name + SUFFIX)}


def _read(path: Path) -> Marks | None:
    try:
        content = read_file(path)
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
    """Durable when it returns; on StorageFull the file is unchanged."""
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
        file_failed(error)
        with contextlib.suppress(OSError):
            part.unlink()
        raise StorageFull(Text("{path} cannot be written ({why})", path=path, why=reason(error))) from error


class HighWater:
    """The marks of one ledger, as this process last wrote them. `ledger_id` is the open ledger's."""

    def __init__(self, ledger: Path, ledger_id: str = "") -> None:
        self._ledger = ledger
        self._id = ledger_id
        self._lock = threading.Lock()  # the writer's thread reserves while another thread counts a given number
        self.marks = read_marks(ledger) or Marks()
        self.unmet: set[str] = set()
        """Names of books whose machine was connected and that are not in the file yet."""

    def highest(self, book: str) -> int:
        return max((self._mark(name).highest for name in names_of(self.marks, book)), default=0)

    def calendar(self, book: str) -> tuple[int, int]:
        """The last numbers of closed months and years."""
        marks = [self._mark(name) for name in names_of(self.marks, book)]
        return max((mark.months for mark in marks), default=0), max((mark.years for mark in marks), default=0)

    def count(self, book: str, months: int, years: int) -> None:
        """Counts the numbers of a closure, or numbers known from elsewhere."""
        with self._lock:
            mark = self._mark(book)
            months, years = max(mark.months, months), max(mark.years, years)
            if (months, years) != (mark.months, mark.years):
                self._put(book, msgspec.structs.replace(mark, months=months, years=years))

    def question(self, book: str) -> int:
        """The open question, 0 for none."""
        return self._mark(book).question

    def contains(self, book: str) -> bool:
        """Whether a ledger with that book was in use here; a name without taxpayer means any book of the machine."""
        return any(name == book or book == without_taxpayer(book) for name in names_of(self.marks, book))

    def is_entered(self, book: str) -> bool:
        """Whether this ledger's book is in the file, and nothing of it under the name without a taxpayer."""
        unowned = without_taxpayer(book)
        return (
            book in self.marks.books
            and self._id in self.marks.ledgers.get(book, frozenset())
            and (unowned == book or unowned not in self.marks.books)
        )

    def reserve(self, book: str, z_number: int) -> None:
        """Reserves the number, before the transaction of that Z."""
        with self._lock:
            highest = max(self.highest(book), z_number - 1)
            self._put(book, msgspec.structs.replace(self._mark(book), highest=highest, reserved=z_number, question=0))

    def count_number(self, book: str, z_number: int) -> None:
        """Counts the number, after the transaction or if known from elsewhere; also enters the book."""
        with self._lock:
            highest = max(self.highest(book), z_number)
            mark = msgspec.structs.replace(self._mark(book), highest=highest, reserved=0)
            if mark != self.marks.books.get(book):
                self._put(book, mark)

    def enter(self, book: str) -> None:
        """Enters a connected machine's book durably; takes over the numbers under the name without taxpayer."""
        with self._lock:
            if self.is_entered(book):
                return
            mark, unowned = self._mark(book), without_taxpayer(book)
            books = {name: each for name, each in self.marks.books.items() if name != unowned}
            months, years = self.calendar(book)
            books[book] = msgspec.structs.replace(mark, highest=self.highest(book), months=months, years=years)
            counted = self.marks.ledgers.get(book, frozenset()) | ({self._id} - {""})
            ledgers = {**self.marks.ledgers, book: counted} if counted else self.marks.ledgers
            self._write(msgspec.structs.replace(self.marks, books=books, ledgers=ledgers))

    def ask(self, book: str, question: int) -> None:
        """Sets the open question for the last Z of that book; 0: the last Z is known."""
        with self._lock:
            if self.question(book) != question:
                self._put(book, msgspec.structs.replace(self._mark(book), question=question))

    def _mark(self, book: str) -> Mark:
        return self.marks.books.get(book, Mark())

    def _put(self, book: str, mark: Mark) -> None:
        self._write(msgspec.structs.replace(self.marks, books={**self.marks.books, book: mark}))

    def _write(self, marks: Marks) -> None:
        write_marks(self._ledger, marks)
        self.marks = marks


def book_name(nim: str, mode: str, ifu: str) -> str:
    """The name of a book in the file: machine up to the dash, mode, taxpayer."""
    return f"{short_nim(nim)} {mode} {ifu}"


def without_taxpayer(book: str) -> str:
    """The name of a book of the same machine whose taxpayer is not known yet."""
    return book.rpartition(" ")[0] + " "


def names_of(marks: Marks, book: str) -> list[str]:
    """The names that may have numbers of that book: its own, and the one without a taxpayer, for a Z made before the
    machine sent its taxpayer. A name without a taxpayer stands for every book of its machine."""
    unowned = without_taxpayer(book)
    return [name for name in marks.books if name in (book, unowned) or (book == unowned == without_taxpayer(name))]


def merged(one: Marks, other: Marks) -> Marks:
    """The higher of each number, every revoked key and every open question."""
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
