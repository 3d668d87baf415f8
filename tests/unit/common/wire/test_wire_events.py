"""Reading what a stranger may have sent: a closure, a presence, an answer or nothing of the kind."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.receivers.vectors import closure, event_of, vectors

from common.wire.closure import MAX_BYTES, proves_itself, read_closure
from common.wire.errors import BadEvent
from common.wire.presence import PresenceAnswer, WantedClosures, read_answer, read_presence
from common.wire.signing import is_receipt, receipt_of

GOOD = event_of(closure("Z 1", entry="record 2"))
PRESENCE = vectors()["presence"]["content"].encode()


def changed(path: str, value) -> bytes:
    event = json.loads(GOOD)
    *parents, last = path.split(".")
    place = event
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return json.dumps(event, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("id", None, "`id`"),
        ("id", "0" * 8 + "-0000-0000-0000-" + "0" * 12, "^id:"),
        ("source", "/mcf/EL02000016-1", "^source:"),
        ("subject", "2", "^subject:"),
        ("type", "bf.mcfd.closure.test.v1", "^type:"),
        ("type", "bf.mcfd.closure.v2", "^type:"),
        ("time", "2025-12-06T18:00:01.000Z", "^time:"),
        ("data.nim", "EL02000016-1", "^source:"),
        ("data.nim", "../../etc", r"^data\.nim:"),
        ("data.z_number", "1", r"^data\.z_number:"),
        ("data.z_number", 2**70, r"^data\.z_number:"),
        ("data.total_ttc", 16000.5, r"^data\.total_ttc:"),
        ("data.total_ttc", 15000, r"^data\.total_ttc:"),
        ("data.by_group", "B", r"^data\.by_group:"),
        ("data.mcf_counters.fvc", -1, r"^data\.mcf_counters\.fvc:"),
        ("data.chain_head", "xyz", r"^data\.chain_head:"),
        ("data.previous_chain_head", "AB" * 32, r"^data\.previous_chain_head:"),
        ("data.mode", "demo", r"^data\.mode:"),
        ("data.body", "{", r"^data\.body:"),
        ("data.body", "[" * 100_000, r"^data\.body:"),
        ("data.body", "[]", r"^data\.body:"),
        ("data.ledger_id", "x", r"^data\.ledger_id:"),
    ],
)
def test_what_is_wrong_is_named(path, value, named):
    """One wrong field, and the error names it."""
    with pytest.raises(BadEvent, match=named):
        read_closure(changed(path, value))


def test_an_older_and_a_later_box():
    """Without the added fields it is read and does not prove itself; fields of a later version are ignored everywhere."""
    event = json.loads(GOOD)
    event["more"] = event["data"]["more"] = {"x": 1}
    body = json.loads(event["data"]["body"])
    event["data"]["body"] = json.dumps({**body, "later": [1]}, ensure_ascii=False)
    assert read_closure(json.dumps(event).encode()).data.z_number == 1
    for name in ("ledger_id", "epoch", "previous_report_id", "previous_chain_head", "first_seq", "last_seq"):
        del event["data"][name]
    for name in ("opening_counters", "body", "key_id"):
        del event["data"][name]
    read = read_closure(json.dumps(event).encode())
    assert (read.data.ledger_id, read.data.epoch, read.data.body) == ("", 0, "")
    assert not proves_itself(read.data)


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b'{"x":' * 20_000, b"\x80", b'"\xed\xa0\x80"', b'{"more":' + b"[" * 100_000]
)
def test_a_tower(content):
    """A tower of brackets, and bytes that are no text, are a BadEvent as everything else."""
    for read in (read_closure, read_presence):
        with pytest.raises(BadEvent):
            read(content)
    assert read_answer(content) == PresenceAnswer()


@given(st.data())
def test_a_damaged_event(data):
    """An event with a byte changed is read or a BadEvent, and never proves another figure."""
    at = data.draw(st.integers(0, len(GOOD) - 1))
    damaged = GOOD[:at] + data.draw(st.binary(min_size=1, max_size=1)) + GOOD[at + 1 :]
    try:
        event = read_closure(damaged)
    except BadEvent:
        return
    if proves_itself(event.data):
        assert event.data.total_ttc == 16000


def test_presence():
    """Too large, or at no time, it is none; a closure that is too large is not even parsed; the answer says what is missed."""
    assert read_presence(PRESENCE).counters == (14, 14, 0)
    for wrong in (PRESENCE + b" " * 200, PRESENCE.replace(b"2025-12-08T18", b"2025-13-08T18")):
        with pytest.raises(BadEvent):
            read_presence(wrong)
    with pytest.raises(BadEvent, match="larger than"):
        read_closure(GOOD + b" " * MAX_BYTES)
    content = b'{"replay":[{"mode":"live","from_z":42}],"more":1}'
    assert read_answer(content) == PresenceAnswer((WantedClosures(mode="live", from_z=42),))


@pytest.mark.parametrize(("name", "body", "holds"), [("a", b"body", True), ("b", b"body", False), ("a", b"x", False)])
def test_a_receipt(name, body, holds):
    """A receipt names the id and the bytes; of other bytes, or another id, it is none."""
    receipt = b'{"id":"a","sha256":"%s"}' % receipt_of("a", b"body").sha256.encode()
    assert is_receipt(receipt, name, body) is holds
