"""Books of the ledger, read by commands beside the daemon."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from common.wire.instants import now_millis
from daemon.cli.output import Failure, find_machine
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Aggregate, Book, BookState
from daemon.settings import Settings
from daemon.store.journal import Journal
from daemon.store.ledger import Ledger
from daemon.store.store import Store
from daemon.store.tables.book.books import all_books, book_state, find_book


@dataclass
class BookReader:
    """A `ReportSource` for what the daemon writes; reading delays no till."""

    book: Book
    journal: Journal
    ledger: Ledger
    labels: Mapping[str, str]
    aggregate: Aggregate | None = None
    till_waits: Callable[[], bool] = lambda: False

    def now(self) -> int:
        """Not before the book's last entry: after a fast clock that would be outside a range up to now (decision 21)."""
        return max(now_millis(), self.state().last_at)

    def state(self) -> BookState:
        return self.ledger.peek(book_state, self.book)


async def read_book(store: Store, settings: Settings, nim: str, *, test: bool) -> BookReader:
    """The machine's book, also of a machine that is no longer configured. Raises Failure, which lists the machines."""
    mode: Mode = "test" if test else "live"
    book = store.ledger.peek(find_book, nim, mode) if nim else None
    if book is None:
        machine = find_machine(settings, nim).nim
        book = store.ledger.peek(find_book, machine, mode)
        if book is None:
            raise Failure("nothing has been certified on {nim} yet", nim=machine)
    # A machine with books of two taxpayers: the present one's, unless the other is named by its full NIM.
    named = [each for each in await store.journal.read(all_books) if (each.nim, each.mode) == (nim, mode)]
    return BookReader(
        named[-1] if named and book.nim != nim else book, store.journal, store.ledger, settings.payment_labels()
    )


async def live_states(store: Store) -> list[BookState]:
    """The live book of each machine: that of its present taxpayer."""
    books = await store.journal.read(all_books)
    states = [store.ledger.peek(book_state, book) for book in books if book.mode == "live"]
    return [state for state in states if state.in_use]
