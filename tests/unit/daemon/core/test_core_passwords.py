import base64
import hashlib

import pytest

from daemon.core.passwords import NOBODY, fault_of_name, fault_of_password, fits, hash_password


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
    assert (name, int(n) * int(r) * int(p) >= 2**14 * 8 * 5) == ("scrypt", True)
    again = hashlib.scrypt(
        b"correct horse", salt=base64.b64decode(salt), n=int(n), r=int(r), p=int(p), maxmem=2**26, dklen=32
    )
    assert base64.b64decode(derived) == again


def test_nobody_has_a_password():
    """What is tried for a name that is not there costs the same and never fits."""
    assert not fits("", NOBODY)
    assert NOBODY.split("$")[:4] == hash_password("x").split("$")[:4]


@pytest.mark.parametrize("name", ["awa", "a", "caisse-1", "a.b_c", "0x", "a" * 32])
def test_names(name):
    """What one can type on any keyboard."""
    assert fault_of_name(name) is None


@pytest.mark.parametrize("name", ["", "Awa", "-awa", "a" * 33, "a b", "é", "a\n", "../x"])
def test_names_that_are_none(name):
    """Each is told what a name has to be."""
    assert "has to be" in fault_of_name(name)


@pytest.mark.parametrize(
    ("password", "said"),
    [
        ("short", "10 to 200"),
        ("x" * 201, "10 to 200"),
        ("aaaaaaaaaaaa", "guess"),
        ("121212121212", "guess"),
        ("awa-boutique", "guess"),
        ("with\ttab in it", "typed"),
    ],
)
def test_passwords_that_are_none(password, said):
    """Too short, too long, of three letters, with the name in it, with what cannot be typed."""
    assert said in fault_of_password(password, "awa")
    assert fault_of_password("mil et sorgho", "awa") is None
