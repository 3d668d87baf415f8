"""NATS credentials files."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from common.wire.keys import BadCredentials, encode_seed, read_credentials

# The example pair of the server's documentation.
SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


def test_a_published_pair(tmp_path):
    """The public half of a published seed comes out to the letter."""
    (tmp_path / "shop.nk").write_text(SEED + "\n")
    credentials = read_credentials(tmp_path / "shop.nk", "nats")
    assert (credentials.public, credentials.jwt) == (PUBLIC, "")


def test_a_creds_file(tmp_path):
    """A file as `nsc` writes it gives the JWT, and signs what the server asks to sign."""
    key = Ed25519PrivateKey.generate()
    (tmp_path / "shop.creds").write_text(
        "-----BEGIN NATS USER JWT-----\neyJ0.eyJq.c2ln\n------END NATS USER JWT------\n\n"
        "************************* IMPORTANT *************************\n"
        "NKEY Seed printed below can be used to sign and prove identity.\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{encode_seed(key.private_bytes_raw())}\n------END USER NKEY SEED------\n"
    )
    credentials = read_credentials(tmp_path / "shop.creds", "nats")
    assert credentials.jwt == "eyJ0.eyJq.c2ln"
    key.public_key().verify(base64.b64decode(credentials.sign("nonce")), b"nonce")


@pytest.mark.parametrize(
    "content",
    [
        *("", "hunter2", SEED[:-1], SEED[:-1] + "A", SEED.replace("SUA", "SAA"), SEED.lower(), PUBLIC),
        *("S" * 58, "SU======", "SUé"),
    ],
)
def test_damaged_credentials_are_named_but_not_shown(tmp_path, content):
    """The error names the file and shows nothing of what is in it."""
    path = tmp_path / "shop.creds"
    path.write_text(content)
    with pytest.raises(BadCredentials) as caught:
        read_credentials(path, "nats")
    assert str(path) in str(caught.value)
    assert not content or content not in str(caught.value)
    assert caught.value.__cause__ is None
