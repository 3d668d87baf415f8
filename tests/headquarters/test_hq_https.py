"""`POST /closures` of a real headquarters: what is taken, what is refused and how, and what strangers can do."""

import base64
import contextlib
import hashlib
import json
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import msgspec
import pytest
from support.hq.paper_box import PaperBox
from support.hq.running import RunningHq
from support.hq.store import presence_word
from support.receivers.vectors import event_of
from support.shop import PLAIN

from common.wire.closure import Trial, TrialData, encode_trial
from common.wire.keys import PrivateKey, signing_key
from common.wire.signing import is_receipt, sign
from headquarters.store.store import HqStore


@pytest.fixture(scope="module")
def hq(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hq")
    hq = RunningHq(directory, f"sqlite:///{directory}/hq.sqlite3")
    hq.start()
    hq.reader = hq.key("reader")
    hq.store = HqStore(hq.url)
    hq.store.register.revision()  # opens its connection here, not in the first test
    yield hq
    hq.store.close()
    assert hq.stop() == 0


@pytest.fixture
def box(hq, request):
    """Another shop for each test."""
    number = int(hashlib.sha256(request.node.name.encode()).hexdigest()[:6], 16)
    box = PaperBox(f"EL{number:08}-1")
    hq.store.register.add(box.nim, box.key.public, now=1)
    return box


def stored_z(hq, box):
    return [row["z_number"] for row in hq.get(f"/v1/closures?nim={box.nim}", hq.reader).json()["closures"]]


def found(hq, box):
    rows = hq.get(f"/v1/findings?open=true&nim={box.nim}", hq.reader).json()["findings"]
    return sorted((row["kind"], row["nim"], row["detail"]) for row in rows)


def test_taken_once_with_a_receipt(hq, box):
    """200 when it is new, 409 when it is known, both with a receipt of exactly these bytes."""
    sent = box.sent(box.close())
    first, second = hq.post("/closures", sent), hq.post("/closures", sent)
    assert (first.status_code, second.status_code) == (200, 409)
    for answer in (first, second):
        assert is_receipt(answer.content, sent[0]["webhook-id"], sent[1])
    assert stored_z(hq, box) == [1]


def test_a_trial_is_answered_and_never_kept(hq, box):
    """`mcfd upstream test`: 200 with a receipt when a key of that machine has signed it, 401 otherwise; no closure, no finding."""
    trial = Trial(id="t-1", source=f"/mcf/{box.nim}", time="2026-01-05T10:00:00.000Z", data=TrialData(box.nim))
    body = encode_trial(trial)
    headers = sign([box.key], trial.id, int(time.time()), body)
    answer = hq.post("/closures", (headers, body))
    assert answer.status_code == 200
    assert is_receipt(answer.content, trial.id, body)
    forged = sign([PrivateKey(os.urandom(32))], trial.id, int(time.time()), body)
    assert hq.post("/closures", (forged, body)).status_code == 401
    assert stored_z(hq, box) == []
    assert found(hq, box) == []


def test_shared_secret(hq, box, tmp_path):
    """A box with a shared secret, added from a file, signs v1."""
    line = "whsec_" + base64.b64encode(os.urandom(32)).decode()
    (tmp_path / "secret").write_text(line + "\n")
    hq.cli("boxes", "add", box.nim, "--secret-file", str(tmp_path / "secret"))
    assert hq.post("/closures", box.sent(box.close(), key=signing_key(line))).status_code == 200


def changed(change):
    """What a box sends, with that done to its headers or body."""
    return lambda box: change(*box.sent(box.close()))


def signed(body, id_="x"):
    """Anything, by the box's own key."""
    return lambda box: (sign([box.key], id_, int(time.time()), body), body)


ATTACKS = {
    "by another key": (lambda box: box.sent(box.close(), key=PrivateKey(os.urandom(32))), 401),
    "unsigned": (changed(lambda headers, body: ({"webhook-id": headers["webhook-id"]}, body)), 401),
    "of another NIM": (lambda box: box.sent(PaperBox("EL99999999-1").close(key_id=box.key.id)), 401),
    "altered": (
        changed(lambda headers, body: (headers, body.replace(b'"total_ttc":16000', b'"total_ttc":16001', 1))),
        400,
    ),
    "of another id": (lambda box: signed(event_of(box.close()), "another")(box), 400),
    "no JSON": (signed(b"\xff{"), 400),
    "nested": (signed(b"[" * 100_000), 400),
    "oversized": (signed(b'{"a":"' + b"x" * 140_000 + b'"}'), 413),
    "old": (lambda box: box.sent(box.close(), now=int(time.time()) - 3600), 425),
}


@pytest.mark.parametrize(("attack", "status"), ATTACKS.values(), ids=ATTACKS)
def test_refused(hq, box, attack, status):
    """Nothing of it is in the table, it is counted with its reason, and the answer is the one that a box understands."""
    before = hq.store.evidence.counted("2020-01-01")
    answer = hq.post("/closures", attack(box))
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert stored_z(hq, box) == []
    assert hq.get("/v1/closures?nim=EL99999999-1", hq.reader).json() == {"closures": []}
    assert hq.store.evidence.counted("2020-01-01") != before


def test_a_stranger_commands_no_terminal(hq, box):
    """Escape sequences in what was refused are spelt out where it is shown at the command line."""
    headers, body = box.sent(box.close())
    event = json.loads(body)
    event["data"]["created_at"] = "\x1b]0;gone\x07\x1b[2J"
    assert hq.post("/closures", (headers, json.dumps(event).encode())).status_code == 400
    result = hq.cli("refused")
    assert r"\x1b[2J" in result
    assert "\x1b" not in result


def test_a_thief_who_was_first(hq, box):
    """His Z is withdrawn with the key, the shop's own is asked for and taken; a moment or key that is none changes nothing."""
    assert hq.post("/closures", box.sent(box.close())).status_code == 200
    stolen_at = datetime.now(UTC).isoformat()
    thief = PaperBox(box.nim, box.key, seed="thief")
    thief.closures, thief.ledger = list(box.closures), box.ledger
    assert hq.post("/closures", thief.sent(thief.close(50))).status_code == 200
    true = box.close()
    assert hq.post("/closures", box.sent(true)).status_code == 422
    stolen, box.key = box.key, PrivateKey(os.urandom(32))
    hq.cli("boxes", "add", box.nim, "--public-key", box.key.public)
    for wrong in ((stolen.id, "--stolen-since", "yesterday"), ("0" * 16, "--stolen-since", stolen_at)):
        assert hq.tried("boxes", "revoke", box.nim, *wrong).returncode == 2
    assert hq.cli("boxes", "revoke", box.nim, stolen.id) == ""
    assert hq.post("/closures", thief.sent(thief.close())).status_code == 401
    assert hq.cli("boxes", "revoke", box.nim, stolen.id, "--stolen-since", stolen_at) == "1"
    answer = hq.post("/presence", box.sent_presence(box.presence()))
    assert answer.json()["replay"] == [{"mode": "live", "from_z": 2, "to_z": 2}]
    assert hq.post("/closures", box.sent(true)).status_code == 200
    assert (stored_z(hq, box), found(hq, box)) == ([1, 2], [])


def test_many_at_once(hq, box):
    """Forty closures of one shop on sixteen connections, each twice: all of them once, in order."""
    sent = [box.sent(box.close()) for _ in range(40)] * 2
    with ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(lambda one: hq.post("/closures", one).status_code, sent))
    assert sorted(statuses) == [200] * 40 + [409] * 40
    assert (stored_z(hq, box), found(hq, box)) == (list(range(1, 41)), [])


