"""What the ledger holds as codes is translated into French, with all its values."""

import pytest

from common.language.reasons import (
    from_stored,
    to_stored,
)
from daemon.core.ledger.verdict import activated_since, behind, vanished
from daemon.core.machine.state import FiscalCounters, LastInvoice, MachineState

BEFORE = FiscalCounters(10, 8, 1)
NOW = FiscalCounters(13, 10, 1)


def machine(counters=NOW, last="F-9"):
    found = LastInvoice(last, "C" * 24, "20261120101530", "FV", 15_000) if last else None
    return MachineState("EL02000015-1", "00084440Y", "20261120101530", counters, {"B": 1800}, found)


def test_what_attention_says_is_french():
    """Each sentence with counters, numbers and totals; nothing of the English is left, and nothing of the values is lost."""
    for found in (
        behind(BEFORE, "F-7", machine(), "new"),
        behind(BEFORE, "F-7", machine(BEFORE), "new"),
        behind(NOW, "", machine(BEFORE, ""), "none"),
        vanished(machine()),
        activated_since(BEFORE, machine(), "new"),
    ):
        sentence = from_stored(to_stored(found)).in_language("fr")
        assert "machine dit" in sentence, sentence
        for english in ("the ", " says ", "last invoice", "none", " as "):
            assert english not in sentence
    sentence = from_stored(to_stored(behind(BEFORE, "F-7", machine(), "new"))).in_language("fr")
    counters = ("TC 10, FVC 8, FRC 1", "TC 13, FVC 10, FRC 1")
    for value in (*counters, "'F-7'", "'F-9' (FV, 15000 XOF)", "certifié 2 factures"):
        assert value in sentence


@pytest.mark.parametrize("sentence", ["not sent", "the machine did not certify it"])
def test_what_an_old_version_wrote_without_values_is_still_french(sentence):
    """A row of 0.2: the sentence itself is the catalogue's."""
    assert from_stored(sentence).in_language("fr") not in ("", sentence)
