"""What became of an attempt whose outcome is unknown (protocol 5)."""

import msgspec
import pytest
from support.core_samples import credit_body, record

from daemon.core.ledger.book import LastSeen
from daemon.core.ledger.verdict import (
    Disputed,
    NotCertified,
    activated_since,
    behind,
    compare_last,
    fc_moved,
    foreign_count,
    is_last,
    judge,
    may_be_certified,
    resembles,
    vanished,
    verdicts,
)
from daemon.core.machine.state import Certified, FiscalCounters, LastInvoice, MachineState

LEDGER = FiscalCounters(10, 8, 1)
OURS = LastInvoice("FV-1", "NEWCODE", "20260105100001", "FV", 15000)
BEFORE = LastInvoice("FV-0", "OLDCODE", "20260105095959", "FV", 700)


def state(tc, fvc, frc, last=BEFORE):
    return MachineState("EL02000015-1", "00084440Y", "20260105100005", FiscalCounters(tc, fvc, frc), {}, last)


def attempt(**fields):
    return record(state="begun", counters=None, code="", **{"base": LEDGER, **fields})


@pytest.mark.parametrize("tc", [11, 12, 40])
def test_a_sale_the_machine_counted_and_remembers_is_certified(tc):
    """One more FVC, the number, total and type are ours, TC past: code, time and counters are the machine's."""
    for last in ("new", "unrecorded"):
        assert judge(attempt(), LEDGER, state(tc, 9, 1, OURS), last) == Certified(
            "NEWCODE", "20260105100001", "00084440Y", FiscalCounters(tc, 9, 1)
        )


def test_a_credit_note_is_counted_by_frc():
    """Where nothing but the counters tells: FRC moves by one and FVC does not."""
    credit = record(credit_body(), credit=True, state="begun", base=LEDGER)
    last = LastInvoice("FV-1", "C", "20260105100001", "FA", 15000)
    assert isinstance(judge(credit, LEDGER, state(11, 8, 2, last), "unrecorded"), Certified)
    assert isinstance(judge(credit, LEDGER, state(11, 9, 1, last), "unrecorded"), Disputed)


@pytest.mark.parametrize("tc", [10, 11])
def test_counters_that_did_not_move_say_it_was_not_certified(tc):
    """TC alone moves by the machine's own daily report."""
    assert judge(attempt(), LEDGER, state(tc, 8, 1), "known") == NotCertified(sent=True)
    assert judge(attempt(), LEDGER, state(tc, 8, 1, None), "none") == NotCertified(sent=True)


OTHER = LastInvoice("X-7", "XCODE", "20260105100001", "FV", 500)


@pytest.mark.parametrize(
    ("why", "last", "seen"),
    [
        ("another total", "new", state(11, 9, 1, LastInvoice("FV-1", "N", "20260105100001", "FV", 14999))),
        ("another type", "new", state(11, 9, 1, LastInvoice("FV-1", "N", "20260105100001", "FT", 15000))),
        ("signs left out", "new", state(11, 9, 1, LastInvoice("FV1", "N", "20260105100001", "FV", 15000))),
        ("no last invoice, and the counters moved", "none", state(11, 9, 1, None)),
        ("no last invoice any more", "gone", state(11, 8, 1, None)),
        ("TC stood still", "new", state(10, 8, 1, OURS)),
        ("a sale that FVC does not show", "new", state(11, 8, 2, OURS)),
        ("a new invoice that was not counted", "new", state(10, 8, 1, OTHER)),
        ("one that is known, and the counters moved", "known", state(11, 9, 1)),
        ("ours is known, and the counters moved", "known", state(11, 9, 1, OURS)),
        ("a counter went down", "new", state(11, 7, 1, OURS)),
        ("TC went down", "known", state(9, 8, 1)),
        ("two sales, the last another's", "new", state(12, 10, 1, OTHER)),
        ("a sale and a credit note", "new", state(12, 9, 2, msgspec.structs.replace(OTHER, type="FA"))),
        ("two sales, the last in words of its own", "new", state(12, 9, 2, msgspec.structs.replace(OTHER, type="X"))),
        ("two more sales, no code", "alike", state(12, 10, 1, OURS)),
        ("a credit note moved too, no code", "alike", state(12, 9, 2, OURS)),
    ],
)
def test_anything_else_is_not_guessed_at(why, last, seen):
    """An operator reads what was found: our invoice, what the ledger knows and what the machine says."""
    verdict = judge(attempt(), LEDGER, seen, last)
    assert isinstance(verdict, Disputed), why
    for part in ("'FV-1'", "15000", "TC 10, FVC 8, FRC 1", f"FVC {seen.counters.fvc}"):
        assert part in verdict.found


