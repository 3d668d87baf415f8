"""The sandbox machine (decision 23): the simulator in memory, behind the real driver and the same use cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bridge.link import Port
from daemon.core.ledger.book import Book
from daemon.store.store import Store
from simulator.line.memory_port import MemoryPort
from simulator.line.session import Session
from simulator.machine.fiscal_memory import LastInvoice, Snapshot
from simulator.machine.machine import Machine
from simulator.machine.options import Options

REST: Final = 0.001
"""Seconds before each command while a till waits for a real machine: a trial of a thousand lines is as many commands, which without it
took the whole loop for a quarter of a second."""


async def sandbox_port(store: Store, book: Book, ifu: str, tills_wait: Callable[[], bool]) -> Callable[[], Port]:
    """Opens the port of a machine that has certified exactly what the test book holds: it keeps nothing of its own, so
    a crash cannot make the two disagree. `ifu` is the live machine's, once that is known."""
    options = Options(nim=book.nim, test_mode=True, log_limit=0)
    if ifu:
        options = Options(nim=book.nim, test_mode=True, log_limit=0, ifu=ifu)
    machine = Machine(options)
    machine.restore(await _certified_so_far(store, book))
    session = Session(machine)
    return lambda: MemoryPort(session, lambda: REST if tills_wait() else 0.0)


async def _certified_so_far(store: Store, book: Book) -> Snapshot:
    state = await store.ledger.state(book)
    if state.known is None:
        return Snapshot()
    record = await store.ledger.find_number(book, state.last_number) if state.last_number else None
    last = None
    if record is not None:
        last = LastInvoice(record.number, record.code, record.machine_time, record.type, record.total_ttc)
    return Snapshot(tc=state.known.tc, fvc=state.known.fvc, frc=state.known.frc, last=last)
