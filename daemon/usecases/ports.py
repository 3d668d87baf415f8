"""What the use cases need from outside, as seen from inside. The store and the machine adapter fit these by shape."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Literal, Protocol

from daemon.core.audit import Actor
from daemon.core.call import NOBODY, Call
from daemon.core.events import Event, EventSpan
from daemon.core.invoice.invoice import Invoice, Payment
from daemon.core.invoice.reference import Reference
from daemon.core.ledger.attempt import Attempt, Outcome, Record
from daemon.core.ledger.book import Aggregate, Book, BookState, LastSeen, Tally
from daemon.core.ledger.closure import Closure, KeyUse
from daemon.core.ledger.entries import CalendarKind, CashMove, CashTotal, Placed, ReportGiven
from daemon.core.ledger.last_invoice import Standing
from daemon.core.machine.state import Certified, FiscalCounters, LastInvoice, MachineState, ServerLink, Subtotal
from daemon.core.report.journal import Extent, Page


class FiscalMachine(Protocol):
    """One connected machine. A method that is several commands (protocol 3) stops at the first that is not taken.

    Each raises MachineRefused (an `E:` answer), LineLost (no answer after all tries; from then on the connection is
    over) or MachineNonsense (an answer that cannot be read)."""

    @property
    def opened(self) -> tuple[int, int] | None:
        """TC and FC as the machine told them when it opened the invoice; None where they cannot be read."""
        ...

    async def state(self) -> MachineState: ...
    async def server_link(self) -> ServerLink: ...
    async def taxpayer(self, line: int) -> str: ...
    async def enter(self, invoice: Invoice, ifu: str, agree: Callable[[Subtotal], Sequence[Payment]]) -> None:
        """C3h, C0h, 31h for each item, 36h for each comment, 33h, and 35h for each payment that `agree` gives for that subtotal (none: nothing is
        paid yet). What `agree` raises is raised here."""
        ...

    async def pay(self, payments: Sequence[Payment]) -> None:
        """35h for each."""
        ...

    async def certify(self, invoice: Invoice, total_ttc: int, known: FiscalCounters) -> Certified: ...
    async def cancel(self) -> bool:
        """38h C; True when an invoice was open."""
        ...

    def hang_up(self, reason: str) -> None:
        """Ends the connection, whatever is being asked; the next one begins with `recover`."""
        ...


class AttemptsPort(Protocol):
    """What a certification writes and asks. A method that writes returns once its change is durable, and raises StorageFull
    when it cannot be; one call is one transaction, and concurrent calls may share one commit."""

    async def state(self, book: Book) -> BookState: ...

    async def check_free_space(self, book: Book) -> None:
        """StorageFull unless there is room for what a certification needs (the reserve untouched); a sandbox leaves more to live sales."""
        ...

    async def begin(self, book: Book, attempt: Attempt) -> int:
        """The intent; its id. DuplicateInvoice when the number is certified (the attempt in front of it must have ended)."""
        ...

    async def amend(self, book: Book, attempt_id: int, invoice: Invoice) -> None:
        """The intent as the machine agreed to it, where that differs: what it certifies is recognised by its total."""
        ...

    async def certify(self, book: Book, attempt_id: int, outcome: Outcome, *, found: str = "") -> Record:
        """State, seq, chain, what the book knows of the machine, an event; `found`: what an operator has to look at besides, in the same commit."""
        ...

    async def end(
        self, book: Book, attempt_id: int, state: Literal["refused", "abandoned"], reason: str, *, at: int
    ) -> Record: ...

    async def dispute(self, book: Book, attempt_id: int, found: str, *, at: int) -> None:
        """The attempt becomes disputed and the book's attention says why."""
        ...

    async def set_attention(self, book: Book, found: str, *, at: int) -> None: ...

    async def attend_machine(self, nim: str, found: str, *, at: int) -> None:
        """The same of the live book of another machine, if this ledger has one."""
        ...

    async def keep_evidence(self, book: Book, state: MachineState, *, at: int) -> None:
        """What the machine says while the book is in attention: `mcfd machine settle` cannot ask it, the line is ours."""
        ...

    async def reconcile(self, book: Book, state: MachineState, *, unexplained: int, at: int) -> None:
        """Take the machine's counters, rates and IFU as known; `unexplained` is added to the book's."""
        ...

    async def is_remembered(self, book: Book, ifu: str) -> bool:
        """Whether a ledger at this place has worked with that book's machine for that taxpayer, this one or one that is gone (decision 30)."""
        ...

    async def was_at_the_machine(self, book: Book, invoice: Invoice) -> bool:
        """Whether 38h of an attempt of an equal number, that type and total may have been sent, and it was taken for not certified."""
        ...

    async def has_code(self, book: Book, code: str) -> bool:
        """Whether a certification of the book has it."""
        ...

    async def is_of_earlier_activation(self, book: Book, code: str) -> bool:
        """Whether this machine gave it in an activation before its present one, also to another taxpayer."""
        ...

    async def standing(self, book: Book, last: LastInvoice | None) -> Standing:
        """What the ledger knows of the machine's last invoice."""
        ...

    async def unfinished(self, book: Book) -> list[Record]:
        """Attempts in state begun, oldest first."""
        ...

    async def numbers_held(self, book: Book, prefix: str, digits: int) -> tuple[int, int]:
        """How many numbers of a series are in use, and the highest place; what failed has left its number."""
        ...

    async def is_held(self, book: Book, number: str) -> bool: ...
    async def find_number(self, book: Book, number: str) -> Record | None:
        """The certified (or disputed) record of that number, or of one equal to it (decision 37)."""
        ...

    async def sales_of_number(self, book: Book, number: str) -> Sequence[Record]:
        """The certified sales of that number, or of one equal to it, in the books of every machine of that mode."""
        ...

    async def begin_epoch(self, book: Book, state: MachineState, nim: str, *, at: int) -> Book:
        """The machine was activated anew for the same taxpayer (decision 33): an entry in the chain; the book under its name of now. Counters
        that began again are taken over, and whatever they count is unexplained. Told twice, it is written once."""
        ...

    async def book_of_taxpayer(self, book: Book, nim: str, ifu: str) -> Book:
        """The machine has another taxpayer: that one's book, made if there is none. Keys of the one before do not see it."""
        ...

    async def former_books(self, book: Book) -> list[Book]:
        """Of the taxpayers that the machine had before."""
        ...

    async def check_reference(self, book: Book, reference: Reference) -> None:
        """InvalidRequest for an activation that its machine never had, going by the books of whichever machine."""
        ...

    async def check_original(self, book: Book, invoice: Invoice) -> bool:
        """What `claim_original` would say, without a claim."""
        ...

    async def claim_original(self, book: Book, attempt_id: int, invoice: Invoice) -> bool:
        """Books the credit note under way on its sale; whether the ledger has that sale. InvalidRequest, CreditExceedsOriginal, or MachineBusy while
        another credit note on it has no outcome."""
        ...

    async def record(self, book: Book, attempt_id: int) -> Record: ...
    async def find_key(self, book: Book, key_hash: bytes, *, failed: bool = False) -> KeyUse | None: ...
    async def keep_answer(self, book: Book, key_hash: bytes, fingerprint: bytes, answer: bytes, *, at: int) -> None: ...

    async def note_cancelled(self, book: Book, *, at: int, by: Actor) -> None:
        """An open invoice of the live machine was cancelled: an entry of the audit log."""
        ...


