"""What the store's transactions do to a book (`daemon/store/tables/book`): transcribed, since they are SQL; what they decide is asked of the product."""

from typing import Any

from exhaustive import real, water
from exhaustive.model import Attempt, Book, Certification, Counters, Reading, World

from daemon.core.invoice.number import same_number
from daemon.core.ledger.decision import adoption
from daemon.core.ledger.verdict import went_down


def holder(book: Book, number: str) -> Attempt | None:
    """Which attempt has that number, or one equal to it: the unique index."""
    return next((attempt for attempt in book.attempts if real.ask(same_number, attempt.number, number)), None)


def ordered(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """Those that ended in one order whatever the history was, the others as they were begun."""
    ended = sorted(attempt for attempt in attempts if attempt.state == "certified")
    return (*ended, *(attempt for attempt in attempts if attempt.state != "certified"))


def begin(world: World, number: str, kind: str) -> World:
    return world.with_book(attempts=(*world.book.attempts, Attempt(number, kind, "begun", world.counters)))


def certify(world: World, attempt: Attempt, code: str, counters: Counters, activation: int = 0) -> World:
    """`activation` where the outcome says under which name the machine certified."""
    ended = attempt._replace(state="certified", code=code, base=Counters())
    return world.with_book(
        attempts=ordered((*(one for one in world.book.attempts if one != attempt), ended)),
        counters=counters,
        activation=activation or world.book.activation,
        seen=(Certification(attempt.number, attempt.type, code),),
        accounted=world.machine.total,
    )


def end(world: World, attempt: Attempt, *, sent: bool) -> World:
    world = world.with_book(attempts=tuple(one for one in world.book.attempts if one != attempt))
    return refuse(world, attempt.number, attempt.type) if sent else world


def refuse(world: World, number: str, kind: str) -> World:
    return world.with_book(tried=world.book.tried | {(number, kind)})


def dispute(world: World, attempt: Attempt) -> World:
    disputed = tuple(one._replace(state="disputed") if one == attempt else one for one in world.book.attempts)
    return world.with_book(attempts=disputed, attention="an attempt")


def settle(world: World, attempt: Attempt, verdict: str, detail: Any) -> World:
    if verdict == "certified":
        return certify(world, attempt, *detail)
    return end(world, attempt, sent=detail) if verdict == "not certified" else dispute(world, attempt)


def begin_epoch(world: World, reading: Reading) -> World:
    book = world.book
    is_empty = book.counters is None and not book.attempts and not book.tried and not book.z_number
    if is_empty or not real.ask(went_down, world.counters, reading.counters):
        return world.with_book(activation=reading.activation)
    return world.with_book(activation=reading.activation, counters=reading.counters, seen=(reading.last,))


def know(world: World, reading: Reading) -> World:
    return world.with_book(counters=reading.counters, seen=(reading.last,), accounted=reading.total)


def reconcile(world: World, reading: Reading) -> World:
    """The machine's counters and taxpayer are the book's, and what the high-water file knows of its Z numbers."""
    world = know(water.question_at_first_connection(world, reading), reading)
    return water.meet(world.with_book(ifu=reading.ifu or world.book.ifu, is_restored=False))


def close(world: World, reading: Reading) -> World | None:
    """None where the last number has to be said first."""
    if world.book.question > 0:
        return None
    world = water.close(know(world, reading))
    machine, book = world.machine, world.book
    whose = machine.taxpayer if machine.is_active else book.ifu or machine.taxpayer
    closed = () if world.ledger.is_new else ((whose, book.z_number),)
    return world._replace(closed=tuple(sorted((*world.closed, *closed))))


def book_of_taxpayer(world: World, ifu: str, activation: int) -> World:
    books = world.ledger.books
    found = next((at for at in reversed(range(len(books))) if books[at].ifu == ifu), len(books))
    books = books if found < len(books) else (*books, Book(ifu, activation))
    return world._replace(ledger=world.ledger._replace(books=books, at=found))


def adopt(world: World, reading: Reading) -> World:
    world = water.question_at_first_connection(world, reading)
    book, last = world.book, reading.last
    taken = None if last is None else holder(book, last.number)
    begun = tuple(attempt for attempt in book.attempts if attempt.state == "begun")
    plan = real.ask(
        adoption, book, reading, real.standing(book, reading), begun, is_number_taken=taken is not None,
        in_ledger=last is not None and real.has_code(book, last.code), unexplained=0,
    )  # fmt: skip
    for settled in real.judged(begun, plan.settled):
        world = settle(world, *settled)
    if real.ask(went_down, world.counters, reading.counters):
        world = begin_epoch(world, reading)
    if plan.enters and last is not None:
        entered = Attempt(last.number, last.type, "certified", Counters(), last.code)
        world = world.with_book(attempts=ordered((*world.book.attempts, entered)))
    return know(world, reading).with_book(ifu=reading.ifu or world.book.ifu, is_restored=False)


def decided(world: World) -> World:
    """The end of the attention unless another attempt is disputed."""
    is_open = any(attempt.state == "disputed" for attempt in world.book.attempts)
    return world.with_book(attention="an attempt" if is_open else "", decided=world.book.decided + 1)
