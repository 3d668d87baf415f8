"""The decisions themselves: the product's own pure functions, asked with the model's tuples. Each answer is computed once."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from exhaustive.model import Attempt, Book, Certification, Counters, Reading

from daemon.core.invoice.invoice import Customer, Invoice
from daemon.core.ledger import book as stored
from daemon.core.ledger import decision, verdict
from daemon.core.ledger.attempt import Record
from daemon.core.machine.state import Certified, FiscalCounters, LastInvoice, MachineState

TOTAL, TIME = 1000, "20260731093000"
T = TypeVar("T")


def ask(function: Callable[..., T], *value: Any, **named: Any) -> T:
    return _call(function, value, tuple(named.items()))  # type: ignore[no-any-return]


@cache
def _call(function: Callable[..., Any], argument: tuple[Any, ...], named: tuple[tuple[str, Any], ...]) -> Any:
    return function(*map(product, argument), **{name: product(value) for name, value in named})


@cache
def product(value: Any) -> Any:
    """The product's own of what the model has."""
    if isinstance(value, Counters):
        return FiscalCounters(*value)
    if isinstance(value, tuple):
        return _PRODUCT.get(type(value), lambda many: [product(one) for one in many])(value)
    return value


def name(activation: int) -> str:
    return f"EL02000015-{activation}"


@cache
def invoice(number: str, kind: Any) -> Invoice:
    return Invoice(number, kind, "TTC", "", "", "", Customer(), (), (), (), TOTAL)


def _last(last: Certification) -> LastInvoice:
    """One second for each."""
    return LastInvoice(last.number, last.code, f"{int(TIME) + int(last.code[1:] or 0)}", last.type, TOTAL)


def _state(reading: Reading) -> MachineState:
    counters, last = product(reading.counters), product(reading.last)
    return MachineState(name(reading.activation), reading.ifu, TIME, counters, {}, last)


def _record(attempt: Attempt) -> Record:
    number, kind, state = attempt[:3]
    return Record(0, number, kind, state, 0, product(attempt.base), TOTAL, invoice(number, kind))  # type: ignore[arg-type]


def _head(book: Book) -> stored.BookState:
    return stored.BookState(
        stored.Book(1, name(book.activation), "live"), product(book.counters), "", 0, 0, {}, book.ifu, book.attention, 0, book.z_number,
        1, needs_last_z=False, is_restored=book.is_restored, last_code="", lost="", accepted_to=0, time_repairs=0, seen=seen_by(book), in_use=True,
    )  # fmt: skip


_PRODUCT: dict[type, Callable[[Any], Any]] = {Certification: _last, Reading: _state, Attempt: _record, Book: _head}


def seen_by(book: Book) -> stored.LastSeen | None:
    return stored.LastSeen(product(book.seen[0])) if book.seen else None


def has_code(book: Book, code: str) -> bool:
    return bool(code) and any(attempt.code == code for attempt in book.attempts)


def standing(book: Book, reading: Reading) -> verdict.LastComparison:
    last = reading.last
    return ask(verdict.compare_last, last, seen_by(book), in_ledger=last is not None and has_code(book, last.code))


Judged = tuple[Attempt, str, Any]
"""An attempt; certified, not certified or disputed; what goes with it: code, counters and activation, or whether it was sent."""


def verdicts(book: Book, reading: Reading) -> tuple[Judged, ...]:
    begun = tuple(attempt for attempt in book.attempts if attempt.state == "begun")
    activated = name(reading.activation) if reading.activation != book.activation else ""
    counters, last = book.counters or Counters(), standing(book, reading)
    found = ask(verdict.verdicts, begun, counters, reading, last, activated=activated, is_restored=book.is_restored)
    return judged(begun, found)


def judged(begun: tuple[Attempt, ...], found: Any) -> tuple[Judged, ...]:
    by_number = {attempt.number: attempt for attempt in begun}
    return tuple((by_number[record.number], *_verdict(what)) for record, what in found)


def _verdict(what: verdict.Verdict) -> tuple[str, Any]:
    match what:
        case Certified():
            return "certified", word(what)
        case verdict.NotCertified():
            return "not certified", what.sent
        case _:
            return "disputed", None


def word(what: Certified) -> tuple[str, Counters, int]:
    return what.code, counters_of(what.counters), int(what.nim.partition("-")[2] or 0)


def counters_of(expected: FiscalCounters) -> Counters:
    return Counters(expected.tc, expected.fvc, expected.frc)


def case(book: Book) -> decision.Case:
    """What an operator has before him."""
    disputed = next((attempt for attempt in book.attempts if attempt.state == "disputed"), None)
    reading = book.evidence
    evidence = None if reading is None else verdict.Evidence(0, product(reading))
    last = "new" if reading is None else standing(book, reading)
    return decision.Case(
        product(book), product(disputed), evidence, last, book.decided, is_replaced=False, is_awaited=False
    )


def forget() -> None:
    """After a change of the product's functions."""
    for cached in (_call, product, invoice):
        cached.cache_clear()