def test_what_is_known_counts_and_not_the_base_of_the_intent():
    """The intent may be older than the outcome of the invoice before it, which `known` includes. Where the machine remembers our number, but its counters were taken over without settling
    the attempt, it is disputed."""
    early = attempt(base=FiscalCounters(9, 7, 1))
    assert isinstance(judge(early, LEDGER, state(11, 9, 1, OURS), "unrecorded"), Certified)
    assert judge(early, LEDGER, state(10, 8, 1), "known") == NotCertified()
    assert isinstance(judge(early, LEDGER, state(10, 8, 1, OURS), "unrecorded"), Disputed)


def test_the_same_number_from_before_the_intent_is_not_ours():
    """Somebody else's invoice of that number, already counted when the intent was written."""
    for last in ("known", "alike", "unrecorded"):
        assert judge(attempt(), LEDGER, state(10, 8, 1, OURS), last) == NotCertified()


@pytest.mark.parametrize("seen", [state(11, 9, 1, OURS), state(12, 10, 1, OURS), state(13, 9, 2, OURS)])
def test_a_code_that_is_new_is_enough(seen):
    """Whatever somebody else did before it: the ledger has not seen that invoice, and it is ours."""
    assert judge(attempt(), LEDGER, seen, "new") == Certified("NEWCODE", "20260105100001", "00084440Y", seen.counters)


@pytest.mark.parametrize(
    ("why", "kind", "seen"),
    [
        ("TC moved by one, and that is the last", "FV", state(11, 9, 1, OTHER)),
        ("the same, in words of its own", "FV", state(11, 9, 1, msgspec.structs.replace(OTHER, type="X"))),
        ("our own counter has not moved", "FV", state(14, 8, 2, msgspec.structs.replace(OTHER, type="FA"))),
        ("a daily report too", "FV", state(12, 9, 1, OTHER)),
        ("an export that TC leaves no room for", "EV", state(11, 8, 1, msgspec.structs.replace(OTHER, type="EV"))),
    ],
)
def test_somebody_else_s_last_invoice_may_leave_no_room_for_ours(why, kind, seen):
    """What the machine counted besides is too little."""
    ours = msgspec.structs.replace(attempt(), type=kind)
    assert judge(ours, LEDGER, seen, "new") == NotCertified(), why


@pytest.mark.parametrize(
    ("kind", "last", "moved", "may_be"),
    [
        ("FV", "FV", (1, 1, 0), False), ("FV", "FV", (2, 2, 0), True), ("FV", "FV", (9, 1, 0), False), ("FV", "FA", (2, 1, 1), True),
        ("FV", "FA", (3, 0, 2), False), ("FA", "FA", (2, 0, 1), False), ("FA", "FA", (2, 0, 2), True), ("FA", "EA", (2, 0, 1), True),
        ("EV", "EV", (1, 0, 0), False), ("EV", "EV", (2, 0, 0), True), ("EV", "EV", (2, 1, 0), False), ("EV", "EV", (2, 2, 0), True),
        ("FV", "EV", (2, 1, 0), True), ("FV", "EV", (1, 1, 0), False), ("EV", "FV", (2, 1, 0), True), ("EV", "FA", (2, 0, 1), True),
        ("EV", "FV", (1, 1, 0), False), ("FV", "?", (2, 1, 0), True), ("FV", "?", (2, 0, 0), False), ("FV", None, (1, 1, 0), True),
        ("FV", "?", (2, 2, 0), True), ("FV", "?", (2, 1, 1), True), ("FV", None, (1, 1, 1), False),
        ("FV", None, (5, 0, 0), False), ("EV", None, (1, 0, 0), True), ("EV", None, (0, 0, 0), False), ("FV", "FV", (2, 3, 0), False),
    ],
)  # fmt: skip
def test_whether_ours_may_be_among_what_was_counted(kind, last, moved, may_be):
    """Beside the last invoice, under any habit of counting exports: more invoices than transactions there cannot be."""
    tc, fvc, frc = moved
    assert may_be_certified(kind, last, LEDGER, FiscalCounters(10 + tc, 8 + fvc, 1 + frc)) is may_be


