"""The sandbox machine (decision 23): the simulator in memory, behind the real driver and the same use cases."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from bridge.link import Port
from daemon.app.tills_first import TillsFirst
from daemon.core.ledger.book import Book
from daemon.store.store import Store
from daemon.usecases.worker.machine_worker import MachineWorker
from simulator.line.memory_port import MemoryPort
from simulator.line.session import LineSession
from simulator.machine.fiscal_memory import RememberedInvoice, Snapshot
from simulator.machine.machine import SimulatedMachine
from simulator.machine.options import SimulatorOptions

AWAITED: Final = 5.0
"""Seconds at the most that a start waits for the sandbox."""
STEP: Final = 0.001


async def sandbox_answers(workers: Sequence[MachineWorker]) -> None:
    """Until each machine of the sandbox can be asked, or could not be opened: whoever comes first with a test key is not told that a machine
    which is a part of this daemon has not answered yet. It is a few steps of the loop, and as many writes as a slow disk may take long for."""
    loop = asyncio.get_running_loop()
    until = loop.time() + AWAITED
    while loop.time() < until and any(map(_is_opening, workers)):  # noqa: ASYNC110  a worker does not tell, and it is but once
        await asyncio.sleep(STEP)


def _is_opening(worker: MachineWorker) -> bool:
    return worker.book.mode == "test" and not worker.connected and worker.offline_since is None


async def sandbox_port(store: Store, book: Book, ifu: str, tills_first: TillsFirst) -> Callable[[], Port]:
    """Opens the port of a machine that has certified exactly what the test book holds: it keeps nothing of its own, so
    a crash cannot make the two disagree. `ifu` is the live machine's, once that is known."""
    options = SimulatorOptions(nim=book.nim, test_mode=True, log_limit=0)
    if ifu:
        options = SimulatorOptions(nim=book.nim, test_mode=True, log_limit=0, ifu=ifu)
    machine = SimulatedMachine(options)
    machine.restore(await _certified_so_far(store, book))
    session = LineSession(machine)
    return lambda: MemoryPort(session, tills_first.rest)


async def _certified_so_far(store: Store, book: Book) -> Snapshot:
    state = await store.ledger.state(book)
    if state.known is None:
        return Snapshot()
    record = await store.ledger.find_number(book, state.last_number) if state.last_number else None
    last = None
    if record is not None:
        last = RememberedInvoice(record.number, record.code, record.machine_time, record.type, record.total_ttc)
    return Snapshot(tc=state.known.tc, fvc=state.known.fvc, frc=state.known.frc, last=last)
