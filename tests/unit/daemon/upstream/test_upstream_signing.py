"""Signatures that the reference library accepts, and keys that never show themselves."""

import base64
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from standardwebhooks import Webhook, WebhookVerificationError

from common.wire.keys import PrivateKey
from common.wire.signing import sign
from daemon.upstream.options import WRITTEN, BadOptions, generate, parse_key, read_keys, signing_time

BODY = '{"total":"16 000 F É"}'.encode()
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105  # the published example of the specification


def verify_v1a(public, headers, body):
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public.removeprefix("whpk_")))
    version, _, signature = headers["webhook-signature"].partition(",")
    assert version == "v1a"
    key.verify(base64.b64decode(signature), content)


def test_v1_by_the_reference_library():
    """The reference library verifies a shared secret's signature, and refuses it for any other body; the specification's own example comes out to the letter."""
    headers = sign([parse_key(SECRET, "here")], "msg_1", int(time.time()), BODY)
    Webhook(SECRET).verify(BODY, headers, json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(BODY + b" ", headers, json_parse=False)
    published = sign([parse_key(SECRET, "")], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert published["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_private_keys_of_32_and_64_bytes():
    """Seed alone, or seed and public key as other tools write it: the same key."""
    key = Ed25519PrivateKey.generate()
    seed = key.private_bytes_raw()
    both = seed + key.public_key().public_bytes_raw()
    keys = [parse_key("whsk_" + base64.b64encode(raw).decode(), "here") for raw in (seed, both)]
    assert isinstance(keys[0], PrivateKey)
    assert keys[0].public == keys[1].public


def test_two_keys_while_one_is_replaced(tmp_path):
    """Two lines, or two files, sign both; the reference library finds the one it knows."""
    old, new = (tmp_path / name for name in ("old", "new"))
    old.write_text(f"{SECRET}\nwhsec_{base64.b64encode(b'x' * 24).decode()}\n")
    public = generate(new)
    headers = sign(read_keys([old, new]), "msg_1", int(time.time()), BODY)
    signatures = headers["webhook-signature"].split(" ")
    assert [s.partition(",")[0] for s in signatures] == ["v1", "v1", "v1a"]
    Webhook(SECRET).verify(BODY, headers, json_parse=False)
    verify_v1a(public, headers | {"webhook-signature": signatures[2]}, BODY)


@pytest.mark.usefixtures("in_english")
@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "there is no such file"),
        ("", "empty"),
        ("\n", "empty"),
        ("hunter2secret", "neither whsec_… nor whsk_…"),
        ("whpk_aHVudGVyMnNlY3JldA==", "neither whsec_… nor whsk_…"),
        ("whsec_", "damaged"),
        ("whsec_hunter2secret*", "damaged"),
        ("whsk_aHVudGVyMnNlY3JldA==", "damaged"),
        ("whsec_aHVudGVyMnNlY3JldA==", "has 24 to 64 bytes, this one 13"),
        ("whsec_aA==", "has 24 to 64 bytes, this one 1"),
        (f"{SECRET}\nhunter2secret", "neither"),
        ("wh\xe9", "not text"),
    ],
)
def test_a_damaged_key_is_named_but_not_shown(tmp_path, content, complaint):
    """The error names the file and what is wrong, and shows nothing of what is in it."""
    path = tmp_path / "upstream.secret"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    with pytest.raises(BadOptions, match=complaint) as caught:
        read_keys([path])
    assert str(path) in str(caught.value)
    assert not any(secret in str(caught.value) for secret in ("hunter2", "aHVudGVy"))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("now", "since", "signed"),
    [
        (1_790_000_000.9, 1_765_000_000_000, 1_790_000_000),
        (1_790_000_000.0, 1_900_000_000_000, 1_790_000_000),
        (7.0, 1_765_000_000_000, 1_765_000_000),
        (7.0, 0, WRITTEN),
        (WRITTEN, (WRITTEN + 9) * 1000, WRITTEN),
        (WRITTEN - 0.1, (WRITTEN + 9) * 1000, WRITTEN + 9),
    ],
)
def test_the_time_of_a_signature(now, since, signed):
    """The clock's; that of the event when the clock has lost the date. An event from a day when the clock was ahead is signed now."""
    assert signing_time(now, since) == signed


def test_keys_do_not_show_in_a_repr():
    """A key in a log line or traceback is an address, no secret: neither as bytes nor in hex, base64 or numbers."""
    shared, private = base64.b64decode(SECRET.removeprefix("whsec_")), b"hunter2!" * 4
    for key, secret in ((parse_key(SECRET, "here"), shared), (PrivateKey(private), private)):
        result = f"{key!r} {key} {[key]}"
        numbers = str(list(secret[:6]))[1:-1]
        for form in (repr(secret[:6])[2:-1], secret[:6].hex(), base64.b64encode(secret[:6]).decode(), numbers):
            assert form not in result
