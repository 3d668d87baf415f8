"""The certify answer."""

import re

import msgspec
import pytest
from support.core_samples import as_json, body, item, record

from daemon.core.invoice.invoice import Deferral, Warn
from daemon.core.machine.state import FiscalCounters
from daemon.core.report.receipt import adjustments, preview, receipt


def test_a_receipt_has_every_field_of_the_service():
    """The table of the service contract, and what decisions 4 and 10 and existing clients add."""
    sale = body(
        item(),
        item(taxGroup="A", amountTtc=500),
        item(name="Jus", amountTtc=100, specificTax="x"),
        psvbGroup="A",
    )
    assert as_json(receipt(record(sale))) == {
        "codeSecef": "TESTCODE1234567890ABCDEF",
        "invoiceNumber": "FV-1",
        "invoiceType": "FV",
        "totalTtc": 15600,
        "nim": "EL02000015-1",
        "nimShort": "EL02000015",
        "ifu": "00084440Y",
        "dateTime": "20260105100000",
        "qrContent": "BFSECEF01;EL02000015;TESTCODE1234567890ABCDEF;00084440Y;20260105100000",
        "taxDetails": [
            {"group": "A", "label": "A - TVA 0%", "ht": 500, "tva": 0, "ttc": 500},
            {"group": "B", "label": "B - TVA 18%", "ht": 12797, "tva": 2303, "ttc": 15100},
        ],
        "tc": 11,
        "fvc": 9,
        "frc": 1,
        "specificTax": 0,
        "psvb": {"group": "A", "base": 15600, "rate": 2, "amount": 312},
        "psvbByGroup": [{"group": "A", "base": 15600, "rate": 2, "amount": 312}],
        "stampDuty": 0,
        "warnings": [
            {
                "code": "SPECIFIC_TAX_FOLDED",
                "message": "the specific tax is folded into the price: unitPrice is not given",
                "item": 2,
            }
        ],
        "certifiedAt": "2026-01-05T10:00:00.123Z",
        "durationMs": 64,
    }


def test_a_preview_is_what_the_receipt_would_say():
    """Field by field where both have it, and that nothing was certified."""
    certified = record(body(item(), item(taxGroup="A", amountTtc=500, specificTax="x"), psvbGroup="A"))
    would_be, word = as_json(preview(certified.invoice)), as_json(receipt(certified))
    assert {name: word.get(name) for name in would_be} == would_be | {"dryRun": None}
    assert (would_be["dryRun"], would_be["totalTtc"], len(would_be)) == (True, 15500, 10)


@pytest.mark.parametrize("nim", ["", "EL02000015-1", "EL02000015-2", "EL02000099-1"])
def test_the_outage_of_another_machine_is_named(nim):
    """The machine itself has one name, whatever its activation; of an older ledger the outage has none."""
    certified = record()
    invoice = msgspec.structs.replace(certified.invoice, deferred=Deferral(0, "line_lost", 1, nim))
    word = receipt(msgspec.structs.replace(certified, invoice=invoice)).deferred
    assert (word.outage, word.outage_nim) == (1, nim if nim == "EL02000099-1" else msgspec.UNSET)


def test_a_warning_says_which_item_it_is_about():
    """The first one too, which is 0; one about the whole invoice says none. An unknown field of an old ledger is named: 0.1 kept the path in its words alone, and a retry after
    the upgrade gets the first answer again, byte for byte."""
    warnings = adjustments([Warn("ROUNDED", "so", 0), Warn("ROUNDED", "so", 1), Warn("CODE_NOT_TOLD", "so")])
    assert [each.item for each in warnings] == [0, 1, None]
    words = "items[0].prix: is not a known field; did you mean items[0].unitPrice?"
    more = "there are more fields that are not known"
    found = adjustments([Warn("UNKNOWN_FIELD", words, 0), Warn("UNKNOWN_FIELD", more)])
    assert [each.field for each in found] == ["items[0].prix", ""]
    first, second = (msgspec.json.encode(receipt(record())) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("rate", "expected"), [(1800, 18.0), (1750, 17.5), (25, 0.25), (0, 0.0)])
def test_existing_clients_read_the_rate_from_the_label(rate, expected):
    """The published client looks for a number before a percent sign."""
    sale = record(body(item(taxRate=None)))
    line = msgspec.structs.replace(sale.invoice.taxes[0], rate=rate)
    sale = msgspec.structs.replace(sale, invoice=msgspec.structs.replace(sale.invoice, taxes=(line,)))
    label = receipt(sale).tax_details[0].label
    assert float(re.search(r"(\d+(?:[.,]\d+)?)\s*%", label)[1]) == expected


@pytest.mark.parametrize(
    ("state", "counters"), [("begun", None), ("certified", None), ("disputed", FiscalCounters(11, 9, 1))]
)
def test_only_what_is_certified_has_a_receipt(state, counters):
    """With its counters. Asking otherwise is a mistake of the caller."""
    with pytest.raises(ValueError, match=state):
        receipt(record(state=state, counters=counters))
