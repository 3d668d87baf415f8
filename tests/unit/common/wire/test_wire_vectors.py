"""The published vectors, checked by others: openssl, the reference library of Standard Webhooks, MessagePack written by hand."""

import base64
import hashlib
import json
import struct
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
from support.receivers.vectors import FILE, text

from common.wire.closure import proves_itself, read_closure
from common.wire.errors import BadEvent
from common.wire.keys import verifying_key
from common.wire.presence import MAX_BYTES, read_presence
from common.wire.signing import NotSigned, verify

PUBLISHED = json.loads(FILE.read_text())
KEYS = {key["name"]: key for key in PUBLISHED["keys"]}
SENT = [*PUBLISHED["good"], *PUBLISHED["forks"]]
SIGNED = [vector for vector in SENT + PUBLISHED["wrong"] if vector.get("fails") != "signature"]
SPKI = bytes.fromhex("302a300506032b6570032100")  # what stands before an Ed25519 key in DER (RFC 8410)
NAME = "name"


def named(vectors):
    return pytest.mark.parametrize("vector", vectors, ids=lambda vector: vector[NAME])


def signed_content(vector):
    headers = vector["headers"]
    return f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{vector['content']}".encode()


def openssl_takes(tmp_path: Path, public: str, signature: str, content: bytes) -> bool:
    (tmp_path / "key.der").write_bytes(SPKI + base64.b64decode(public.removeprefix("whpk_")))
    (tmp_path / "signature").write_bytes(base64.b64decode(signature))
    (tmp_path / "content").write_bytes(content)
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key.der", "-rawin"]
    command += ["-in", "content", "-sigfile", "signature"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0


def openssl_hmac(secret: str, content: bytes) -> str:
    raw = base64.b64decode(secret.removeprefix("whsec_")).hex()
    command = ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", f"hexkey:{raw}", "-binary"]
    return base64.b64encode(subprocess.run(command, input=content, capture_output=True, check=True).stdout).decode()


def packed(value) -> bytes:
    """MessagePack, as its page says, for what a closure's list holds."""
    if isinstance(value, bool | float):
        raise TypeError(value)
    if isinstance(value, int):
        return packed_int(value)
    if isinstance(value, str):
        raw = value.encode()
        return (bytes([0xA0 | len(raw)]) if len(raw) < 32 else bytes([0xD9, len(raw)])) + raw
    if isinstance(value, bytes):
        head = bytes([0xC4, len(value)]) if len(value) < 256 else b"\xc5" + struct.pack(">H", len(value))
        return head + value
    assert len(value) < 16
    return bytes([0x90 | len(value)]) + b"".join(packed(item) for item in value)


def packed_int(value: int) -> bytes:
    if value < 0:
        forms = ((-32, "b", b""), (-(2**7), "b", b"\xd0"), (-(2**15), ">h", b"\xd1"), (-(2**31), ">i", b"\xd2"))
        form, mark = next((f, m) for least, f, m in (*forms, (-(2**63), ">q", b"\xd3")) if value >= least)
    else:
        forms = ((2**7, "B", b""), (2**8, "B", b"\xcc"), (2**16, ">H", b"\xcd"), (2**32, ">I", b"\xce"))
        form, mark = next((f, m) for limit, f, m in (*forms, (2**64, ">Q", b"\xcf")) if value < limit)
    return mark + struct.pack(form, value)


def millis(instant: str) -> int:
    return round(datetime.fromisoformat(instant).timestamp() * 1000)


def head_by_hand(data: dict) -> str:
    """As docs/upstream.md says it."""
    counters = data["mcf_counters"]
    content = [
        "closure",
        *(data["z_number"], data["report_id"]),
        *(millis(data[name]) for name in ("period_start", "period_end", "created_at")),
        *(data["certs_count"], data["total_ttc"]),
        [counters["tc"], counters["fvc"], counters["frc"]],
        *(data["unexplained"], data["first_seq"], data["last_seq"]),
        data["body"].encode(),
    ]
    # 13 in the list, as 0x9d
    return hashlib.sha256(bytes.fromhex(data["chain_previous"]) + packed(content)).hexdigest()


def test_what_is_published_is_what_is_sent():
    """The file is what `common.wire` makes today; `python -m support.receivers.vectors` writes it anew after a change that is meant."""
    assert FILE.read_text() == text()


@named(SIGNED)
def test_signatures_by_openssl(tmp_path, vector):
    """openssl accepts each signature with the public key published for it, and not for another byte."""
    content = signed_content(vector)
    signatures = vector["headers"]["webhook-signature"].split()
    assert len(signatures) == len(vector["signed_by"])
    for name, signature in zip(vector["signed_by"], signatures, strict=True):
        version, _, value = signature.partition(",")
        key = KEYS[name]["verifies"]
        if version == "v1":
            assert value == openssl_hmac(key, content)
        else:
            assert openssl_takes(tmp_path, key, value, content)
            assert not openssl_takes(tmp_path, key, value, content + b" ")


@named(SENT)
def test_ours_agrees(vector):
    """Chain heads come out of MessagePack by hand, and what openssl finds good ours does: signature, shape, proof and key id."""
    data = json.loads(vector["content"])["data"]
    assert head_by_hand(data) == data["chain_head"]
    for figure in ("total_ttc", "certs_count", "last_seq", "unexplained"):
        assert head_by_hand(data | {figure: data[figure] + 1}) != data["chain_head"]
    body = vector["content"].encode()
    for name in vector["signed_by"]:
        keys = [verifying_key(KEYS["thief"]["verifies"]), verifying_key(KEYS[name]["verifies"])]
        assert verify(keys, vector["headers"], body, now=PUBLISHED["now"]).id == KEYS[name]["id"]
    event = read_closure(body)
    assert proves_itself(event.data)
    assert event.data.key_id == KEYS[vector["signed_by"][0]]["id"]
    assert all(verifying_key(key["verifies"]).id == key["id"] for name, key in KEYS.items() if name != "thief")


@named(PUBLISHED["wrong"])
def test_the_wrong_ones_fail(vector):
    """Each wrong one fails where the file says it does, with the keys of the shop."""
    keys = [verifying_key(KEYS[name]["verifies"]) for name in ("shop", "shop-new")]
    body = vector["content"].encode()
    if vector["fails"] == "signature":
        with pytest.raises(NotSigned):
            verify(keys, vector["headers"], body, now=PUBLISHED["now"])
        return
    verify(keys, vector["headers"], body, now=PUBLISHED["now"])
    if vector["fails"] == "body":
        with pytest.raises(BadEvent, match=r"data\.total_ttc"):
            read_closure(body)
    else:
        assert vector["fails"] == "chain"
        assert not proves_itself(read_closure(body).data)


def test_presence(tmp_path):
    """A presence is under 500 bytes, signed as openssl has it, and says no amount and no customer."""
    vector = PUBLISHED["presence"]
    body = vector["content"].encode()
    assert len(body) < MAX_BYTES
    signature = vector["headers"]["webhook-signature"].removeprefix("v1a,")
    assert openssl_takes(tmp_path, KEYS["shop-new"]["verifies"], signature, signed_content(vector))
    assert read_presence(body).z == 3
    assert not [name for name in json.loads(body) if "total" in name or "name" in name or "amount" in name]
