"""All workers of this daemon, found by machine and mode."""

from __future__ import annotations

from collections.abc import Sequence

from daemon.core.ledger.attempt import Mode
from daemon.core.ledger.deferred import DeferredSale
from daemon.core.machine.nim import short_nim
from daemon.store.tables.book import deferred
from daemon.usecases.worker.machine_worker import MachineWorker


class MachineWorkers:
    """Every book of this daemon, by machine and mode; the activation counter is no matter (decision 26)."""

    def __init__(self, workers: Sequence[MachineWorker], retired: Sequence[MachineWorker] = ()) -> None:
        self._workers = {(short_nim(worker.book.nim), worker.book.mode): worker for worker in workers}
        self._retired = {(short_nim(worker.book.nim), worker.book.mode): worker for worker in retired}

    def get(self, nim: str, mode: Mode) -> MachineWorker | None:
        """Also of a machine that is no longer in the configuration."""
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

    def all(self) -> Sequence[MachineWorker]:
        return list(self._workers.values())
