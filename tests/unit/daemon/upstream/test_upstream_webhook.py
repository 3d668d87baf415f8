"""A webhook is signed for both: the verifier of Standard Webhooks, and the one of the hosted service's client."""

import base64
import hashlib
import hmac
import time
from pathlib import Path

import pytest
from avepay.mcf.webhooks import Webhooks
from standardwebhooks import Webhook

from common.wire.signing import sign
from daemon.upstream.https import SIGNATURE, HttpsReceiver, open_webhook, standard_key
from daemon.upstream.options import BadOptions, Options

BODY = '{"type":"cert.issued","data":{"name":"Éts"}}'.encode()
STANDARD = "whsec_" + base64.b64encode(b"k" * 32).decode()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    return tmp_path / "till.secret"


def opened(secret: Path, content: bytes | None) -> HttpsReceiver:
    if content is not None:
        secret.write_bytes(content)
    return open_webhook(Options(url="https://till.example", key_files=(secret,)))


@pytest.mark.parametrize("text", [STANDARD, "a secret of the ERP's own: é"])
async def test_both_signatures_hold(secret: Path, text: str) -> None:
    """With the same secret, as it stands in the file, whichever of the two a receiver checks."""
    receiver = opened(secret, f"{text}\n".encode())
    try:
        header = receiver._beside(BODY)[SIGNATURE]
    finally:
        await receiver.aclose()
    assert header == "sha256=" + hmac.new(text.encode(), BODY, hashlib.sha256).hexdigest()
    assert Webhooks(text).verify(BODY, header).data == {"name": "Éts"}
    headers = sign([standard_key(text, secret)], "msg-1", int(time.time()), BODY)
    key = text if text.startswith("whsec_") else base64.b64encode(text.encode()).decode()
    Webhook(key).verify(BODY, headers)


@pytest.mark.parametrize(
    ("content", "english", "french"),
    [
        (b"", "one line", ": il faut une seule ligne"),
        (b"a\nb\n", "one line", ": il faut une seule ligne"),
        (b"\xff", "not text", ": ce n'est pas du texte"),
        (b"whsec_%%%", "damaged", ": illisible"),
        (None, "there is no such file", ": "),
        (b"%%%" * 5, "shorter than 16 bytes", ": moins de 16 octets, ce qui se devine"),
        ("é".encode() * 7, "shorter than 16 bytes", ": moins de 16 octets, ce qui se devine"),
    ],
)
def test_a_bad_secret_is_told_without_being_shown(
    secret: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, english: str, french: str
) -> None:
    """At the start, by the name of the file, in the terminal's language: a short secret of a client's own can be guessed."""
    for locale, expected in (("fr_FR.UTF-8", french), ("en_US.UTF-8", english)):
        monkeypatch.setenv("LC_ALL", locale)
        with pytest.raises(BadOptions, match=expected) as caught:
            opened(secret, content)
    assert str(secret) in str(caught.value)
    assert not any(part in str(caught.value) for part in ("%%%", "é"))
    assert standard_key("x" * 16, secret)
    assert standard_key("é" * 8, secret)


def test_a_webhook_is_never_plain_beyond_this_box(secret: Path) -> None:
    """What it tells is of customers."""
    secret.write_text(STANDARD)
    with pytest.raises(BadOptions, match="allow_plain_http"):
        open_webhook(Options(url="http://till.example", key_files=(secret,)))