SEEN = LastSeen(BEFORE)
STANDINGS = [
    (None, None, False, "none"),
    (None, LastSeen(None), False, "none"),
    (None, SEEN, False, "gone"),
    (OURS, None, True, "known"),
    (OURS, SEEN, True, "known"),
    (BEFORE, SEEN, False, "known"),
    (OURS, None, False, "unrecorded"),
    (OURS, LastSeen(None), False, "new"),
    (OURS, SEEN, False, "new"),
    (msgspec.structs.replace(BEFORE, code="OTHER", time="20260105100959"), SEEN, False, "new"),
    (msgspec.structs.replace(BEFORE, code="OLD-CODE"), SEEN, False, "known"),
    (msgspec.structs.replace(BEFORE, code="", number="fv-0"), SEEN, False, "alike"),
    (msgspec.structs.replace(BEFORE, code="", total=1), SEEN, False, "new"),
    (msgspec.structs.replace(OURS, code=""), SEEN, False, "new"),
]


@pytest.mark.parametrize(("last", "seen", "in_ledger", "expected"), STANDINGS)
def test_what_the_ledger_knows_of_the_machine_s_last_invoice(last, seen, in_ledger, expected):
    """By its code; without one by number and total, which prove only that it is new."""
    assert compare_last(last, seen, in_ledger=in_ledger) == expected


@pytest.mark.parametrize(
    ("number", "changes", "may_be"),
    [
        ("FV-1", {"number": "fv-1", "total": 1}, True),
        ("FV-1", {"number": "FV1"}, True),
        ("FV-1", {"number": "FV1", "total": 1}, False),
        ("FV-1", {"number": "FV1", "type": "FA"}, False),
        ("FV-1", {"number": "FV-10"}, False),
        ("N° 7", {"number": "N? 7"}, True),
        ("2026-BOUTIQUE-00012345", {"number": "2026-BOUTIQUE-0001"}, True),
        ("2026-BOUTIQUE-00012345", {"number": "2026-BO"}, False),
    ],
)
def test_an_invoice_that_a_machine_tells_in_another_way(number, changes, may_be):
    """A number that a machine has changed on its way is not somebody else's for sure."""
    ours = msgspec.structs.replace(attempt(), number=number)
    assert resembles(ours, msgspec.structs.replace(OURS, **changes)) is may_be


def begun(*numbers):
    return [msgspec.structs.replace(attempt(), id=at, number=number) for at, number in enumerate(numbers, 1)]


def kinds(found):
    return [(attempt.number, type(verdict).__name__, getattr(verdict, "sent", None)) for attempt, verdict in found]


def test_of_several_begun_attempts_only_the_oldest_can_have_been_certified():
    """No 38h is sent before the outcome of the one before it is durable."""
    seen = state(12, 10, 1, OTHER)
    found = verdicts(begun("A", "B", "C"), LEDGER, seen, "new")
    assert kinds(found) == [("B", "NotCertified", False), ("C", "NotCertified", False), ("A", "Disputed", None)]
    assert verdicts([], LEDGER, seen, "new") == []


def test_in_a_ledger_that_was_put_back_each_may_have_been():
    """Whatever is certain is written first, and what moves the counters last."""
    seen = state(13, 11, 1, OURS)
    found = verdicts(begun("A", "FV-1", "C"), LEDGER, seen, "new", is_restored=True)
    assert kinds(found) == [("A", "Disputed", None), ("C", "Disputed", None), ("FV-1", "Certified", None)]


def test_one_certification_of_the_machine_is_that_of_one_attempt():
    """0.1.0 took two spellings of a number for two numbers: both attempts are like the machine's last invoice, and a person decides on the second."""
    found = verdicts(begun("FV-1", "fv-1"), LEDGER, state(11, 9, 1, OURS), "new", is_restored=True)
    assert kinds(found) == [("fv-1", "Disputed", None), ("FV-1", "Certified", None)]


