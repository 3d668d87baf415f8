"""The hash chain of a book."""

import hashlib

import msgspec
import pytest
from support.core_samples import AT, body, closure, item, record

from daemon.core.ledger.attempt import Record
from daemon.core.ledger.book import Closure
from daemon.core.ledger.chain import GENESIS, closure_hash, record_hash
from daemon.core.machine.state import FiscalCounters

RECORD_CHANGES = {
    "id": 2,
    "number": "FV-2",
    "type": "FT",
    "state": "refused",
    "begun_at": AT,
    "base": FiscalCounters(10, 8, 2),
    "total_ttc": 14999,
    "seq": 2,
    "ended_at": AT + 1,
    "code": "X",
    "machine_time": "20260105100001",
    "ifu": "00084441Y",
    "counters": None,
    "reason": "other",
    "line_ms": 60,
    "duration_ms": 65,
    "request_id": "req-2",
    "fc": 9,
}
CLOSURE_CHANGES = {
    "z_number": 4,
    "report_id": "another",
    "period_start": AT,
    "period_end": AT + 1,
    "created_at": AT + 1,
    "certs_count": 3,
    "total_ttc": 1,
    "counters": FiscalCounters(13, 10, 1),
    "unexplained": 1,
    "first_seq": 4,
    "last_seq": 7,
    "body": b"{ }",
}


def stored(one):
    return msgspec.msgpack.encode(one.invoice)


def hash_of(one, previous=GENESIS):
    return record_hash(previous, one, stored(one))


def test_a_link_is_sha256_over_the_one_before_and_the_content():
    """32 bytes, the same each time, and another one after another head."""
    assert hash_of(record()) == hash_of(record())
    assert len(hash_of(record())) == hashlib.sha256().digest_size == len(GENESIS)
    assert hash_of(record(), previous=b"\x01" * 32) != hash_of(record())


@pytest.mark.parametrize(
    ("is_closure", "field"),
    [*((False, field) for field in RECORD_CHANGES), *((True, field) for field in CLOSURE_CHANGES)],
)
def test_every_field_is_covered(is_closure, field):
    """Whatever is changed in the row of a record or a closure afterwards, the hash is another one; of the invoice, through the bytes it is stored as."""
    if is_closure:
        changed = msgspec.structs.replace(closure(), **{field: CLOSURE_CHANGES[field]})
        assert closure_hash(GENESIS, changed) != closure_hash(GENESIS, closure())
        return
    changed = msgspec.structs.replace(record(), **{field: RECORD_CHANGES[field]})
    assert hash_of(changed) != hash_of(record())
    assert hash_of(record(body(item(name="Riz 50kg")))) != hash_of(record())


def test_only_its_own_hash_is_left_out():
    """A field added to `Record` or `Closure` has to be covered too, or be named here; the chained times are those that were chained, where they were repaired since; `nim` comes
    from the chained entry of the next activation."""
    assert set(Record.__struct_fields__) == {*RECORD_CHANGES, "invoice", "hash", "chained_at", "nim"}
    assert hash_of(record(hash=b"x")) == hash_of(record())
    assert set(Closure.__struct_fields__) == {*CLOSURE_CHANGES, "hash", "chained_at", "chained_start"}
    assert closure_hash(GENESIS, closure(hash=b"x")) == closure_hash(GENESIS, closure())


def test_the_canonical_bytes_do_not_change_between_versions():
    """A ledger of today verifies in ten years: this hash is written down once and for all."""
    expected = "93c904a7aa122ce4024fcb17471130c68dab854ff20e175d75e394332c0bceb6"
    assert record_hash(GENESIS, record(), b"invoice").hex() == expected
