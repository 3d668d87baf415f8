"""The event: CloudEvents 1.0, as docs/closure-event.schema.json says."""

from __future__ import annotations

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
VALIDATOR = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)


def test_envelope():
    """id, source, type, subject and time are what a headquarters routes and deduplicates by."""
    entry = make_outgoing(z_number=7)
    event = json.loads(compose(entry, "caisse-1"))
    data = event.pop("data")
    assert event == {
        "specversion": "1.0",
        "id": entry.report_id,
        "source": "/mcf/EL02000015-1",
        "type": "bf.mcfd.closure.v1",
        "subject": "7",
        "time": data["created_at"],
        "datacontenttype": "application/json",
    }


def test_data_is_the_report_and_three_more():
    """`data` is the Z report as the till got it, with the mode, the box and the chain beside it."""
    entry = make_outgoing()
    data = json.loads(compose(entry, "caisse-1"))["data"]
    assert data == {**json.loads(entry.body), "mode": "live", "box": "caisse-1", "chain_head": entry.chain.hex()}


def test_a_closure_proves_what_it_follows():
    """Its ledger, the closure before it, its own numbers and the counters at its beginning, and the very bytes that were hashed."""
    gaps = (Gap(4, 5, "headquarters"),)
    proof = Proof("0a1b", 2, 6, 9, "5e6f", b"\xab" * 32, (12, 10, 2), gaps)
    entry = msgspec.structs.replace(make_outgoing(), proof=proof)
    data = json.loads(compose(entry, "caisse-1"))["data"]
    visible = {
        "ledger_id": "0a1b",
        "epoch": 2,
        "previous_report_id": "5e6f",
        "previous_chain_head": "ab" * 32,
        "first_seq": 6,
        "last_seq": 9,
        "opening_counters": {"tc": 12, "fvc": 10, "frc": 2},
        "gaps": [{"first": 4, "last": 5, "known_from": "headquarters"}],
        "body": entry.body.decode(),
    }
    assert data == {**json.loads(compose(make_outgoing(), "caisse-1"))["data"], **visible}
    first = msgspec.structs.replace(entry, proof=Proof("0a1b", 2, 1, 9, None, b"", None))
    content = json.loads(compose(first, "caisse-1"))["data"]
    assert (content["previous_report_id"], content["previous_chain_head"], content["opening_counters"]) == (
        None,
        "",
        None,
    )
    assert content["gaps"] == []


def test_what_is_not_known_is_left_out():
    """The key that signs where none is named, the head of a chain where there is none; without a label the box is its machine."""
    plain = msgspec.structs.replace(make_outgoing(), chain=b"")
    assert json.loads(compose(plain))["data"] == {**json.loads(plain.body), "mode": "live", "box": "EL02000015-1"}
    assert json.loads(compose(plain, key_id="k7"))["data"]["key_id"] == "k7"


@pytest.mark.parametrize("mode", ["live", "test"])
def test_it_fits_the_schema(mode):
    """Live or sandbox, with the chain or without, an event fits the schema."""
    entry = make_outgoing(mode=mode)
    VALIDATOR.validate(json.loads(compose(entry, "")))
    VALIDATOR.validate(json.loads(compose(msgspec.structs.replace(entry, chain=b""), "caisse-1")))


def test_the_sandbox_has_a_type_of_its_own():
    """Nobody who asks for closures by type gets one of the sandbox."""
    assert json.loads(compose(make_outgoing(mode="test"), ""))["type"] == "bf.mcfd.closure.test.v1"


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{", b"{}", b'{"created_at":""}', b"\xff", b'{"created_at":"x"'])
def test_a_damaged_report(body):
    """What cannot be read as a report is a ValueError, whatever it is."""
    with pytest.raises(ValueError, match="stored report"):
        compose(msgspec.structs.replace(make_outgoing(), body=body), "caisse-1")
