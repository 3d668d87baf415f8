"""What became of an attempt whose outcome is unknown (protocol 5)."""

import msgspec
import pytest
from support.core_samples import credit_body, record

from daemon.core.ledger.verdict import (
    Disputed,
    NotCertified,
    activated_since,
    behind,
    fc_moved,
    is_last,
    judge,
    strangers,
    vanished,
    went_down,
)
from daemon.core.machine.nim import same_machine
from daemon.core.machine.state import Certified, FiscalCounters, LastInvoice, MachineState

KNOWN = FiscalCounters(10, 8, 1)
OURS = LastInvoice("FV-1", "NEWCODE", "20260105100001", "FV", 15000)
BEFORE = LastInvoice("FV-0", "OLDCODE", "20260105095959", "FV", 700)


def state(tc, fvc, frc, last=BEFORE):
    return MachineState("EL02000015-1", "00084440Y", "20260105100005", FiscalCounters(tc, fvc, frc), {}, last)


def attempt(**fields):
    return record(state="begun", counters=None, code="", **{"base": KNOWN, **fields})


@pytest.mark.parametrize("tc", [11, 12, 40])
def test_a_sale_the_machine_counted_and_remembers_is_certified(tc):
    """One more FVC, the number, total and type are ours, TC past: code, time and counters are the machine's."""
    assert judge(attempt(), KNOWN, state(tc, 9, 1, OURS)) == Certified(
        "NEWCODE", "20260105100001", "00084440Y", FiscalCounters(tc, 9, 1)
    )


def test_a_credit_note_is_counted_by_frc():
    """FRC moves by one and FVC does not."""
    credit = record(credit_body(), credit=True, state="begun", base=KNOWN)
    last = LastInvoice("FV-1", "C", "20260105100001", "FA", 15000)
    assert isinstance(judge(credit, KNOWN, state(11, 8, 2, last)), Certified)
    assert isinstance(judge(credit, KNOWN, state(11, 9, 1, last)), Disputed)


@pytest.mark.parametrize("tc", [10, 11])
def test_counters_that_did_not_move_say_it_was_not_certified(tc):
    """TC alone moves by the machine's own daily report."""
    assert judge(attempt(), KNOWN, state(tc, 8, 1)) == NotCertified(sent=True)
    assert judge(attempt(), KNOWN, state(tc, 8, 1, None)) == NotCertified(sent=True)


@pytest.mark.parametrize(
    ("why", "seen"),
    [
        ("two more sales", state(12, 10, 1, OURS)),
        ("a credit note moved too", state(12, 9, 2, OURS)),
        ("another number", state(11, 9, 1, BEFORE)),
        ("another total", state(11, 9, 1, LastInvoice("FV-1", "N", "20260105100001", "FV", 14999))),
        ("another type", state(11, 9, 1, LastInvoice("FV-1", "N", "20260105100001", "FT", 15000))),
        ("no last invoice", state(11, 9, 1, None)),
        ("TC stood still", state(10, 9, 1, OURS)),
        ("a counter went down", state(11, 7, 1, OURS)),
        ("TC went down", state(9, 8, 1)),
    ],
)
def test_anything_else_is_not_guessed_at(why, seen):
    """An operator is told what was found: our invoice, what the ledger knows and what the machine says."""
    verdict = judge(attempt(), KNOWN, seen)
    assert isinstance(verdict, Disputed), why
    for part in ("'FV-1'", "15000", "TC 10, FVC 8, FRC 1", f"FVC {seen.counters.fvc}"):
        assert part in verdict.found


def test_what_is_known_counts_and_not_the_base_of_the_intent():
    """The intent may be older than the outcome of the invoice before it, which `known` includes."""
    early = attempt(base=FiscalCounters(9, 7, 1))
    assert isinstance(judge(early, KNOWN, state(11, 9, 1, OURS)), Certified)
    assert judge(early, KNOWN, state(10, 8, 1)) == NotCertified()


def test_a_number_already_in_the_known_counters_is_disputed():
    """The machine remembers our number, but its counters were taken over without settling the attempt."""
    early = attempt(base=FiscalCounters(9, 7, 1))
    assert isinstance(judge(early, KNOWN, state(10, 8, 1, OURS)), Disputed)


def test_the_same_number_from_before_the_intent_is_not_ours():
    """Somebody else's invoice of that number, already counted when the intent was written."""
    assert judge(attempt(), KNOWN, state(10, 8, 1, OURS)) == NotCertified()


@pytest.mark.parametrize("tc", [10, 25])
def test_a_ledger_that_knows_the_machines_counters_is_not_behind(tc):
    """The machine's own daily reports move TC, and are explained."""
    assert behind(KNOWN, "FV-0", state(tc, 8, 1)) == ""


def test_a_machine_ahead_of_the_ledger_is_told_with_the_evidence():
    """A restored backup, or another program at the machine; one invoice is told as one."""
    assert "has certified an invoice that" in behind(KNOWN, "FV-0", state(11, 9, 1, OURS))
    text = behind(KNOWN, "FV-0", state(14, 10, 2, OURS))
    assert "has certified 3 invoices that" in text
    for part in ("'FV-0'", "'FV-1'", "FVC 8", "FVC 10"):
        assert part in text
    assert "none as the last invoice" in behind(FiscalCounters(0, 0, 0), "", state(14, 10, 2))


@pytest.mark.parametrize("seen", [state(9, 8, 1), state(12, 7, 3), state(12, 9, 0, None)])
def test_counters_that_went_down_mean_another_machine(seen):
    """FiscalCounters never go down on one machine (protocol 3)."""
    assert "went down" in behind(KNOWN, "FV-0", seen)


