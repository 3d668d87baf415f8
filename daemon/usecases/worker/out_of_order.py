"""Why a machine certifies nothing at the moment, as a code of the register of outages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from common.language import reasons
from daemon.core.errors import LineLost, MachineAttention, MachineOffline, McfdError, StorageError
from daemon.core.ledger.entries import OutageReason
from daemon.core.ledger.take_over import NotInUse, NumberReserved, UnknownElsewhere
from daemon.usecases.worker.machine_worker import MachineWorker

OUTAGES: Final[dict[str, OutageReason]] = {
    reasons.NO_ANSWER.code: "no_answer",
    reasons.LINE_BUSY.code: "no_answer",
    reasons.NO_END.code: "no_answer",
    reasons.CLOSE_PENDING.code: "no_answer",
    reasons.ADDRESS_SILENT.code: "no_answer",
    reasons.NOT_ACTIVATED.code: "deactivated",
    reasons.LEDGER_FAILED.code: "disk",
}
"""Codes for why a machine is not connected; each other one is a lost line."""


def out_of_order(worker: MachineWorker) -> OutageReason | None:
    """None while it may be given work, and while it returns."""
    if worker.obstacle:
        return "attention"
    if worker.refuses_all:
        return "blocked"
    if worker.connected or (worker.returning and not worker.attempts.is_restored):
        return None
    return outage_of(worker.offline_reason)


def outage_of(reason: object) -> OutageReason:
    """Of the reason, or the error, for which a connection ended; what it was caused by counts."""
    return next((OUTAGES[code] for code in reasons.codes_of(reason) if code in OUTAGES), "line_lost")


@contextmanager
def registering_refusal(worker: MachineWorker) -> Iterator[None]:
    """A till that is refused because its machine or its box is out of order (503, 507) begins an outage; it does not wait for the register."""
    try:
        yield
    except (NotInUse, NumberReserved, UnknownElsewhere):  # of the other machine of a pair, which has its own register
        raise
    except (MachineOffline, MachineAttention, LineLost, StorageError) as error:
        if not worker.closing:
            worker.spawn(_register(worker, error), "outage")
        raise


async def _register(worker: MachineWorker, error: McfdError) -> None:
    reason = "disk" if isinstance(error, StorageError) else out_of_order(worker) or outage_of(error)
    with suppress(StorageError):  # written down as soon as there is room
        await worker.register_outage(reason)
