"""Signatures at a rotation, at another time, and damaged in every way."""

import base64
import sys

import pytest

from common.wire.keys import BadKey, PrivateKey, SharedKey, signing_key, verifying_key
from common.wire.signing import MAX_SIGNATURES, NotSigned, WrongTime, sign, verify

NOW = 1_765_000_000
BODY = b'{"z":1}'
OLD_SEED = b"\1" * 32
OLD, NEW, STRANGER = (PrivateKey(bytes([n]) * 32) for n in (1, 2, 3))
SECRET = SharedKey(b"s" * 24)


def public(key: PrivateKey):
    return verifying_key(key.public)


@pytest.mark.parametrize("signers", [[OLD, NEW], [NEW, OLD], [STRANGER, SECRET, NEW], [NEW]])
def test_any_of_several_signatures(signers):
    """The signature that the receiver knows is found wherever it stands; one that holds two keys says which it was."""
    headers = sign(signers, "id", NOW, BODY)
    assert verify([public(NEW)], headers, BODY, now=NOW).id == NEW.id
    for key in (OLD, NEW, SECRET):
        headers = sign([key], "id", NOW, BODY)
        assert verify([public(OLD), SECRET, public(NEW)], headers, BODY, now=NOW).id == key.id


@pytest.mark.parametrize("content", [b"", BODY, b"x" * 100_000])
def test_a_headquarters_without_openssl(content, monkeypatch):
    """Its package has libsodium alone: the same public half and the same signature; a seed of another length is no key."""
    keys = [PrivateKey(OLD_SEED)]
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
        keys.append(PrivateKey(OLD_SEED))
        with pytest.raises(ValueError, match=r"seed|32"):
            PrivateKey(OLD_SEED[1:])
    assert {(key.public, key.id, key.sign(content)) for key in keys} == {(OLD.public, OLD.id, OLD.sign(content))}


@pytest.mark.parametrize("off", [-86_400, -301, 301, 10**9])
def test_another_time(off):
    """A good signature of another time differs from a bad one, with how far off it is; a receiver may take any time."""
    headers = sign([NEW], "id", NOW + off, BODY)
    with pytest.raises(WrongTime) as caught:
        verify([public(NEW)], headers, BODY, now=NOW)
    assert caught.value.off == off
    assert verify([public(NEW)], headers, BODY, now=NOW, window=None).id == NEW.id


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook-id", "other"),
        *(("webhook-timestamp", text) for text in (str(NOW + 1), "-1", "²", "", "9" * 5000)),
        *(("webhook-signature", text) for text in ("", "v1a", "v1a,", "v1a,Zm9v", "v1a,é", "v1,é", "v2,Zm9v , ,")),
        *((name, None) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")),
    ],
)
def test_damaged(name, value):
    """Whatever is wrong in a header, it is not signed; nothing else is raised. Without one of the three nothing is verified, and the error names it."""
    headers = sign([NEW, SECRET], "id", NOW, BODY) | {name: value}
    if value is None:
        del headers[name]
    with pytest.raises(NotSigned, match=name if value is None else None):
        verify([public(NEW), SECRET], headers, BODY, now=NOW)


def test_a_flood_of_signatures():
    """A header of a hundred thousand signatures costs no more than a few."""
    good = sign([NEW], "id", NOW, BODY)
    flood = " ".join(["v1a," + "A" * 86 + "=="] * 100_000)
    tried = []

    class Counting:
        id = ""

        def verifies(self, signature, content):  # noqa: ARG002  # as the protocol has it
            tried.append(signature)
            return False

    with pytest.raises(NotSigned):
        verify([Counting()], good | {"webhook-signature": flood}, BODY, now=NOW)
    assert len(tried) == MAX_SIGNATURES


def secret(size):
    return "whsec_" + base64.b64encode(b"x" * size).decode()


@pytest.mark.parametrize("size", [1, 16, 23, 65])
def test_a_short_secret(size):
    """A secret of one byte is no secret: 24 to 64 bytes, as Standard Webhooks asks; the secret is not shown."""
    for parse in (signing_key, verifying_key):
        with pytest.raises(BadKey, match="24 to 64") as caught:
            parse(secret(size))
        assert "eHh4" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    ["", "x", "whpk_", "whpk_Zm9v", "whpk_*", "whsec_", "whsec_*", "U", "UA", "SU", "U" + "A" * 55, OLD.public[:-4]],
)
def test_no_key(line):
    """What is no key for verifying has an error of its own, and nothing else is raised."""
    with pytest.raises(BadKey):
        verifying_key(line)
    for size in (24, 64):
        assert signing_key(secret(size)).id == verifying_key(secret(size)).id
