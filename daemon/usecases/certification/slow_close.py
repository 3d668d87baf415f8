"""A 38h that takes longer than it takes on this machine: told at once, before any time limit, and nothing is sent for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from daemon.core.events import SLOW
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)

TIMES = 3
"""As long as the longest so far."""
BOUNDS = {False: (1.0, 3.0), True: (20.0, 60.0)}
"""Seconds, at the least and at the most, for a sale, and for a credit note, which the tax server checks first."""


def patience(longest: float, *, is_credit: bool) -> float:
    """Seconds after which somebody is told; `longest`: that 38h has taken here since the start, 0 before the first."""
    least, most = BOUNDS[is_credit]
    return min(max(least, TIMES * longest), most)


@contextmanager
def watching(worker: MachineWorker, number: str, *, is_credit: bool) -> Iterator[None]:
    """While 38h is under way. What ends otherwise than by an answer is no measure of how long an answer takes."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    wait = patience(worker.longest_close.get(is_credit, 0.0), is_credit=is_credit)
    timer = loop.call_later(wait, _announce, worker, number, wait)
    try:
        yield
        worker.longest_close[is_credit] = max(worker.longest_close.get(is_credit, 0.0), loop.time() - began)
    finally:
        timer.cancel()


def _announce(worker: MachineWorker, number: str, waited: float) -> None:
    book = worker.book
    log.warning(
        "certification.slow",
        nim=book.nim,
        mode=book.mode,
        invoice_number=number,
        waited=waited,
        incident=worker.note_odd("38h is slow") or None,
    )
    worker.publish(SLOW, detail=f"38h of invoice {number} has no answer after {waited:g} s; it is waited for")