class TotalsPort(Protocol):
    """What reports are made of, and the closure; durable as in `AttemptsPort`."""

    async def aggregate(self, book: Book) -> Aggregate:
        """The tick: fold in all that ended since the last one."""
        ...

    async def aggregated(self, book: Book) -> Aggregate:
        """The totals as the last tick left them, without a tick."""
        ...

    async def close_period(
        self,
        book: Book,
        *,
        counters: FiscalCounters,
        unexplained: int,
        at: int,
        call: Call = NOBODY,
        seen: LastSeen | None = None,
        without_machine: bool = False,
        letterhead: str = "",
    ) -> Closure:
        """Z: fold in the rest, freeze, number, chain, next period, outbox row, in one transaction (decision 14)."""
        ...

    async def tally_between(self, book: Book, start: int, end: int) -> Tally:
        """What ended in `start <= t < end` (ms) and is aggregated."""
        ...

    async def aggregate_between(self, book: Book, start: int, end: int) -> Aggregate:
        """The same as an Aggregate: `running` is the range, `closed` empty, `period_start` is `start`; `fvc_start` the FVC of
        its first sale (0 without one), `fvc_end` of its last, or else the last one known before `end`."""
        ...

    async def isfs_of_period(self, book: Book) -> Sequence[str]:
        """Under which the certifications of the open period were made."""
        ...

    async def isfs_between(self, book: Book, start: int, end: int) -> Sequence[str]: ...

    async def closures(
        self, book: Book, *, start: int, end: int, after: int = 0, limit: int | None = 1000
    ) -> Sequence[Closure]:
        """Z closures with `start <= created_at < end`, by z_number, from the one after `after`; None: all of them."""
        ...

    async def closure(self, book: Book, z_number: int) -> Closure: ...
    async def closure_by_id(self, book: Book, report_id: str) -> Closure: ...