def test_a_later_one_that_the_machine_has_certified_shows_an_older_ledger():
    """Those before it may have been certified too; those after it were not sent."""
    found = verdicts(begun("A", "FV-1", "C"), LEDGER, state(12, 10, 1, OURS), "new")
    assert kinds(found) == [("C", "NotCertified", False), ("A", "Disputed", None), ("FV-1", "Certified", None)]
    found = verdicts(begun("A", "FV-1"), LEDGER, state(10, 8, 1, OURS), "known")
    assert kinds(found) == [("A", "NotCertified", True), ("FV-1", "NotCertified", False)]


@pytest.mark.parametrize("tc", [10, 25])
def test_a_ledger_that_knows_the_machines_counters_is_not_behind(tc):
    """The machine's own daily reports move TC, and are explained."""
    assert behind(LEDGER, "FV-0", state(tc, 8, 1), "known") == ""
    assert behind(LEDGER, "FV-0", state(tc, 8, 1), "unrecorded") == ""


def test_a_machine_ahead_of_the_ledger_is_told_with_the_evidence():
    """A restored backup, or another program at the machine; one invoice is in the singular."""
    assert "has certified an invoice that" in behind(LEDGER, "FV-0", state(11, 9, 1, OURS), "new")
    reason = behind(LEDGER, "FV-0", state(14, 10, 2, OURS), "new")
    assert "has certified 3 invoices that" in reason
    for part in ("'FV-0'", "'FV-1'", "FVC 8", "FVC 10"):
        assert part in reason
    assert "none as the last invoice" in behind(FiscalCounters(0, 0, 0), "", state(14, 10, 2), "new")


def test_a_last_invoice_that_is_in_no_ledger_is_asked_about_whatever_the_machine_counts():
    """A machine may count exports in TC alone; a ledger of 0.1.0 that was put back does not know what it saw last."""
    assert "has certified an invoice that" in behind(LEDGER, "FV-0", state(11, 8, 1, OURS), "new")
    assert "has certified an invoice that" in behind(LEDGER, "FV-0", state(11, 8, 1), "unrecorded", is_restored=True)
    assert behind(LEDGER, "FV-0", state(10, 8, 1), "unrecorded", is_restored=True) == ""


def test_what_else_was_certified_beside_ours_is_asked_about():
    """Ours explains one; it is the last invoice, and in the ledger by then."""
    ours = attempt().invoice
    for is_restored in (False, True):
        assert behind(LEDGER, "FV-0", state(11, 9, 1, OURS), "new", ours=ours, is_restored=is_restored) == ""
    assert "has certified an invoice that" in behind(LEDGER, "FV-0", state(12, 10, 1, OURS), "new", ours=ours)
    more = state(12, 9, 1, OURS)
    assert behind(LEDGER, "FV-0", more, "new", ours=ours) == ""
    assert "has certified an invoice that" in behind(LEDGER, "FV-0", more, "new", ours=ours, is_restored=True)


@pytest.mark.parametrize("seen", [state(9, 8, 1), state(12, 7, 3), state(12, 9, 0, None)])
def test_counters_that_went_down_mean_another_machine(seen):
    """FiscalCounters never go down on one machine (protocol 3)."""
    assert "went down" in behind(LEDGER, "FV-0", seen, "known")


@pytest.mark.parametrize("seen", [state(14, 10, 0, None), state(14, 0, 2, None), state(14, 0, 0), state(14, 10, 2)])
def test_an_empty_ledger_lacks_what_its_machine_has_certified(seen):
    """A last invoice, sales or credit notes: each of them says so alone; daily reports of the machine's own do not."""
    assert "this ledger is empty" in vanished(seen)
    assert vanished(state(14, 0, 0, None)) == ""


EXPORT = LastInvoice("FV-1", "NEWCODE", "20260105100001", "EV", 15000)


