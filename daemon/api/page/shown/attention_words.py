"""What was found at a machine in attention, for whoever stands in the shop.

The ledger holds the finding as a code with all counters (`core.ledger.verdict`); the screen says first what it means."""

from __future__ import annotations

from typing import Final

from common.language import Language, Text
from common.language.reasons import (
    ACTIVATED_SINCE_BACKUP,
    CERTIFIED_ELSEWHERE,
    FOREIGN_INVOICE,
    FOREIGN_INVOICES,
    LEDGER_EMPTY,
    MACHINE_BEHIND,
    OUTCOME_UNKNOWN,
    WRITES_LOST,
    WRITES_LOST_LOG_KEPT,
    codes_of,
)

FOREIGN: Final = Text(
    "The machine has certified invoices that this ledger does not know: another program used it, or an older copy of the ledger was put back."
)
LOST: Final = Text(
    "What this box had written down is missing from its ledger: the disk has damaged it, or an older copy was put in its place. Compare paper "
    "and tills with the journal."
)
PLAIN: Final = {
    OUTCOME_UNKNOWN.code: Text(
        "An invoice went to the machine and the answer was lost: it is not known whether it was certified."
    ),
    MACHINE_BEHIND.code: Text(
        "The machine has counted less than the ledger knows: it is another machine, or it was reset."
    ),
    FOREIGN_INVOICE.code: FOREIGN,
    FOREIGN_INVOICES.code: FOREIGN,
    ACTIVATED_SINCE_BACKUP.code: Text(
        "An older copy of the ledger was put back, and the machine has been activated anew since that copy was made: what it certified "
        "in between is in no ledger."
    ),
    CERTIFIED_ELSEWHERE.code: Text(
        "An invoice was certified by another machine than the one of this line: their cables were exchanged. It must not be certified again."
    ),
    WRITES_LOST.code: LOST,
    WRITES_LOST_LOG_KEPT.code: LOST,
    LEDGER_EMPTY.code: Text(
        "This ledger is empty, but another one has worked with this machine: put that one back, or its newest copy (mcfd restore)."
    ),
}
"""What a finding means, by its code."""


def in_plain_words(found: Text, language: Language) -> str:
    """The finding itself where it has another code, or none."""
    return next((PLAIN[code] for code in codes_of(found) if code in PLAIN), found).told(language)
