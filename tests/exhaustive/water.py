"""The high-water file: the product's own class, kept in memory, and what a start, a meeting and a restore make of it (`daemon/store/maintenance/numbers.py`,
which is SQL): transcribed; what is asked is decided by the product."""

from contextlib import nullcontext
from functools import cache

from exhaustive.model import Ledger, Reading, Remembered, World

from daemon.store.maintenance import numbers
from daemon.store.sqlite.high_water import HighWater, Mark, Marks, book_name, merged


def name(ifu: str) -> str:
    return book_name("EL02000015", "live", ifu)


class Water(HighWater):
    def __init__(self, remembered: Remembered | None, ledger: int) -> None:
        self._id, self._lock, self.unmet = str(ledger), nullcontext(), set()  # type: ignore[assignment]
        self.marks = _marks(remembered)

    def _write(self, marks: Marks) -> None:
        self.marks = marks


@cache
def _marks(remembered: Remembered | None) -> Marks:
    books, ledgers, incomplete = remembered or Remembered()
    marks = {book: Mark(value, 0, query) for book, value, query in books}
    return Marks(marks, frozenset(), {book: frozenset(map(str, ids)) for book, ids in ledgers}, incomplete)


def _stored(marks: Marks) -> Remembered:
    books = sorted((book, mark.highest, mark.question) for book, mark in marks.books.items())
    ledgers = sorted((book, tuple(sorted(map(int, ids)))) for book, ids in marks.ledgers.items())
    return Remembered(tuple(books), tuple(ledgers), marks.incomplete)


Numbers = tuple[int, int]
"""A book's Z number and its question."""


def _caught_up(water: HighWater, ifu: str, book: Numbers) -> Numbers:
    number, question = book
    query = numbers.open_question(water.question(name(ifu)), question)
    return max(number, water.highest(name(ifu))), question if query == max(question, 0) else query


@cache
def _meet(remembered: Remembered | None, ledger: int, ifu: str, book: Numbers) -> tuple[Remembered, Numbers]:
    water = Water(remembered, ledger)
    book = _caught_up(water, ifu, book)
    if ifu and not water.is_entered(name(ifu)):
        water.enter(name(ifu))
    return _stored(water.marks), book


def meet(world: World) -> World:
    """The book knows its taxpayer: what the file has of its numbers comes in, and its name is in the file."""
    book = world.book
    marks, (number, question) = _meet(world.marks, world.ledger.id, book.ifu, (book.z_number, book.question))
    return world.with_book(z_number=number, question=question)._replace(marks=marks)


def question_at_first_connection(world: World, reading: Reading) -> World:
    """Before the book takes over what the machine says."""
    book = world.book
    if book.counters is not None or book.z_number or book.question:
        return world
    water, serial = Water(world.marks, world.ledger.id), world.serial + 1
    question = numbers.question_at_first_meeting(
        water.marks, is_remembered=water.contains(name(reading.ifu)), is_used=any(reading.counters), new=serial
    )
    return world.with_book(question=question)._replace(serial=serial) if question else world


def is_lost(world: World, ifu: str) -> bool:
    water = Water(world.marks, world.ledger.id)
    return world.book.counters is None and (water.marks.incomplete or water.contains(name(ifu)))


def start(world: World) -> World:
    """What the file knows is brought in, and what the books know is in the file."""
    water, books = Water(world.marks, world.ledger.id), []
    for book in world.ledger.books:
        number, question = _caught_up(water, book.ifu, (book.z_number, book.question))
        books.append(book._replace(z_number=number, question=question))
    for book in books:
        if book.counters is not None or book.z_number:
            water.count_number(name(book.ifu), book.z_number)
            water.enter(name(book.ifu))
            water.ask(name(book.ifu), max(book.question, 0))
    return world._replace(marks=_stored(water.marks), ledger=world.ledger._replace(books=tuple(books)))


def close(world: World) -> World:
    """The next Z number; the book's question is answered."""
    book, water = world.book, Water(world.marks, world.ledger.id)
    number, question = _caught_up(water, book.ifu, (book.z_number, book.question))
    water.count_number(name(book.ifu), number + 1)
    return world.with_book(z_number=number + 1, question=question)._replace(marks=_stored(water.marks))


def put_back(world: World, backup: Ledger) -> World:
    """A copy takes the place of the ledger, whose numbers are remembered first; it asks for those that nothing here has counted."""
    marks, serial = _marks(world.marks), world.serial
    if world.ledger.books:
        before = Marks()
        answered: dict[str, int] = {}
        for book in world.ledger.books:
            counted = {name(book.ifu): frozenset({str(world.ledger.id)})}
            before = merged(
                before, Marks({name(book.ifu): Mark(book.z_number, 0, max(book.question, 0))}, ledgers=counted)
            )
            answered |= {name(book.ifu): -book.question} if book.question < 0 else {}
        marks = merged(numbers._without_cut_off(marks, numbers.LedgerNumbers(before, answered)), before)
    books = []
    for book in backup.books:
        question, ledger = book.question, str(backup.id)
        if book.counters is not None or book.z_number:
            serial += 1
            query = numbers.question_after_restore(marks, name(book.ifu), ledger, question, serial)
            question = query or -abs(question)
        books.append(book._replace(is_restored=True, question=question, evidence=None))
    if not any(str(backup.id) in ids for ids in marks.ledgers.values()):
        marks = Marks(marks.books, marks.revoked, marks.ledgers, incomplete=True)
    remembered = None if marks == Marks() else _stored(marks)
    return world._replace(ledger=backup._replace(books=tuple(books)), marks=remembered, serial=serial)
