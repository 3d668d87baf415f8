"""What an operator types in from the machine's paper."""

import msgspec
import pytest
from support.core_samples import credit_body, record

from daemon.core.ledger.paper import PaperInvoice, as_printed, is_plausible, on_paper, read_paper
from daemon.core.ledger.verdict import Evidence
from daemon.core.machine.state import FiscalCounters, MachineState

CODE = "7Q2MK4ZPABCDEFGHIJKLMN27"
BEFORE = FiscalCounters(10, 8, 1)
NOON = 1_767_614_400_000  # 5 January 2026, 12:00:00
HOUR = 3_600_000


def attempt(kind="FV", base=BEFORE):
    attempt = record(credit_body(), credit=True) if kind in ("FA", "EA") else record()
    return msgspec.structs.replace(attempt, type=kind, state="disputed", base=base, begun_at=NOON)


@pytest.mark.parametrize("code", [CODE, "7Q2M-K4ZP-ABCD-EFGH-IJKL-MN27", "7q2m k4zp abcd efgh ijkl mn27"])
@pytest.mark.parametrize(
    "time",
    ["20260105120001", "2026-01-05 12:00:01", "2026-01-05T12:00:01", " 05/01/2026 12:00:01 ", "05-01-2026 12:00:01"],
)
def test_paper_is_read_as_people_type_it(code, time):
    """In groups or not, the date as it is printed."""
    assert read_paper(code, time) == (PaperInvoice(CODE, "20260105120001"), [])
    confirmed = PaperInvoice(CODE, "20260105120001", as_printed=True)
    assert read_paper(code, time, as_printed=True) == (confirmed, [])
    for counters, read in ((" 291/409  FV", (291, 409)), ("1/1 FV", (1, 1)), ("291 / 409fv", (291, 409))):
        assert read_paper(code, time, counters) == (PaperInvoice(CODE, "20260105120001", read), [])


@pytest.mark.parametrize(
    ("code", "time", "counters", "fields"),
    [
        ("", "", "", []),
        (CODE[:-1], "20260105120001", "", ["code"]),
        (CODE, "", "", ["time"]),
        ("", "20260105120001", "", ["code"]),
        ("x", "31/02/2026 12:00:00", "291", ["code", "time", "counters"]),
        (CODE, "20260105120001", "291/409 FV FV", ["counters"]),
        (CODE, "20260105120001", "409/291", ["counters"]),
        (CODE, "20260105120001", "0/409", ["counters"]),
    ],
)
def test_paper_that_cannot_be_read_names_its_fields(code, time, counters, fields):
    """Nothing typed in is no paper."""
    paper, errors = read_paper(code, time, counters)
    assert (paper, [error.field for error in errors]) == (None, fields)


def evidence_at(at, machine_time):
    return Evidence(at, MachineState("EL02000015-1", "00084440Y", machine_time, BEFORE, {}, None))


@pytest.mark.parametrize(
    ("time", "evidence", "may_be"),
    [
        ("20260105120001", None, True),
        ("20260104120000", None, True),
        ("20260104115959", None, False),
        ("20260105120001", evidence_at(NOON + HOUR, "20260105130000"), True),
        ("20260104120000", evidence_at(NOON + HOUR, "20260105130000"), True),
        ("20260106130000", evidence_at(NOON + HOUR, "20260105130000"), True),
        ("20260106130001", evidence_at(NOON + HOUR, "20260105130000"), False),
        ("20360105120001", evidence_at(NOON + HOUR, "20360105130000"), True),  # the machine is ten years ahead
        ("20360105120001", evidence_at(NOON + HOUR, "20260105130000"), False),
        ("20160105120001", evidence_at(NOON + HOUR, "20160105130000"), True),
        ("20260105120001", evidence_at(NOON + HOUR, "20160105130000"), True),  # its clock was set since
        ("20260105120001", evidence_at(NOON + HOUR, "rubbish"), True),
    ],
)
def test_a_time_lies_between_the_intent_and_the_evidence(time, evidence, may_be):
    """By the machine's own clock, as far as that is off, or by the box's."""
    assert is_plausible(time, NOON, evidence) is may_be


@pytest.mark.parametrize(
    ("kind", "before", "now", "printed", "expected"),
    [
        ("FV", BEFORE, FiscalCounters(12, 10, 1), None, FiscalCounters(11, 9, 1)),
        ("FA", BEFORE, FiscalCounters(12, 9, 2), None, FiscalCounters(11, 8, 2)),
        ("EV", BEFORE, FiscalCounters(12, 8, 1), None, FiscalCounters(11, 8, 1)),
        ("EV", BEFORE, FiscalCounters(12, 10, 1), None, FiscalCounters(11, 9, 1)),
        ("FV", BEFORE, None, None, FiscalCounters(11, 9, 1)),
        ("FV", BEFORE, FiscalCounters(10, 8, 1), None, None),  # the machine has counted nothing since the intent
        ("FV", FiscalCounters(12, 10, 1), FiscalCounters(12, 10, 1), None, FiscalCounters(11, 9, 1)),
        ("FV", BEFORE, FiscalCounters(14, 12, 1), (10, 12), FiscalCounters(12, 10, 1)),
        ("FA", BEFORE, FiscalCounters(14, 9, 4), (3, 13), FiscalCounters(13, 8, 3)),
        ("FV", BEFORE, FiscalCounters(14, 12, 1), (3, 12), FiscalCounters(12, 10, 1)),  # FV counted by itself
        ("FV", FiscalCounters(12, 9, 2), FiscalCounters(14, 11, 2), (10, 13), FiscalCounters(13, 10, 2)),
        (
            "FV",
            FiscalCounters(12, 9, 2),
            FiscalCounters(12, 9, 2),
            (9, 11),
            FiscalCounters(11, 9, 1),
        ),  # before what is known
        ("FV", FiscalCounters(12, 9, 2), FiscalCounters(14, 11, 2), (9, 12), FiscalCounters(12, 9, 1)),
        ("FV", BEFORE, None, (9, 11), FiscalCounters(11, 9, 1)),
        ("FV", BEFORE, None, (3, 12), FiscalCounters(12, 9, 1)),
        ("FV", BEFORE, FiscalCounters(12, 9, 1), (99, 11), FiscalCounters(11, 9, 1)),
        ("FA", BEFORE, FiscalCounters(18, 14, 2), (2, 16), FiscalCounters(16, 12, 2)),  # sales between, not printed
        ("FV", BEFORE, FiscalCounters(18, 10, 7), (9, 16), FiscalCounters(16, 9, 5)),
        ("FV", BEFORE, FiscalCounters(14, 12, 1), (10, 15), None),
        ("FV", BEFORE, FiscalCounters(14, 12, 1), (10, 10), None),
    ],
)
def test_the_counters_of_an_invoice_that_is_not_the_last_any_more(kind, before, now, printed, expected):
    """Those that are printed, else the next after those known, as far as the machine has counted. Where they fit nothing, those that are printed; the other one, which the paper does not
    tell, as far as there is room for it."""
    assert on_paper(PaperInvoice(CODE, "20260105120001", printed), attempt(kind), before, now) == expected
    for type_, typed, counters in (
        ("FV", (7, 9), FiscalCounters(9, 7, 1)),
        ("FV", (9, 9), FiscalCounters(9, 9, 0)),
        ("FA", (1, 12), FiscalCounters(12, 8, 1)),
        ("FA", (1, 3), FiscalCounters(3, 2, 1)),
        ("FV", None, None),
    ):
        assert as_printed(PaperInvoice(CODE, "20260105120001", typed), attempt(type_)) == counters
