"""API keys (decision 22)."""

import hashlib
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.wire.keys import PRIVATE, PUBLIC, PrivateKey, decode, encode
from daemon.core import keys
from daemon.core.errors import InvalidRequest


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_generated_key_is_well_formed_and_tells_its_mode(mode):
    """`ak_<mode>_` + 32 random + 6 checksum characters, and `inspect` reads the mode back. Only a hash is kept, the same each time."""
    key = keys.generate(mode)
    assert key.startswith(f"ak_{mode}_")
    assert len(key) == len("ak_live_") + 38
    assert keys.inspect(key) == mode
    assert keys.hash_key(key) == keys.hash_key(key)
    assert len(keys.hash_key(key)) == 32
    assert key.encode() not in keys.hash_key(key)


def test_a_key_that_signs_is_a_private_one_of_which_the_ledger_has_the_public_half():
    """Found by the SHA-256 of that half, whose beginning is its id; a key that is sent has none."""
    text, found_by, public = keys.make_key("live", signed=True)
    pair = decode(text.removeprefix(PRIVATE))
    assert (pair[32:], PrivateKey(pair[:32]).public) == (public, PUBLIC + encode(public))
    assert found_by == hashlib.sha256(public).digest()
    assert keys.is_key_id(found_by.hex()[:16])
    assert not any(map(keys.is_key_id, (found_by.hex()[:15], found_by.hex()[:17], "g" * 16)))
    text, found_by, public = keys.make_key("live", signed=False)
    assert (keys.inspect(text), found_by, public) == ("live", keys.hash_key(text), b"")


def test_the_checksum_is_fixed():
    """Keys made by one version stay valid in the next: the checksum of a known text is a known text."""
    assert keys.checksum("ak_live_" + "0" * 32) == "4yZVzP"
    assert keys.checksum("") == "000000"


@pytest.mark.parametrize("at", range(46))
def test_one_mistyped_character_is_noticed(at):
    """Whatever single character is wrong, the key differs from a well-formed one."""
    key = keys.generate("live")
    for other in string.ascii_letters + string.digits + "_":
        if other != key[at]:
            assert keys.inspect(key[:at] + other + key[at + 1 :]) is None


@given(st.text())
@example("")
@example("ak_live_")
@example("Bearer x")
@example("ak_prod_" + "a" * 38)
@example("ak_live_" + "é" * 38)
@example(keys.generate("live") + "\n")
def test_any_text_can_be_inspected(text):
    """Nothing a client sends makes the inspection fail, and a text of another shape has no mode: the whole text has to match."""
    assert keys.inspect(text) is None


@pytest.mark.parametrize(
    ("terms", "fault"),
    [
        ({}, None),
        ({"lane": "relay", "rate": 6000, "signed": True}, None),
        ({"lane": "relay", "rate": 1}, None),
        ({"lane": "relay", "rate": 6001}, "rate: has to be a whole number from 0 to 6000"),
        ({"lane": "relay", "rate": -1}, "rate: has to be a whole number from 0 to 6000"),
        ({"rate": 1}, "rate: a key with a rate is for the relay"),
        ({"signed": True}, "signed: a key that signs is for the relay"),
        ({"lane": "relay", "role": "technician"}, "role: a key for the relay is one of"),
    ],
)
def test_the_terms_of_a_key(terms, fault):
    """Whoever makes one without saying more gets one that never ends, for the shop's network, sent with each request, with no limit; fields that
    mcfd does not know are taken."""
    found = keys.KeyTerms(**terms)
    if fault is None:
        keys.check_terms(found)
    else:
        with pytest.raises(InvalidRequest, match=fault):
            keys.check_terms(found)
    usual = ("lan", False, 0, False, 0)
    assert (keys.USUAL_TERMS.lane, *keys.USUAL_TERMS[4:], keys.USUAL_TERMS.strict, keys.USUAL_TERMS.expires_at) == usual
