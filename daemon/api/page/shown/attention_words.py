"""What was found at a machine in attention, for whoever stands in the shop.

The ledger keeps the finding as it was made, in English, with all counters (`core.ledger.verdict`); the screen says what it means first."""

from __future__ import annotations

from typing import Final

from common.language import Language, Text
from common.language.stored import retold

PLAIN: Final = (
    (
        "has no known outcome",
        Text("An invoice went to the machine and the answer was lost: it is not known whether it was certified."),
    ),
    (
        "the machine's counters went down",
        Text("The machine has counted less than the ledger knows: it is another machine, or it was reset."),
    ),
    (
        "this ledger does not know",
        Text(
            "The machine has certified invoices that this ledger does not know: another program used it, or an older copy of the "
            "ledger was put back."
        ),
    ),
    (
        "has been activated anew since",
        Text(
            "An older copy of the ledger was put back, and the machine has been activated anew since that copy was made: what it certified "
            "in between is in no ledger."
        ),
    ),
    (
        "was certified by another machine",
        Text(
            "An invoice was certified by another machine than the one of this line: their cables were exchanged. It must not be certified again."
        ),
    ),
    (
        "missing from the ledger",
        Text(
            "What this box had written down is missing from its ledger: the disk has damaged it, or an older copy was put in its place. "
            "Compare paper and tills with the journal."
        ),
    ),
    (
        "this ledger is empty",
        Text(
            "This ledger is empty, but another one has worked with this machine: put that one back, or its newest copy (mcfd restore)."
        ),
    ),
)
"""A part of the finding, and what it means."""


def in_plain_words(found: str, language: Language) -> str:
    """The finding itself where it is none that is known."""
    for part, meaning in PLAIN:
        if part in found:
            return meaning.told(language)
    return retold(found, language)