class CashPort(Protocol):
    """Cash put into the drawer and taken out; entries of the book, durable as in `AttemptsPort`."""

    async def move_cash(
        self,
        book: Book,
        move: CashMove,
        *,
        at: int,
        answer: Callable[[Placed], bytes],
        call: Call = NOBODY,
        box_at: int = 0,
        most: int = 0,
    ) -> bytes:
        """Entry, audit and what the Idempotency-Key stands for, in one transaction; what `answer` makes of the entry. TooManyCashMoves beyond `most`
        by the same key or person within an hour of the box's clock (`box_at`, ms); 0: any number."""
        ...

    async def cash_of_period(self, book: Book, period_start: int) -> CashTotal:
        """Of the period that begins there (ms), as an `Aggregate` has it."""
        ...

    async def cash_between(self, book: Book, start: int, end: int) -> CashTotal: ...
    async def cash_moves(self, book: Book, *, start: int, end: int, after: int, limit: int) -> Sequence[Placed]:
        """Those of `start <= t < end` (ms), oldest first, from the one after the id `after`."""
        ...

    async def acts(self, book: Book, *, start: int, end: int, after: int, limit: int) -> Sequence[Placed]:
        """Cash, duplicates and reports that were given out, in the same way."""
        ...

    async def periods_of_moves(self, book: Book, moves: Sequence[Placed]) -> Sequence[int]:
        """The Z that each is in, 0 while its period is open."""
        ...


class PapersPort(Protocol):
    """Letterheads by version; `digest` names one of a book."""

    async def keep_letterhead(self, book: Book, digest: bytes, content: bytes, *, at: int) -> None: ...
    async def letterhead(self, book: Book, digest: bytes) -> bytes | None: ...
    async def newest_letterhead(self, book: Book) -> tuple[bytes, bytes] | None: ...


class ActsPort(Protocol):
    """Duplicates and reports that were given out: entries of the book, in the audit log."""

    async def make_copy(self, book: Book, code: str, number: str, *, at: int, call: Call) -> int:
        """Which duplicate of that certification it is, from 1."""
        ...

    async def copies(self, book: Book, code: str) -> int: ...
    async def give_report(
        self, book: Book, report: ReportGiven, *, at: int, call: Call, answer: Callable[[int], bytes] | None = None
    ) -> ReportGiven:
        """With `answer` it gets the next number, and `answer` makes its body of that; its bytes are what the Idempotency-Key stands for."""
        ...

    async def last_articles(self, book: Book) -> Placed | None: ...
    async def closed_articles(self, book: Book, number: int) -> Placed: ...
    async def given_report(self, book: Book, entry_id: int) -> Placed: ...


