"""Why a machine certifies nothing at the moment, as a code of the register of outages."""

from __future__ import annotations

from typing import Final

from common.language.stored import retold
from daemon.core.ledger.outage import OutageReason
from daemon.usecases.worker.machine_worker import MachineWorker

_SILENT: Final = ("does not answer", "keeps the line busy", "does not come to an end", "did not come to an end")
_INACTIVE: Final = ("not activated",)


def out_of_order(worker: MachineWorker) -> OutageReason | None:
    """None while it may be given work, and while it returns."""
    if worker.obstacle:
        return "attention"
    if worker.refuses_all:
        return "blocked"
    if worker.connected or (worker.returning and not worker.attempts.is_restored):
        return None
    why = retold(worker.offline_reason, "en")
    if any(part in why for part in _INACTIVE):
        return "deactivated"
    return "no_answer" if any(part in why for part in _SILENT) else "line_lost"
