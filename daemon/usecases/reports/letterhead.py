"""The letterhead of a book: kept when it changes, named by what is certified and closed from then on, read again for a copy."""

from __future__ import annotations

import contextlib

import msgspec

from daemon.core.errors import StorageError
from daemon.core.report.letterhead import Letterhead, digest_of, letterhead_bytes, read_letterhead
from daemon.usecases.worker.machine_worker import MachineWorker


async def take_letterhead(worker: MachineWorker) -> None:
    """At the start, and once the machine has told whose it is. While the ledger takes nothing, the one before counts."""
    if worker.compose_letterhead is None:
        return
    with contextlib.suppress(StorageError):
        newest = await worker.ledger.newest_letterhead(worker.book)
        taxpayer = worker.taxpayer or (read_letterhead(newest[1]).taxpayer if newest else ())
        content = letterhead_bytes(worker.compose_letterhead(taxpayer))
        digest = digest_of(content)
        if newest is None or newest[0] != digest:
            await worker.ledger.keep_letterhead(worker.book, digest, content, at=worker.clock.millis())
        worker.defaults = msgspec.structs.replace(worker.defaults, letterhead=digest)


async def letterhead_of(worker: MachineWorker, digest: bytes) -> Letterhead | None:
    """None for what names none, and for one that is not in this ledger."""
    content = await worker.ledger.letterhead(worker.book, digest) if digest else None
    return None if content is None else read_letterhead(content)
