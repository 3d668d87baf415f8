"""What is said of a machine in attention, in plain words."""

from support.core_samples import record

from common.language import LANGUAGES, Text
from common.language.reasons import (
    CERTIFIED_ELSEWHERE,
    NO_ANSWER,
    RECORDED_INCIDENT,
    WRITES_LOST,
    from_stored,
    to_stored,
)
from daemon.api.page.views.machine_view import PLAIN, in_plain_words
from daemon.core.ledger.verdict import Disputed, activated_since, behind, judge, vanished
from daemon.core.machine.state import FiscalCounters, LastInvoice, MachineState

BEFORE = FiscalCounters(10, 8, 1)


def machine(tc: int, fvc: int, frc: int) -> MachineState:
    last = LastInvoice("FV-0", "OLDCODE", "20260105095959", "FV", 700)
    return MachineState("EL02000015-1", "00084440Y", "20260105100005", FiscalCounters(tc, fvc, frc), {}, last)


def test_every_finding_of_the_ledger_has_plain_words() -> None:
    """Each its own sentence in each language, without a counter in it; what is none of these is shown as it was found."""
    doubt = judge(record(state="begun", counters=None, code="", base=BEFORE), BEFORE, machine(14, 11, 1), "new")
    assert isinstance(doubt, Disputed)
    findings = (
        doubt.found,
        behind(BEFORE, "FV-9", machine(3, 2, 0), "new"),
        behind(BEFORE, "FV-9", machine(14, 11, 1), "new"),
        activated_since(BEFORE, machine(14, 11, 1), "new"),
        CERTIFIED_ELSEWHERE(number="F-1", found="EL02000099-1", code="CODE"),
        WRITES_LOST(count=3),
        vanished(machine(14, 11, 1)),
    )
    for language in LANGUAGES:
        rows = [
            in_plain_words(from_stored(to_stored(RECORDED_INCIDENT(found=found, incident="1"))), language)
            for found in findings
        ]
        assert set(rows) == {meaning.in_language(language) for meaning in PLAIN.values()}
        assert len(set(rows)) == len(findings)
        assert "TC" not in "".join(rows)
    assert in_plain_words(Text("something else"), "fr") == "something else"
    assert in_plain_words(NO_ANSWER, "fr") == "la machine ne répond pas"