class CalendarPort(Protocol):
    """Months and years that are closed: entries of the book, in the audit log, on their way to headquarters."""

    async def close_over_months(self, book: Book, at: int, *, upto_z: bool = False) -> Sequence[Placed]:
        """What is over at `at` (ms) and not closed yet; `upto_z`: nothing after the year of the last Z."""
        ...

    async def close_calendar(self, book: Book, kind: CalendarKind, period: str, *, at: int, call: Call) -> bytes:
        """The same, and the report of the named month or year, or of the last one closed; PeriodNotOver, NotFound."""
        ...

    async def calendar_closure(self, book: Book, kind: CalendarKind, wanted: int | str) -> Placed:
        """By its number, or by its month or year; NotFound."""
        ...

    async def calendar_closures(
        self, book: Book, kind: CalendarKind, *, after: int = 0, limit: int
    ) -> Sequence[Placed]:
        """By their numbers, from the one after `after`."""
        ...


class LedgerPort(AttemptsPort, TotalsPort, CashPort, PapersPort, ActsPort, CalendarPort, Protocol):
    """All of it, as one worker has it of its book."""


MakeWay = Callable[[], Awaitable[None]]
"""Lets whoever is at a till go first."""


class JournalPort(Protocol):
    """What ended, as screens and auditors read it."""

    async def extent(self, book: Book) -> Extent:
        """How far the book goes now."""
        ...

    async def page(self, book: Book, page: Page) -> Sequence[Record]:
        """Newest first. Attempts that have not ended (begun, disputed) are found by asking for that state."""
        ...

    async def reach(self, book: Book, page: Page) -> tuple[int, int]:
        """The seqs between which all ended entries lie that the page asks for: after the first, up to the second."""
        ...

    async def with_part(self, book: Book, page: Page, make_way: MakeWay) -> Sequence[Record]:
        """Newest first, those with `page.part` in the number; `make_way` is awaited between two looks at the ledger."""
        ...

    async def of_customer(self, book: Book, page: Page, wanted: str) -> tuple[Sequence[Record], int]:
        """Of the next `page.limit` entries that the page asks for, newest first, those whose customer has the text in name, IFU or phone; and
        the `before_seq` to go on with, 0 at the end."""
        ...

    def iterate(self, book: Book, start: int, end: int) -> AsyncIterator[Record]:
        """What ended in `start <= t < end` (ms), oldest first, in flat memory."""
        ...

    async def by_code(self, book: Book, code: str) -> Record | None: ...

    async def with_counter(self, book: Book, record: Record) -> Record:
        """A certification of before the counter of its type was kept, with the one that is certain, or UNTOLD."""
        ...

    async def credits_on(self, sale: Record) -> Sequence[Record]:
        """The certified credit notes on that sale, of whichever machine, oldest first, a hundred at the most."""
        ...

    async def credited(self, sales: Sequence[Record]) -> Sequence[int]:
        """What credit notes have taken of each, those under way included."""
        ...

    async def periods(self, book: Book, records: Sequence[Record]) -> Sequence[int]:
        """The Z that each is in, 0 while its period is open; the records come one after the other, in either direction."""
        ...


class EventLogPort(Protocol):
    """The events of a week, in the order in which they became durable."""

    async def add(self, book: Book, kind: str, *, at: int, ref: int = 0, detail: str = "") -> None:
        """For what the ledger does not do itself: a machine that comes and goes, an alert."""
        ...

    async def last_at(self, book: Book, kind: str) -> int:
        """When an event of that kind was last written (ms), 0 when none is kept."""
        ...

    async def after(self, book: Book, event_id: int, limit: int = 100) -> Sequence[Event]: ...
    async def find(self, book: Book, event_id: int) -> Event | None: ...
    async def span(self) -> EventSpan: ...


class Receipts(Protocol):
    """What an event of a certification or a closure is about."""

    async def record(self, book: Book, attempt_id: int) -> Record: ...
    async def closure(self, book: Book, z_number: int) -> Closure: ...


Clock = Callable[[], int]
"""Milliseconds since 1970, UTC, as the box has it; `core.clock` bounds it."""

Task = Callable[[], Awaitable[None]]
