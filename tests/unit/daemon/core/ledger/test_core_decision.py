"""What an operator may decide (`mcfd machine settle`, the page): nothing is entered that the machine did not say."""

import msgspec
import pytest
from support.core_samples import book_state, record

from daemon.core.ledger.attempt import NOT_STATED
from daemon.core.ledger.decision import Case, adoption
from daemon.core.ledger.paper import PaperInvoice
from daemon.core.ledger.verdict import Disputed, Evidence, NotCertified
from daemon.core.machine.state import Certified, FiscalCounters, LastInvoice, MachineState

LEDGER = FiscalCounters(10, 8, 1)
OURS = LastInvoice("FV-1", "NEWCODE", "20260105100001", "FV", 15000)
OTHER = LastInvoice("FV-0", "OLDCODE", "20260105095959", "FV", 700)
NOW = FiscalCounters(12, 10, 1)
BOOK = book_state(counters=LEDGER, last_number="FV-0", ifu="00084440Y", attention="odd")


def case(last, *, doubt=True):
    attempt = record(state="disputed", counters=None, code="", base=LEDGER) if doubt else None
    evidence = None
    if last != "unknown":
        evidence = Evidence(1, MachineState("EL02000015-1", "00084440Y", "20260105100005", NOW, {}, last))
    return of(BOOK, attempt, evidence)


def of(book, attempt, evidence):
    """A machine that is neither replaced nor awaited, and whose last invoice is not of this ledger."""
    return Case(book, attempt, evidence, "new", 0, is_replaced=False, is_awaited=False)


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
    """A number that the machine certified is never set free, and a code is only taken from the invoice itself. Without a doubt the machine is taken over: only that, and only when it is
    known what it says. An invoice that the ledger has, under another number, is not this one: this one may be set free, and gets no code from it."""
    assert case(last).obstacle(decision) == obstacle
    assert case(last, doubt=False).choices == ("adopt",)
    assert case(last, doubt=False).obstacle("adopt") == ("machine unknown" if last == "unknown" else None)
    stranger = msgspec.structs.replace(doubtful(OURS), last="known")
    assert [stranger.obstacle(each) for each in ("not-certified", "certified")] == [None, "not its last"]


@pytest.mark.parametrize(
    ("doubt", "attention", "awaited", "choices"),
    [
        (True, "odd", True, ("certified", "not-certified", "lost")),
        (False, "odd", True, ("adopt", "lost")),
        (True, "", True, ("lost",)),
        (True, "odd", False, ("certified", "not-certified")),
        (False, "", False, ("adopt",)),
    ],
)
def test_a_machine_that_its_pair_waits_for_may_be_lost_too(doubt, attention, awaited, choices):
    """As long as it has not answered; beside what else is in question, or alone."""
    one = case("unknown", doubt=doubt)
    state = msgspec.structs.replace(one.state, attention=attention)
    assert msgspec.structs.replace(one, state=state, is_awaited=awaited).choices == choices


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
    state = MachineState(nim, "00084440Y", "20260105100005", FiscalCounters(tc, 1, 0), {}, OURS)
    for counters, expected in ((LEDGER, NAMES[nim, tc]), (None, "")):
        found = of(msgspec.structs.replace(BOOK, counters=counters), None, Evidence(1, state)).certified()
        assert found.nim == expected


@pytest.mark.parametrize(
    ("counters", "others"),
    [(None, 0), (FiscalCounters(10, 9, 0), 2), (FiscalCounters(10, 12, 1), 0)],
)
def test_what_is_in_no_total_is_counted_from_what_the_ledger_knows(counters, others):
    """Sales and credit notes together; a machine that counts anew has none that could be told."""
    doubt = case(OTHER)
    assert of(msgspec.structs.replace(BOOK, counters=counters), None, doubt.evidence).foreign() == others


PAPER = PaperInvoice("7Q2MK4ZPABCDEFGHIJKLMN27", "20260105100001")


def doubtful(last, **changes):
    """With clocks that agree, and a stranger's invoice behind ours."""
    before = case(last)
    attempt = msgspec.structs.replace(before.attempt, begun_at=1_767_607_200_000)
    evidence = msgspec.structs.replace(before.evidence, at=1_767_607_205_000) if before.evidence else None
    return msgspec.structs.replace(before, attempt=attempt, evidence=evidence, **changes)


