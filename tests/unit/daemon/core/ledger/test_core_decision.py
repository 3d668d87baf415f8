"""What an operator may decide (`mcfd machine settle`, the page): nothing is entered that the machine did not say."""

import msgspec
import pytest
from support.core_samples import record

from daemon.core.ledger.book import Book, BookState
from daemon.core.ledger.decision import Case
from daemon.core.ledger.verdict import Evidence
from daemon.core.machine.state import Certified, FiscalCounters, LastInvoice, MachineState

KNOWN = FiscalCounters(10, 8, 1)
OURS = LastInvoice("FV-1", "NEWCODE", "20260105100001", "FV", 15000)
OTHER = LastInvoice("FV-0", "OLDCODE", "20260105095959", "FV", 700)
NOW = FiscalCounters(12, 10, 1)
BOOK = BookState(
    book=Book(1, "EL02000015-1", "live"),
    known=KNOWN,
    last_number="FV-0",
    last_at=0,
    last_seq=0,
    rates={},
    ifu="00084440Y",
    attention="odd",
    unexplained=0,
    z_number=0,
)


def case(last, *, doubt=True):
    attempt = record(state="disputed", counters=None, code="", base=KNOWN) if doubt else None
    evidence = None
    if last != "unknown":
        evidence = Evidence(1, MachineState("EL02000015-1", "00084440Y", "20260105100005", NOW, {}, last))
    return Case(BOOK, attempt, evidence)


@pytest.mark.parametrize(
    ("last", "decision", "obstacle"),
    [
        (OURS, "certified", None),
        (OURS, "not-certified", "its last"),
        (OTHER, "certified", "not its last"),
        (OTHER, "not-certified", None),
        (None, "certified", "not its last"),
        ("unknown", "certified", "machine unknown"),
        ("unknown", "not-certified", None),
        (OURS, "adopt", "does not fit"),
        (OTHER, "anything else", "does not fit"),
    ],
)
def test_a_doubt_is_decided_by_what_the_machine_said(last, decision, obstacle):
    """A number that the machine certified is never set free, and a code is only taken from the invoice itself."""
    assert case(last).obstacle(decision) == obstacle


@pytest.mark.parametrize(("last", "obstacle"), [(OTHER, None), (None, None), ("unknown", "machine unknown")])
def test_without_a_doubt_the_machine_is_taken_over(last, obstacle):
    """Only that, and only when it is known what it says."""
    assert case(last, doubt=False).choices == ("adopt",)
    assert case(last, doubt=False).obstacle("adopt") == obstacle


def test_what_is_entered_is_the_machines_word():
    """Its last invoice as the outcome; what is in no total is counted as somebody else's."""
    assert case(OURS).certified() == Certified("NEWCODE", "20260105100001", "00084440Y", NOW)
    assert case(None).certified() is None
    assert case(OURS).foreign() == 2
    assert case("unknown").foreign() == 0


NAMES = {
    ("EL02000015-2", 10): "EL02000015-2",
    ("EL02000015-2", 11): "",
    ("EL02000015", 9): "",
    ("EL02000015-1", 9): "EL02000015-1",
}


@pytest.mark.parametrize(("nim", "tc"), NAMES)
def test_a_machine_that_counts_again_is_entered_under_its_new_name(nim, tc):
    """Where it tells its activation and its TC is not past what the ledger knows; a book that knows nothing of it names none."""
    said = MachineState(nim, "00084440Y", "20260105100005", FiscalCounters(tc, 1, 0), {}, OURS)
    for known, expected in ((KNOWN, NAMES[nim, tc]), (None, "")):
        found = Case(msgspec.structs.replace(BOOK, known=known), None, Evidence(1, said)).certified()
        assert found is not None
        assert found.nim == expected


@pytest.mark.parametrize(
    ("known", "others"), [(None, 0), (FiscalCounters(10, 9, 0), 2), (FiscalCounters(10, 12, 1), 0)]
)
def test_what_is_in_no_total_is_counted_from_what_the_ledger_knows(known, others):
    """Sales and credit notes together; a machine that counts anew has none that could be told."""
    doubt = case(OTHER)
    assert Case(msgspec.structs.replace(BOOK, known=known), None, doubt.evidence).foreign() == others
