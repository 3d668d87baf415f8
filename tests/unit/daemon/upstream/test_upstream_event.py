"""The event: CloudEvents 1.0, as docs/closure-event.schema.json says."""

import json
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator
from support.ledgers.outbox import make_outgoing

from daemon.core.delivery import Proof
from daemon.core.ledger.entries import Gap
from daemon.upstream.options import compose

SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "closure-event.schema.json").read_text())
LEDGER, BEFORE = "6f0d7f0e-3f0e-4a5e-9d59-0d6b6c6c7a11", "6f0d7f0e-3f0e-4a5e-9d59-0d6b6c6c7a12"
VALIDATOR = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)


def data_of(entry, *labels, **more):
    event = json.loads(compose(entry, *labels, **more))
    VALIDATOR.validate(event)
    return event["data"]


@pytest.mark.parametrize(("mode", "kind"), [("live", "bf.mcfd.closure.v1"), ("test", "bf.mcfd.closure.test.v1")])
def test_envelope(mode, kind):
    """What a headquarters routes and deduplicates by, the sandbox by another type; `data` is the report with mode, box and chain."""
    entry = msgspec.structs.replace(make_outgoing(z_number=7, mode=mode), nim="EL02000015-2")
    event = json.loads(compose(entry, "caisse-1"))
    VALIDATOR.validate(event)
    report = json.loads(entry.body)
    assert event == {
        "specversion": "1.0",
        "id": entry.report_id,
        "source": "/mcf/EL02000015-1",
        "type": kind,
        "subject": "7",
        "time": report["created_at"],
        "datacontenttype": "application/json",
        "data": {**report, "mode": mode, "box": "caisse-1", "chain_head": entry.chain.hex()},
    }
    plain = msgspec.structs.replace(entry, chain=b"")  # without a chain, and without a label: the box is its machine
    assert data_of(plain) == {**report, "mode": mode, "box": "EL02000015-1"}
    assert data_of(plain, key_id="k7")["key_id"] == "k7"


def test_a_closure_proves_what_it_follows():
    """Its ledger, the closure before it, its own numbers and the counters at its beginning, and the very bytes that were hashed."""
    proof = Proof(LEDGER, 2, 6, 9, BEFORE, b"\xab" * 32, (12, 10, 2), (Gap(4, 5, "headquarters"),))
    entry = msgspec.structs.replace(make_outgoing(), proof=proof)
    visible = {
        "ledger_id": LEDGER,
        "epoch": 2,
        "previous_report_id": BEFORE,
        "previous_chain_head": "ab" * 32,
        "first_seq": 6,
        "last_seq": 9,
        "opening_counters": {"tc": 12, "fvc": 10, "frc": 2},
        "gaps": [{"first": 4, "last": 5, "known_from": "headquarters"}],
        "body": entry.body.decode(),
    }
    assert data_of(entry, "caisse-1") == {**data_of(make_outgoing(), "caisse-1"), **visible}
    first = msgspec.structs.replace(entry, proof=Proof(LEDGER, 2, 1, 9, None, b"", None))
    nothing = {"previous_report_id": None, "previous_chain_head": "", "opening_counters": None, "gaps": []}
    assert json.loads(compose(first))["data"].items() >= nothing.items()


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{", b"{}", b'{"created_at":""}', b"\xff", b'{"created_at":"x"'])
def test_a_damaged_report(body):
    """What cannot be read as a report is a ValueError, whatever it is."""
    with pytest.raises(ValueError, match="stored report"):
        compose(msgspec.structs.replace(make_outgoing(), body=body), "caisse-1")