@pytest.mark.parametrize(
    ("what", "last", "paper", "is_taken", "obstacle"),
    [
        ("its own", OTHER, PAPER, False, None),
        ("a machine that is not there", "unknown", PAPER, False, None),
        ("one that the ledger has", OTHER, PAPER, True, "code of another"),
        ("that of the last invoice", OTHER, PaperInvoice("OLDCODE", PAPER.time), False, "code of another"),
        ("another than the machine tells of it", OURS, PAPER, False, "code of another"),
        ("what the machine tells of it", OURS, PaperInvoice("NEWCODE", PAPER.time), False, None),
        ("what it does not tell", msgspec.structs.replace(OURS, code=""), PAPER, False, None),
        ("another day", OTHER, PaperInvoice(PAPER.code, "20260108100001"), False, "time not plausible"),
        ("counters to come", OTHER, PaperInvoice(PAPER.code, PAPER.time, (9, 99)), False, "counters not plausible"),
        ("another day, confirmed", OTHER, PaperInvoice(PAPER.code, "20260108100001", None, True), False, None),
        ("counters to come, confirmed", OTHER, PaperInvoice(PAPER.code, PAPER.time, (9, 99), True), False, None),
        ("another's code, confirmed", OTHER, PaperInvoice("OLDCODE", PAPER.time, None, True), False, "code of another"),
    ],
)
def test_what_stands_on_paper_has_to_be_this_invoice_s(what, last, paper, is_taken, obstacle):
    """Checked against ledger, machine and clocks."""
    assert doubtful(last).obstacle("certified", paper, is_taken=is_taken) == obstacle, what


def test_paper_belongs_to_certified_alone():
    """Another decision with a code is a mistake of the person who typed it."""
    assert doubtful(OTHER).obstacle("not-certified", PAPER) == "paper not needed"
    assert case(OTHER, doubt=False).obstacle("adopt", PAPER) == "paper not needed"
    assert case(OTHER, doubt=False).obstacle("certified", PAPER) == "does not fit"


def entered(doubt, paper):
    return doubt.after(paper, doubt.attempt, doubt.certified(paper).counters)


def test_what_is_entered_from_paper_moves_what_is_known_by_that_one():
    """What came after it is still to be taken over, and counted as somebody else's. Where the counters were taken over with it before, what was taken for somebody else's is not any more:
    it comes off those that nobody explains."""
    doubt = doubtful(OTHER)
    word = doubt.certified(PAPER)
    assert word == Certified(PAPER.code, PAPER.time, "00084440Y", FiscalCounters(11, 9, 1), fc=NOT_STATED)
    after = entered(doubt, PAPER)
    assert (after.state.counters, after.state.seen.last.code, after.others) == (word.counters, PAPER.code, 0)
    later = entered(doubt, PaperInvoice(PAPER.code, PAPER.time, (10, 12)))
    assert (later.state.counters, later.others) == (FiscalCounters(12, 10, 1), 1)
    taken = doubtful(OTHER, state=msgspec.structs.replace(BOOK, counters=NOW))
    assert taken.certified(PAPER).counters == FiscalCounters(11, 9, 1)
    assert (entered(taken, PAPER).state.counters, entered(taken, PAPER).others) == (NOW, -1)


BEFORE, SINCE = FiscalCounters(8, 8, 0), FiscalCounters(2, 2, 0)