@pytest.mark.parametrize(
    ("kind", "moved", "base", "verdict"),
    [
        ("EV", 1, LEDGER, Certified("NEWCODE", "20260105100001", "00084440Y", FiscalCounters(11, 8, 1))),
        ("EV", 0, LEDGER, NotCertified()),
        ("EV", 2, LEDGER, Disputed),
        ("FV", 1, LEDGER, Disputed),
        ("FV", 0, FiscalCounters(9, 8, 0), Disputed),
        ("FV", 0, FiscalCounters(9, 8, 1), NotCertified()),
    ],
)
def test_counters_that_stood_still_beside_our_number(kind, moved, base, verdict):
    """Where nothing but the counters tells, an export that moved TC by one was certified (protocol 5.2); any other movement, and counters that were taken over,
    are for an operator."""
    ours = msgspec.structs.replace(attempt(base=base), type=kind)
    last = msgspec.structs.replace(EXPORT, type=kind)
    found = judge(ours, LEDGER, state(10 + moved, 8, 1, last), "unrecorded")
    assert found == verdict or type(found) is verdict
    for counters in ((11, 8, 2), (10, 9, 1)):
        assert isinstance(judge(ours, LEDGER, state(*counters, last), "unrecorded"), Disputed)


@pytest.mark.parametrize(("tc", "nim"), [(3, "EL02000015-2"), (10, "EL02000015-2"), (11, "")])
def test_an_invoice_of_a_machine_that_was_activated_meanwhile(tc, nim):
    """Its own word counts, whatever its counters; it is of the new activation where the machine has begun to count again."""
    seen = state(tc, 1, 0, OURS)
    found = judge(attempt(), LEDGER, seen, "new", activated="EL02000015-2")
    assert found == Certified("NEWCODE", "20260105100001", "00084440Y", seen.counters, nim)
    for last in ("new", "alike", "unrecorded", "none", "gone"):
        theirs = None if last in ("none", "gone") else OTHER
        for counters in ((tc, 1, 0), (10, 8, 1), (11, 9, 1)):
            other = judge(attempt(), LEDGER, state(*counters, theirs), last, activated="EL02000015-2")
            assert isinstance(other, Disputed)
    for last in (OURS, BEFORE):
        assert judge(attempt(), LEDGER, state(tc, 1, 0, last), "known", activated="EL02000015-2") == NotCertified()


@pytest.mark.parametrize(
    ("kind", "fvc", "frc", "may_be"),
    [
        ("FV", 1, 0, True), ("FV", 0, 0, False), ("FA", 0, 1, True), ("FA", 0, 0, False), ("FV", -1, 0, False), ("FV", 2, -1, True),
        ("EV", 0, 0, True), ("ET", 0, 0, True), ("EA", 0, 0, True), ("EV", 1, 0, True), ("EV", -1, 0, False), ("EV", 1, -1, True),
    ],
)  # fmt: skip
def test_what_38h_may_have_counted(kind, fvc, frc, may_be):
    """Something moved on, or nothing where some machines count in TC alone."""
    assert fc_moved(kind, LEDGER, FiscalCounters(11, 8 + fvc, 1 + frc)) is may_be


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
    assert foreign_count(ours.invoice, LEDGER, FiscalCounters(99, 8 + fvc, 1 + frc)) == others


@pytest.mark.parametrize(
    ("field", "value", "ours"),
    [
        ("number", "fv-1", True), ("number", "FV-2", False), ("total", 15_001, False), ("type", "FT", False), ("type", "FA", False),
        ("type", "FACTURE DE VENTE", True), ("type", "", True),
    ],
)  # fmt: skip
def test_whether_the_machine_s_last_invoice_is_ours(field, value, ours):
    """In capitals or not, in words of its own for the type; never with another type that we know, another number or another total."""
    assert is_last(attempt(), state(11, 9, 1, msgspec.structs.replace(OURS, **{field: value}))) is ours
    assert not is_last(attempt(), state(11, 9, 1, None))


def test_an_activation_since_the_copy_was_made_is_told_with_the_evidence():
    """What the copy knows, what the machine says, and its last invoice."""
    reason = activated_since(LEDGER, state(3, 2, 0, OURS), "new")
    for part in ("TC 10, FVC 8, FRC 1", "TC 3, FVC 2, FRC 0", "'FV-1' (FV, 15000 XOF)", "adopt"):
        assert part in reason
    assert "no last invoice" in activated_since(LEDGER, state(0, 0, 0, None), "gone")
    assert activated_since(LEDGER, state(10, 8, 1), "known") == ""
