"""The aggregation tick (decision 13): what has ended enters the totals."""

from __future__ import annotations

import structlog

from daemon.core.errors import StorageError
from daemon.usecases.desk import Desk

log = structlog.get_logger(__name__)


async def tick(desk: Desk) -> None:
    """Brings in everything that has ended. One that cannot be stored is made up for by the next: nothing waits for it."""
    try:
        desk.aggregate = await desk.ledger.aggregate(desk.book)
    except StorageError as error:
        log.warning("aggregate.failed", nim=desk.book.nim, mode=desk.book.mode, cause=str(error))
        desk.schedule_tick(lambda: tick(desk))
