"""Cash into the drawer and out of it: written to the book, never told to the machine (decision 34)."""

from __future__ import annotations

import msgspec
import structlog

from daemon.core.call import Call
from daemon.core.ledger.book import KeyUse
from daemon.core.ledger.entries import Placed
from daemon.core.report.acts import MOST_AN_HOUR, CashMovements, moved, movements, read_move
from daemon.usecases.certification.idempotency import Answered, once
from daemon.usecases.worker.machine_worker import MachineWorker

log = structlog.get_logger(__name__)


async def move_cash(worker: MachineWorker, body: dict[str, object], call: Call) -> Answered[bytes]:
    """The answer's bytes. Needs no machine; InvalidRequest, TooManyCashMoves, StorageFull."""
    move, warnings = read_move(body, defaults=worker.defaults, strict=call.strict)

    def answer(placed: Placed) -> bytes:
        return msgspec.json.encode(moved(placed, worker.book.nim, warnings))

    async def run() -> bytes:
        await worker.ledger.check_free_space(worker.book)
        told = await worker.ledger.move_cash(
            worker.book,
            move,
            at=worker.now(),
            answer=answer,
            call=call,
            box_at=worker.clock.millis(),
            most=MOST_AN_HOUR,
        )
        log.info(
            "cash.moved",
            **worker.names,
            kind=move.kind,
            amount=move.amount,
            request_id=call.request_id,
        )
        return told

    return await worker.see_through(once(worker, call, run, _replay), "move cash")


def _replay(use: KeyUse) -> bytes | None:
    return use.answer or None


async def cash_moves(worker: MachineWorker, start: int, end: int, after: int, limit: int) -> CashMovements:
    """Those of `start <= t < end` (ms), oldest first, from the one after the id `after`."""
    total = await worker.ledger.cash_between(worker.book, start, end)
    listed = await worker.ledger.cash_moves(worker.book, start=start, end=end, after=after, limit=limit)
    return movements(worker.book.nim, start, end, total, listed)
