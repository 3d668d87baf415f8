"""Why a machine certifies nothing at the moment, as a code of the register of outages."""

from __future__ import annotations

from typing import Final

from common.language import reasons
from daemon.core.ledger.outage import OutageReason
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
