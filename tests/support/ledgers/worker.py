"""A worker of a book in a real ledger, without a machine: for what only reads."""

from support.ledgers.ledger import Till

from daemon.core.invoice.intake import Defaults
from daemon.usecases.worker.book_clock import BoxClock
from daemon.usecases.worker.machine_worker import MachineWorker


def worker_of(till: Till) -> MachineWorker:
    """Its time is the till's."""
    store = till.store
    clock = BoxClock(lambda: till.at, lambda: True)
    return MachineWorker(till.book, store.ledger, store.journal, store.events, clock, Defaults("1", "Caisse 1", "1"))
