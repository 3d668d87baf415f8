"""What the model holds: a machine, the books of a ledger, a daemon, a backup, and beside them the truth, which only the oracle reads.

All amounts are equal, so that no amount tells two invoices apart; a code is the count of certifications; FT counts as FV does, ET as EV. Every value is a
tuple: an event makes a new world of an old one, and equal worlds are visited once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

OURS, OTHER = "1", "2"
"""The taxpayers."""
STRANGER = "other"
"""The number of every invoice of another program."""
CREDITS = ("FA", "EA")
WORDS = {"FV": "VENTE", "EV": "EXPORT", "FA": "AVOIR", "EA": "AVOIR EXPORT"}


class Counters(NamedTuple):
    tc: int = 0
    fvc: int = 0
    frc: int = 0


class Habit(NamedTuple):
    """`local`: types that move TC alone (protocol 5.2). C1h tells numbers in `capitals`, types in `words` of its own, `no_codes`, or nothing of the last
    invoice (`silent`)."""

    local: str = ""
    capitals: bool = False
    words: bool = False
    no_codes: bool = False
    silent: bool = False

    @property
    def tells_less(self) -> bool:
        """So that more is open than on others."""
        return self.words or self.no_codes or self.silent

    def __str__(self) -> str:
        rows = [name for name, has in zip(self._fields[1:], self[1:], strict=True) if has]
        return ", ".join([f"{self.local} in TC alone"] * bool(self.local) + rows) or "usual"


USUAL, EXPORTS = Habit(), Habit("EV")
COUNTING = (USUAL, EXPORTS, Habit("EA"), Habit("EV EA"))
SILENT = (Habit(silent=True), Habit("EV EA", silent=True))
TEXTS = (USUAL, Habit(capitals=True), Habit(words=True), Habit(no_codes=True))


class Certification(NamedTuple):
    """As the machine's log has it, and C1h the last of it."""

    number: str
    type: str
    code: str
    taxpayer: str = ""
    """In the log alone."""


class Reading(NamedTuple):
    """C1h. `made` is for the oracle: certifications of all until then."""

    counters: Counters
    last: Certification | None
    activation: int
    ifu: str
    total: int


class Machine(NamedTuple):
    """Not active: between a reset and the next activation. `made`: certifications of all, also before a reset."""

    habit: Habit
    counters: Counters = Counters()
    last: Certification | None = None
    activation: int = 1
    taxpayer: str = OURS
    is_active: bool = True
    total: int = 0

    def certify(self, number: str, kind: str) -> Machine:
        tc, fvc, frc = self.counters
        is_credit, counts = kind in CREDITS, kind not in self.habit.local
        counters = Counters(tc + 1, fvc + (counts and not is_credit), frc + (counts and is_credit))
        return self._replace(
            counters=counters, last=Certification(number, kind, f"C{self.total + 1}"), total=self.total + 1
        )

    def read(self) -> Reading:
        last, habit = self.last, self.habit
        if last is not None:
            number = last.number.upper() if habit.capitals else last.number
            kind = WORDS[last.type] if habit.words else last.type
            last = None if habit.silent else Certification(number, kind, "" if habit.no_codes else last.code)
        return Reading(self.counters, last, self.activation, self.taxpayer if self.is_active else "", self.total)

    def refuses(self, number: str, ifu: str) -> bool:
        """C0h: another taxpayer's, or the number of its last invoice (protocol 5.3)."""
        is_ours = self.is_active and ifu == self.taxpayer
        return not is_ours or (self.last is not None and self.last.number == number)


class Attempt(NamedTuple):
    """`state`: begun, disputed or certified; of what was refused or abandoned `Book.tried` is left."""

    number: str
    type: str
    state: str
    base: Counters
    code: str = ""


class Book(NamedTuple):
    """As the store has it. `activation` stands for the name. `seen` is the machine's last invoice when `known` was written, in a tuple that is empty
    where 0.1.0 wrote it; `accounted` is the oracle's: how many certifications of all were made then."""

    ifu: str = ""
    activation: int = 1
    counters: Counters | None = None
    attempts: tuple[Attempt, ...] = ()
    tried: frozenset[tuple[str, str]] = frozenset()
    """Number and type of what was at the machine and ended refused or abandoned."""
    attention: str = ""
    evidence: Reading | None = None
    is_restored: bool = False
    z_number: int = 0
    question: int = 0
    """For the last Z: open, answered (negative), or none."""
    seen: tuple[Certification | None, ...] = ()
    decided: int = 0
    accounted: int = 0


class Ledger(NamedTuple):
    """`at`: the book that is in use. `is_new`: begun on an empty disk, where Z begins with 1 (docs/reliability.md)."""

    books: tuple[Book, ...] = (Book(),)
    at: int = 0
    id: int = 0
    is_new: bool = False


class Remembered(NamedTuple):
    """The high-water file: by book the last Z and the open question, and which ledgers have counted there."""

    books: tuple[tuple[str, int, int], ...] = ()
    ledgers: tuple[tuple[str, tuple[int, ...]], ...] = ()
    incomplete: bool = False


class World(NamedTuple):
    """`marks`: None where there is no such file; `serial`: of questions and ledgers. `is_up`: a daemon works, and has asked the machine since the line
    was lost. `case`: the book as a second operator has it on the screen.

    The truth: `log` of what the machine certified for us, each Z that was given in `closed` (taxpayer and number), codes of which only a
    ledger that was replaced knew (`unknown`), those of them that nobody can know any more (`excused`, docs/reliability.md), and in `notes` what the last event has to tell the oracle."""

    machine: Machine
    ledger: Ledger = Ledger()
    backup: Ledger | None = None
    marks: Remembered | None = None
    serial: int = 0
    is_up: bool = False
    has_met: bool = False
    case: Book | None = None
    log: tuple[Certification, ...] = ()
    closed: tuple[tuple[str, int], ...] = ()
    unknown: frozenset[str] = frozenset()
    excused: frozenset[str] = frozenset()
    notes: tuple[object, ...] = ()

    @property
    def book(self) -> Book:
        books, at, *_ = self.ledger
        return books[at] if books else Book()

    @property
    def counters(self) -> Counters:
        return self.book.counters or Counters()

    def with_book(self, **changes: Any) -> World:
        books, at, *_ = self.ledger
        changed = (*books[:at], books[at]._replace(**changes), *books[at + 1 :])
        return self._replace(ledger=self.ledger._replace(books=changed))

    def note(self, *notes: object) -> World:
        return self._replace(notes=(*self.notes, *notes))
