import base64
import hashlib
import re

import pytest

from common.passwords import DUMMY_HASH, LONGEST, SHORTEST, fault_of_password, fits, hash_password, make_password
from daemon.core.people import fault_of_name


@pytest.mark.usefixtures("cheap_passwords")
def test_only_the_password_itself_fits():
    """Also with accents and at its full length; two hashes of one password differ."""
    password = "Wend-Kuuni été 2026 " * 9
    stored = hash_password(password)
    assert fits(password, stored)
    assert not fits(password[:-1], stored)
    assert not fits("", stored)
    assert stored != hash_password(password)


def test_the_hash_is_scrypt_as_others_compute_it():
    """The stored line is all that is needed: cost, salt and hash (RFC 7914, by hashlib alone)."""
    name, n, r, p, salt, derived = hash_password("correct horse").split("$")
    assert (name, int(n), int(r), int(p)) == ("scrypt", 2**14, 8, 5)
    assert (len(base64.b64decode(salt)), len(base64.b64decode(derived))) == (16, 32)
    again = hashlib.scrypt(
        b"correct horse", salt=base64.b64decode(salt), n=int(n), r=int(r), p=int(p), maxmem=2**26, dklen=32
    )
    assert base64.b64decode(derived) == again


def test_nobody_has_a_password():
    """What is tried for a name that is not there costs the same and never fits."""
    assert not fits("", DUMMY_HASH)
    assert DUMMY_HASH.split("$")[:4] == hash_password("x").split("$")[:4]


def test_a_password_that_the_box_makes_is_typed_from_a_screen():
    """Three groups of four characters that cannot be taken for another, never the same twice, and one that would be taken."""
    passwords = [make_password() for _ in range(50)]
    assert all(re.fullmatch(r"[a-hjkmnp-z2-9]{4}(-[a-hjkmnp-z2-9]{4}){2}", each) for each in passwords)
    assert len({*passwords}) == 50
    assert fault_of_password(passwords[0], "awa") is None


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        *((password, None) for password in ("mil et sorgho", "jihgfedcba"[:SHORTEST], "abcd" * (LONGEST // 4))),
        ("abcdabcdabcd", None),
        *((password, "10 to 200") for password in ("short", "abcdefghi"[: SHORTEST - 1])),
        *((password, "10 to 200") for password in ("x" * 201, "abcd" * (LONGEST // 4) + "a")),
        *((password, "guess") for password in ("aaaaaaaaaaaa", "121212121212", "abcabcabcabc")),
        *((password, "guess") for password in ("awa-boutique", "mil AWA sorgho")),
        *((password, "guess") for password in ("azertyuiop", "AZERTYUIOP", "1234567890")),
        *((password, None) for password in ("azerty et sorgho", "bonjour le mil", "2604718359")),
        ("with\ttab in it", "typed"),
    ],
)
def test_the_first_and_the_last_password_that_is_taken(password, expected):
    """Ten characters and two hundred, of four kinds, without the name in any case, all of which can be typed, and none that everybody tries
    first; one step beyond, none is."""
    fault = fault_of_password(password, "awa")
    assert expected in fault if expected else fault is None


def test_names():
    """What one can type on any keyboard; else the error says what a name has to be."""
    assert [fault_of_name(name) for name in ("awa", "a", "caisse-1", "a.b_c", "0x", "a" * 32)] == [None] * 6
    for name in ("", "Awa", "-awa", "a" * 33, "a b", "é", "a\n", "../x"):
        assert "has to be" in fault_of_name(name)


@pytest.mark.usefixtures("cheap_passwords")
def test_what_is_beyond_the_longest_does_not_fit_either():
    """A stranger's megabyte is cut before it costs anything, and is not taken for the password that it begins with."""
    assert not fits("x" * 201, hash_password("x" * 200))
    assert fits("x" * 202, hash_password("x" * 201))  # nobody has that one: it shows where it is cut
