"""All workers by machine and mode; and why a machine cannot certify, as a reason of the register of outages."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

from common.language import Text, reasons
from daemon.core.errors import (
    EntryDamaged,
    KeyUseLost,
    LineLost,
    MachineAttention,
    MachineOffline,
    MachineRefused,
    McfdError,
    StorageError,
)
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
"""Seconds to wait for the attempt on a line; its own time limits are shorter."""
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
"""Reason of an outage by the code of the text why a machine is not connected; any other is `line_lost`."""


class MachineWorkers:
    """Every book of this daemon, by machine and mode, whatever the activation counter (decision 26)."""

    def __init__(self, workers: Sequence[MachineWorker], retired: Sequence[MachineWorker] = ()) -> None:
        self._workers = {(short_nim(worker.book.nim), worker.book.mode): worker for worker in workers}
        self._retired = {(short_nim(worker.book.nim), worker.book.mode): worker for worker in retired}

    def get(self, nim: str, mode: Mode) -> MachineWorker | None:
        """The worker of that machine, also if no longer configured; if a spare replaces it, see `in_use`."""
        name = (short_nim(nim), mode)
        return self._workers.get(name) or self._retired.get(name)

    async def deferred_at(self, address: str) -> tuple[MachineWorker | None, DeferredSale | None]:
        """The deferred sale at that address of a customer's page, and the worker of its book."""
        any_worker = next(iter(self._workers.values()), None)  # all have the same ledger
        found = any_worker and any_worker.ledger.peek(deferred.by_address, address)
        if not found:
            return None, None
        book_id, sale = found
        return next((each for each in self.everyone() if each.book.id == book_id), None), sale

    @asynccontextmanager
    async def at_rest(self, books: Sequence[Book]) -> AsyncIterator[None]:
        """Keeps the machines of these books free of attempts, with all outcomes durable; MachineBusy, StorageFull.
        Afterwards, callers that wait for a machine that is replaced now are refused: their next request goes to the
        spare."""
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
                    worker.queue.refuse_waiting(REPLACED)

    def all(self) -> Sequence[MachineWorker]:
        return list(self._workers.values())

    def retired(self) -> Sequence[MachineWorker]:
        """Workers of machines that are no longer configured."""
        return list(self._retired.values())

    def former(self) -> Sequence[MachineWorker]:
        """Workers of the machines' former taxpayers."""
        return [each for worker in self._workers.values() for each in former_workers(worker)]

    def everyone(self) -> Sequence[MachineWorker]:
        """Of each book of the ledger."""
        return (*self.all(), *self.retired(), *self.former())


async def begin(worker: MachineWorker) -> None:
    """Loads a book's state before any work in it; begun attempts are in doubt, and their numbers stay reserved."""
    worker.ledger.leave_to(worker.book, worker.attempts.is_ours)
    worker.apply_state(worker.ledger.peek(book_state, worker.book))
    for record in worker.unfinished:
        worker.attempts.doubt(record)
    if not worker.is_retired:
        books = worker.ledger.peek(former_books, worker.book)
        worker.former = [without_machine(worker, book, reasons.OTHER_TAXPAYER) for book in books]


def without_machine(worker: MachineWorker, book: Book, reason: Text) -> MachineWorker:
    """A worker for another book of the same ledger, without a machine."""
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
    """Workers of the machine's former taxpayers with their present state, for reading and for settling doubts."""
    for each in worker.former:
        each.apply_state(worker.ledger.peek(book_state, each.book))
    return worker.former


def out_of_order(worker: MachineWorker) -> OutageReason | None:
    """Why the machine cannot certify; None while it can, and while it returns."""
    if worker.obstacle:
        return "attention"
    if worker.refuses_all:
        return "blocked"
    if worker.connected or (worker.returning and not worker.attempts.is_restored):
        return None
    return outage_of(worker.offline_reason)


def outage_of(reason: object) -> OutageReason:
    """The reason in the register for the text or error that ended a connection, its causes included."""
    return next((OUTAGES[code] for code in reasons.codes_of(reason) if code in OUTAGES), "line_lost")


def register_refusal(worker: MachineWorker, request: asyncio.Task[Any]) -> None:
    """A till's request that has ended refused because machine or box is out of order (503, 507; 422 if it refuses all)
    begins an outage. The till does not wait for the register."""
    error = None if request.cancelled() else request.exception()
    if isinstance(error, (NotInUse, NumberReserved, UnknownElsewhere, EntryDamaged, KeyUseLost)):
        return  # about the other machine of the pair, or about one entry
    if isinstance(error, (MachineOffline, MachineAttention, MachineRefused, LineLost, StorageError)):
        is_of_invoice = isinstance(error, MachineRefused) and not worker.refuses_all
        if not (worker.closing or is_of_invoice):
            worker.spawn(_register(worker, error), "outage")


async def _register(worker: MachineWorker, error: McfdError) -> None:
    reason = "disk" if isinstance(error, StorageError) else out_of_order(worker) or outage_of(error)
    with suppress(StorageError):  # the watch stores it when there is room
        await worker.register_outage(reason)