def test_a_body_without_end(hq):
    """A body that goes on for ever is answered and cut, not read."""
    host, port = hq.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"POST /closures HTTP/1.1\r\nHost: hq\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # cut while it is still being sent
            for _ in range(8):
                connection.sendall(chunk)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_box_that_lost_its_last_z_hears_it(hq, box):
    """Z 1 to 3 were received, Z 5 was announced: a box without any, or with a question, gets 5, also the second time; one with its own gets nothing."""
    for closure in [box.close() for _ in range(3)]:
        hq.post("/closures", box.sent(closure))
    now = time.time_ns() // 1_000_000
    answer = hq.post("/presence", box.sent_presence(box.presence(at=now - 3000, z=5, waiting=2)))
    assert "last_z" not in answer.json()
    for at, changes in ((now - 2000, {"z": 0}), (now - 1000, {"z": 2, "asks": True}), (now, {"z": 0})):
        lost = box.presence(at=at, ledger="3f2b7c1e-0000-4000-8000-000000000001", seq=0, **changes)
        assert hq.post("/presence", box.sent_presence(lost)).json()["last_z"] == 5
    assert "last_z" not in hq.post("/presence", box.sent_presence(box.presence(at=now + 1000, z=6))).json()


def test_the_answer_with_a_last_z_also_requests_what_is_missing(hq, box):
    """Nothing has arrived of a box that stated Z 3; after its restore it asks for that number: one answer has it and requests Z 1 to 3."""
    now = time.time_ns() // 1_000_000
    hq.store.presences.store([presence_word(box, box.presence(at=now - 7_200_000, z=3))], now=now - 7_200_000)
    answer = hq.post("/presence", box.sent_presence(box.presence(at=now, z=3, asks=True))).json()
    assert answer == {"replay": [{"mode": "live", "from_z": 1, "to_z": 3}], "last_z": 3}


