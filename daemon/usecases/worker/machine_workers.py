"""All workers of this daemon, found by machine and mode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from common.language import Text
from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.book import Book
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.machine.nim import short_nim
from daemon.store.tables.book import deferred
from daemon.usecases.worker.machine_worker import MachineWorker

REST_PATIENCE: Final = 100.0
"""Seconds for what is on a line: its own time limits end it sooner where the machine is silent."""
REPLACED: Final = Text("the spare has taken over; nothing was sent")


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
            everyone = (*self._workers.values(), *self._retired.values())
            return next((each for each in everyone if each.book.id == book_id), None), sale
        return None, None

    @asynccontextmanager
    async def at_rest(self, books: Sequence[Book]) -> AsyncIterator[None]:
        """Nobody is at the machines of these books meanwhile, and what they have certified is in the ledger; MachineBusy, StorageFull. Whoever waits for
        a machine that is replaced afterwards is sent away: its next request goes to the spare."""
        ids = {book.id for book in books}
        workers = [each for each in (*self._workers.values(), *self._retired.values()) if each.book.id in ids]
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
