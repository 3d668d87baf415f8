"""All workers of this daemon, found by machine and mode. Why a machine certifies nothing at the moment, as a code of the register of
outages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Final

from common.language import Text, reasons
from daemon.core.errors import LineLost, MachineAttention, MachineOffline, MachineRefused, McfdError, StorageError
from daemon.core.invoice.intake import Defaults
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.ledger.entries import OutageReason
from daemon.core.ledger.take_over import NotInUse, NumberReserved, UnknownElsewhere
from daemon.core.machine.state import short_nim
from daemon.store.tables.book import deferred
from daemon.store.tables.book.books import book_state, former_books
from daemon.usecases.worker.machine_worker import MachineWorker

REST_PATIENCE: Final = 100.0
"""Seconds for what is on a line: its own time limits end it sooner where the machine is silent."""
REPLACED: Final = Text("the spare has taken over; nothing was sent")
OUTAGES: Final[dict[str, OutageReason]] = {
    reasons.NO_ANSWER.code: "no_answer",
    reasons.LINE_BUSY.code: "no_answer",
    reasons.NO_END.code: "no_answer",
    reasons.CLOSE_PENDING.code: "no_answer",
    reasons.ADDRESS_SILENT.code: "no_answer",
    reasons.NOT_ACTIVATED.code: "deactivated",
    reasons.LEDGER_FAILED.code: "disk",
}
"""Codes for why a machine is not connected; each other one is a lost line."""


class MachineWorkers:
    """Every book of this daemon, by machine and mode; the activation counter is no matter (decision 26)."""

    def __init__(self, workers: Sequence[MachineWorker], retired: Sequence[MachineWorker] = ()) -> None:
        self._workers = {(short_nim(worker.book.nim), worker.book.mode): worker for worker in workers}
        self._retired = {(short_nim(worker.book.nim), worker.book.mode): worker for worker in retired}

    def get(self, nim: str, mode: Mode) -> MachineWorker | None:
        """Also of a machine that is no longer in the configuration; its spare while that stands for it is its `in_use`."""
        name = (short_nim(nim), mode)
        return self._workers.get(name) or self._retired.get(name)

    async def deferred_at(self, address: str) -> tuple[MachineWorker | None, DeferredSale | None]:
        """The sale at that address of a customer's page, and who has its book."""
        for worker in self._workers.values():
            found = worker.ledger.peek(deferred.by_address, address)
            if found is None:
                break
            book_id, sale = found
            everyone = (*self.all(), *self.retired(), *self.former())
            return next((each for each in everyone if each.book.id == book_id), None), sale
        return None, None

    @asynccontextmanager
    async def at_rest(self, books: Sequence[Book]) -> AsyncIterator[None]:
        """No attempt is at the machines of these books meanwhile, and what they have certified is in the ledger; MachineBusy, StorageFull. A caller that waits for
        a machine that is replaced afterwards is sent away: its next request goes to the spare."""
        ids = {book.id for book in books}
        workers = [each for each in (*self.all(), *self.retired()) if each.book.id in ids]
        async with AsyncExitStack() as places:
            for worker in workers:
                entry = places.enter_context(worker.queue.join_first())
                await entry.wait_turn(asyncio.get_running_loop().time() + REST_PATIENCE)
                await worker.attempts.all_durable()
            yield
            for worker in workers:
                if worker.is_replaced:
                    worker.queue.send_away(REPLACED)

    def all(self) -> Sequence[MachineWorker]:
        return list(self._workers.values())

    def retired(self) -> Sequence[MachineWorker]:
        """Of machines that are no longer in the configuration."""
        return list(self._retired.values())

    def former(self) -> Sequence[MachineWorker]:
        """Of the taxpayers that the machines had before."""
        return [each for worker in self._workers.values() for each in former_workers(worker)]


async def begin(worker: MachineWorker) -> None:
    """What the ledger knows of a book, before any work in it: what is begun there is in doubt, and its number waits for its end."""
    worker.ledger.leave_to(worker.book, worker.attempts.is_ours)
    worker.take_state(worker.ledger.peek(book_state, worker.book))
    for record in worker.unfinished:
        worker.attempts.doubt(record)
    if not worker.is_retired:
        books = worker.ledger.peek(former_books, worker.book)
        worker.former = [without_machine(worker, book, reasons.OTHER_TAXPAYER) for book in books]


def without_machine(worker: MachineWorker, book: Book, reason: Text) -> MachineWorker:
    """Another book of its ledger, for which no machine is asked any more."""
    return MachineWorker(
        book,
        worker.ledger,
        worker.journal,
        worker.events,
        worker.clock,
        Defaults("", "", ""),
        labels=worker.labels,
        compose_letterhead=worker.compose_letterhead,
        on_event=worker.on_event,
        till_waits=worker.till_waits,
        offline_reason=reason,
        is_retired=True,
    )


def former_workers(worker: MachineWorker) -> Sequence[MachineWorker]:
    """Of the taxpayers that its machine had before, as the ledger knows them now: their books are read, and a person decides what is in doubt there."""
    for each in worker.former:
        each.take_state(worker.ledger.peek(book_state, each.book))
    return worker.former


def out_of_order(worker: MachineWorker) -> OutageReason | None:
    """None while it may be given work, and while it returns."""
    if worker.obstacle:
        return "attention"
    if worker.refuses_all:
        return "blocked"
    if worker.connected or (worker.returning and not worker.attempts.is_restored):
        return None
    return outage_of(worker.offline_reason)


def outage_of(reason: object) -> OutageReason:
    """Of the reason, or the error, for which a connection ended; what it was caused by counts."""
    return next((OUTAGES[code] for code in reasons.codes_of(reason) if code in OUTAGES), "line_lost")


@contextmanager
def registering_refusal(worker: MachineWorker) -> Iterator[None]:
    """A till that is refused because its machine or its box is out of order (503, 507; 422 of one that refuses all) begins an outage; it does not wait for the register."""
    try:
        yield
    except (NotInUse, NumberReserved, UnknownElsewhere):  # of the other machine of a pair, which has its own register
        raise
    except (MachineOffline, MachineAttention, MachineRefused, LineLost, StorageError) as error:
        is_of_invoice = isinstance(error, MachineRefused) and not worker.refuses_all
        if not (worker.closing or is_of_invoice):
            worker.spawn(_register(worker, error), "outage")
        raise


async def _register(worker: MachineWorker, error: McfdError) -> None:
    reason = "disk" if isinstance(error, StorageError) else out_of_order(worker) or outage_of(error)
    with suppress(StorageError):  # written down as soon as there is room
        await worker.register_outage(reason)