@pytest.mark.parametrize("change", [{"nim": "EL00000001-1"}, {"at": "never"}, {"z_head": "\0"}, {"head": "abc"}])
def test_presence_refused(hq, box, change):
    """A presence of somebody else, or none at all."""
    presence = msgspec.structs.replace(box.presence(), **change)
    assert hq.post("/presence", box.sent_presence(presence)).status_code in (400, 401)


def test_who_may_ask(hq):
    """No key and a wrong one: 401; a reader may not solve. A value that is none is named (decision 11)."""
    assert httpx.get(f"{hq.base}/v1/closures", trust_env=False, timeout=60, verify=PLAIN).status_code == 401
    assert hq.get("/v1/findings", "hq_wrong").status_code == 401
    headers = {"Authorization": f"Bearer {hq.reader}"}
    assert (
        httpx.post(
            f"{hq.base}/v1/findings/1/solve", headers=headers, json={}, trust_env=False, timeout=60, verify=PLAIN
        ).status_code
        == 403
    )
    for field, query in (
        ("from", "closures?from=yesterday"),
        ("mode", "closures?mode=TEST"),
        ("open", "findings?open=1"),
    ):
        answer = hq.get(f"/v1/{query}", hq.reader)
        assert (answer.status_code, [fault["field"] for fault in answer.json()["errors"]]) == (422, [field])
    assert hq.get("/v1/closures?to=9999-12-31", hq.reader).status_code == 200


def test_a_key_that_is_revoked_in_a_running_headquarters(hq):
    """At once."""
    key = hq.key("reader")
    assert hq.get("/v1/findings", key).status_code == 200
    ids = [line.split("\t")[0] for line in hq.cli("keys", "list").splitlines()]
    assert hq.tried("keys", "revoke", hashlib.sha256(key.encode()).hexdigest()[:12]).returncode == 0
    assert hq.get("/v1/findings", key).status_code == 401
    assert ids


def test_a_box_with_a_new_ledger(hq, box):
    """Its Z 1 is a fork until an administrator accepts the ledger at the command line of the running headquarters."""
    assert hq.post("/closures", box.sent(box.close())).status_code == 200
    new = PaperBox(box.nim, key=box.key, seed=f"{box.nim} after the loss")
    first = new.sent(new.close(5))
    refused = hq.post("/closures", first)
    assert (refused.status_code, refused.json()["code"]) == (422, "FORK")
    assert hq.post("/presence", new.sent_presence(new.presence())).status_code == 200
    assert {kind for kind, *_ in found(hq, box)} == {"fork"}
    assert hq.tried("boxes", "accept", "EL99999999-1").returncode == 2
    assert hq.cli("boxes", "accept", box.nim) == new.ledger
    assert hq.post("/closures", first).status_code == 200
    assert stored_z(hq, box) == [1, 1]
    assert found(hq, box) == []