@pytest.mark.parametrize("seen", [state(14, 10, 0, None), state(14, 0, 2, None), state(14, 0, 0), state(14, 10, 2)])
def test_an_empty_ledger_lacks_what_its_machine_has_certified(seen):
    """A last invoice, sales or credit notes: each of them says so alone; daily reports of the machine's own do not."""
    assert "this ledger is empty" in vanished(seen)
    assert vanished(state(14, 0, 0, None)) == ""


def test_machines_are_compared_up_to_the_dash():
    """Some firmware answers without the activation counter."""
    assert same_machine("EL02000015-1", "EL02000015")
    assert not same_machine("EL02000015-1", "EL02000016-1")


EXPORT = LastInvoice("FV-1", "NEWCODE", "20260105100001", "EV", 15000)


@pytest.mark.parametrize(
    ("kind", "moved", "base", "verdict"),
    [
        ("EV", 1, KNOWN, Certified("NEWCODE", "20260105100001", "00084440Y", FiscalCounters(11, 8, 1))),
        ("EV", 0, KNOWN, NotCertified()),
        ("EV", 2, KNOWN, Disputed),
        ("FV", 1, KNOWN, Disputed),
        ("FV", 0, FiscalCounters(9, 8, 0), Disputed),
        ("FV", 0, FiscalCounters(9, 8, 1), NotCertified()),
    ],
)
def test_counters_that_stood_still_beside_our_number(kind, moved, base, verdict):
    """An export that moved TC by one was certified (protocol 5.2); any other movement, and counters that were taken over, are for an operator."""
    ours = msgspec.structs.replace(attempt(base=base), type=kind)
    last = msgspec.structs.replace(EXPORT, type=kind)
    found = judge(ours, KNOWN, state(10 + moved, 8, 1, last))
    assert found == verdict or type(found) is verdict


@pytest.mark.parametrize(("tc", "nim"), [(3, "EL02000015-2"), (10, "EL02000015-2"), (11, "")])
def test_an_invoice_of_a_machine_that_was_activated_meanwhile(tc, nim):
    """Its own word counts, whatever its counters; it is of the new activation where the machine has begun to count again."""
    seen = state(tc, 1, 0, OURS)
    found = judge(attempt(), KNOWN, seen, activated="EL02000015-2")
    assert found == Certified("NEWCODE", "20260105100001", "00084440Y", seen.counters, nim)
    assert not isinstance(judge(attempt(), KNOWN, state(tc, 1, 0), activated="EL02000015-2"), Certified)
    assert not isinstance(judge(attempt(), KNOWN, state(tc, 1, 0, None), activated="EL02000015-2"), Certified)


@pytest.mark.parametrize(
    ("kind", "fvc", "frc", "may_be"),
    [
        ("FV", 1, 0, True), ("FV", 0, 0, False), ("FA", 0, 1, True), ("FA", 0, 0, False), ("FV", -1, 0, False), ("FV", 2, -1, True),
        ("EV", 0, 0, True), ("ET", 0, 0, True), ("EA", 0, 0, True), ("EV", 1, 0, True), ("EV", -1, 0, False), ("EV", 1, -1, True),
    ],
)  # fmt: skip
def test_what_38h_may_have_counted(kind, fvc, frc, may_be):
    """Something moved on, or nothing where some machines count in TC alone."""
    assert fc_moved(kind, KNOWN, FiscalCounters(11, 8 + fvc, 1 + frc)) is may_be


@pytest.mark.parametrize(
    ("credit", "fvc", "frc", "others"),
    [
        (False, 1, 0, 0), (False, 2, 0, 1), (False, 1, 1, 1), (False, 0, 1, 1), (False, 0, 0, 0), (False, 3, 2, 4),
        (True, 0, 1, 0), (True, 0, 2, 1), (True, 1, 1, 1), (True, 1, 0, 1), (True, 0, 0, 0), (False, -1, 0, 0),
    ],
)  # fmt: skip
def test_how_many_others_a_machine_has_counted(credit, fvc, frc, others):
    """All but this one, which may be in TC alone."""
    ours = record(credit_body(), credit=True) if credit else record()
    assert strangers(ours.invoice, KNOWN, FiscalCounters(99, 8 + fvc, 1 + frc)) == others


@pytest.mark.parametrize(
    ("field", "told", "ours"),
    [
        ("number", "fv-1", True), ("number", "FV-2", False), ("total", 15_001, False), ("type", "FT", False), ("type", "FA", False),
        ("type", "FACTURE DE VENTE", True), ("type", "", True),
    ],
)  # fmt: skip
def test_whether_the_machine_s_last_invoice_is_ours(field, told, ours):
    """In capitals or not, in words of its own for the type; never with another type that we know, another number or another total."""
    assert is_last(attempt(), state(11, 9, 1, msgspec.structs.replace(OURS, **{field: told}))) is ours
    assert not is_last(attempt(), state(11, 9, 1, None))


@pytest.mark.parametrize(("tc", "fvc", "frc"), [(0, 0, 0), (1, 1, 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1), (9, -1, 9)])
def test_each_counter_may_only_go_up(tc, fvc, frc):
    """One that is lower than before is enough; one that stands still is not."""
    assert went_down(KNOWN, FiscalCounters(10 + tc, 8 + fvc, 1 + frc)) is (min(tc, fvc, frc) < 0)


def test_an_activation_since_the_copy_was_made_is_told_with_the_evidence():
    """What the copy knows, what the machine says, and its last invoice."""
    told = activated_since(KNOWN, state(3, 2, 0, OURS))
    for part in ("TC 10, FVC 8, FRC 1", "TC 3, FVC 2, FRC 0", "'FV-1' (FV, 15000 XOF)", "adopt"):
        assert part in told
    assert "no last invoice" in activated_since(KNOWN, state(0, 0, 0, None))
