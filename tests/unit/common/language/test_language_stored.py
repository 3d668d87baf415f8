"""Sentences that the ledger keeps in English are told in French again, with their values."""

import pytest
from support.ledgers.ledger import invoice

from common.language.stored import retold, stored
from daemon.core.errors import without_paths
from daemon.core.ledger.attempt import NOT_SENT, Record
from daemon.core.ledger.verdict import Disputed, activated_since, behind, judge, vanished
from daemon.core.machine.state import FiscalCounters, LastInvoice, MachineState

KNOWN = FiscalCounters(10, 8, 1)
NOW = FiscalCounters(13, 10, 1)


def machine(counters=NOW, last="F-9"):
    found = LastInvoice(last, "C" * 24, "20261120101530", "FV", 15_000) if last else None
    return MachineState("EL02000015-1", "00084440Y", "20261120101530", counters, {"B": 1800}, found)


def test_what_attention_says_is_french():
    """Each sentence with counters, numbers and totals; nothing of the English is left, and nothing of the values is lost."""
    for found in (
        behind(KNOWN, "F-7", machine(), "new"),
        behind(KNOWN, "F-7", machine(KNOWN), "new"),
        behind(NOW, "", machine(KNOWN, ""), "none"),
        vanished(machine()),
        activated_since(KNOWN, machine(), "new"),
    ):
        told = retold(str(found), "fr")
        assert "machine dit" in told, told
        for english in ("the ", " says ", "last invoice", "none", " as "):
            assert english not in told
    told = retold(str(behind(KNOWN, "F-7", machine(), "new")), "fr")
    for value in (
        "TC 10, FVC 8, FRC 1",
        "'F-7'",
        "TC 13, FVC 10, FRC 1",
        "'F-9' (FV, 15000 XOF)",
        "certifié 2 factures",
    ):
        assert value in told


def test_a_disputed_attempt_too(samples_record):
    """With the incident that the recorder kept."""
    verdict = judge(samples_record, KNOWN, machine(last="X-1"), "new")
    assert isinstance(verdict, Disputed)
    told = stored(f"{verdict.found} (recording: incident 20261120-1)").told("fr")
    assert told.startswith("on ne sait pas ce qu'est devenue la facture 'F-9' (FV, 15000 XOF)")
    assert told.endswith("(enregistrement\N{NO-BREAK SPACE}: incident 20261120-1)")


@pytest.fixture
def samples_record():
    sale = invoice("F-9")
    return Record(id=1, number="F-9", type="FV", state="begun", begun_at=0, base=KNOWN, total_ttc=15_000, invoice=sale)


@pytest.mark.parametrize(
    ("english", "french"),
    [
        (NOT_SENT, "non envoyée"),
        ("the machine did not certify it", "la machine ne l'a pas certifiée"),
        (
            "items[0].prix: is not a known field; did you mean items[0].unitPrice?",
            "peut-être items[0].unitPrice",
        ),
        ("the specific tax is folded into the price: unitPrice is not given", "unitPrice n'est pas donné"),
    ],
)
def test_reasons_and_warnings(english, french):
    """What an attempt ended with, and what a receipt warns of; in English it stays as it is."""
    assert french in retold(english, "fr")
    assert retold(english, "en") == english


def test_what_the_bridge_says_of_a_line_is_known():
    """Also as a version before 0.3 has stored it, and without the path."""
    told = retold("/dev/mcf-1: there is no such device (unplugged?)", "fr")
    gone = "cet appareil n'est pas là (débranché\N{NO-BREAK SPACE}?)"
    assert told == f"/dev/mcf-1: {gone}"
    nameless = without_paths("/dev/mcf-1: there is no such device (unplugged?)")
    assert retold(nameless, "fr") == f"le port\N{NO-BREAK SPACE}: {gone}"
    assert without_paths(told, "fr") == f"le port: {gone}"


def test_what_is_not_ours_stays_as_it_is():
    """The machine's own words, names of people, and sentences that only look like ours."""
    for text in ("E:No amount!", "Awa Ouédraogo", "x: y", "", "the machine is a friend of mine"):
        assert retold(text, "fr") == text