@pytest.mark.parametrize(
    ("printed", "expected", "others"),
    [(at, FiscalCounters(*at, 0), others) for at, others in (((1, 1), -1), ((2, 2), -1), ((9, 9), 0))],
)
def test_paper_of_another_activation_is_entered_as_it_is_printed(printed, expected, others):
    """Begun before the activation, and certified after it or before it: the counters of then and of now bound nothing. What is known of the machine
    stays, and nobody else's invoice is taken for this one."""
    doubt = doubtful(OTHER, state=msgspec.structs.replace(BOOK, counters=SINCE))
    now = msgspec.structs.replace(doubt.evidence.state, counters=SINCE)
    attempt = msgspec.structs.replace(doubt.attempt, base=BEFORE)
    doubt = msgspec.structs.replace(doubt, attempt=attempt, evidence=Evidence(doubt.evidence.at, now))
    paper = PaperInvoice(PAPER.code, PAPER.time, printed)
    assert doubt.obstacle("certified", PAPER) == "counters needed"
    assert doubt.obstacle("certified", msgspec.structs.replace(PAPER, as_printed=True)) == "counters needed"
    assert doubt.obstacle("certified", paper) == "counters not plausible"
    confirmed = msgspec.structs.replace(paper, as_printed=True)
    assert doubt.obstacle("certified", confirmed) is None
    assert doubt.certified(confirmed).counters == expected
    assert (entered(doubt, confirmed).state, entered(doubt, confirmed).others) == (doubt.state, others)


@pytest.mark.parametrize("nim", ["EL02000015-1", "EL02000015-2"])
def test_a_machine_that_counts_anew_bounds_no_paper(nim):
    """What it counts now is of another time."""
    doubt = doubtful(OTHER)
    state = msgspec.structs.replace(doubt.evidence.state, nim=nim, counters=FiscalCounters(1, 1, 0))
    doubt = msgspec.structs.replace(doubt, evidence=msgspec.structs.replace(doubt.evidence, state=state))
    assert doubt.certified(PAPER).counters == FiscalCounters(11, 9, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"state": msgspec.structs.replace(BOOK, attention="something else")},
        {"state": msgspec.structs.replace(BOOK, counters=FiscalCounters(12, 9, 1))},
        {"attempt": None},
        {"decided": 1},
        {"evidence": Evidence(2_000_000_000_000, case(OURS).evidence.state)},
    ],
)
def test_a_case_is_another_when_anything_that_was_shown_is(changes):
    """What is found, what is known, which attempt, what was decided meanwhile, what the machine says."""
    earlier = doubtful(OTHER)
    now = msgspec.structs.replace(earlier, **changes)
    assert not earlier.is_still(now)
    assert earlier.fingerprint != now.fingerprint


def test_a_fresh_look_at_the_machine_makes_no_other_case():
    """A person who looked at the machine has seen more than the ledger has; its clock goes on."""
    earlier = doubtful(OTHER)
    later = msgspec.structs.replace(earlier.evidence.state, time="20260105100009")
    assert earlier.is_still(msgspec.structs.replace(earlier, evidence=Evidence(2_000_000_000_000, later)))
    assert earlier.is_still(msgspec.structs.replace(earlier, evidence=None))
    assert earlier.is_still(msgspec.structs.replace(earlier, evidence=case(OURS).evidence))


def adopted(last, *begun, standing="new", number=False, code=False, restored=True, nim="EL02000015-1"):
    state = msgspec.structs.replace(BOOK, is_restored=restored)
    machine = MachineState(nim, "00084440Y", "20260105100005", NOW, {}, last)
    return adoption(state, machine, standing, list(begun), is_number_taken=number, in_ledger=code, unexplained=2)


def test_adopt_settles_what_is_begun_by_what_was_known_before():
    """Ours that is the last is certified, and no stranger's; ours that may have been is for an operator; a number or code that is there is not entered again."""
    ours = record(state="begun", counters=None, code="", base=LEDGER)
    plan = adopted(OURS, ours, number=True)
    ((_, verdict),) = plan.settled
    assert (verdict.code, plan.enters, plan.unexplained) == ("NEWCODE", False, 1)
    ((_, verdict),) = adopted(OTHER, ours).settled
    assert isinstance(verdict, Disputed)
    ((_, verdict),) = adopted(OTHER, ours, nim="EL02000015-2").settled
    assert isinstance(verdict, Disputed)
    ((_, verdict),) = adopted(OTHER, ours, nim="EL02000015-2", standing="known").settled
    assert verdict == NotCertified()
    assert adopted(OTHER, ours, restored=False).settled == ()  # it was not sent, and may be going on
    assert adopted(OTHER).enters
    assert not adopted(OTHER, number=True).enters
    assert not adopted(OTHER, code=True).enters
    assert not adopted(None, standing="none").enters
