"""What is refused at the start, with the key named; and that nothing is imported before it is configured."""

from __future__ import annotations

import pytest
from support.receivers.authority import Authority

from common.wire.upstream_kinds import KINDS
from daemon.upstream.https import HttpsReceiver
from daemon.upstream.nats import NatsReceiver
from daemon.upstream.options import BadOptions, Options, generate, open_receiver


@pytest.fixture
def key(tmp_path):
    generate(tmp_path / "upstream.key")
    return (tmp_path / "upstream.key",)


@pytest.mark.parametrize(
    "url",
    [
        "https://hq.example/closures",
        "http://127.0.0.1:9000/",
        "http://localhost/x",
        "http://[::1]:9000/",
        "http://127.1.2.3/",
    ],
)
async def test_urls_for_https(key, url):
    """https anywhere, plain http to this box."""
    receiver = open_receiver("https", Options(url=url, key_files=key))
    assert isinstance(receiver, HttpsReceiver)
    await receiver.aclose()


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://hq.example/closures", "allow_plain_http"),
        ("http://192.168.1.5/", "allow_plain_http"),
        ("http://localhost.hq.example/", "allow_plain_http"),
        ("http://127.0.0.1.hq.example/", "allow_plain_http"),
        ("ftp://hq.example/", "https://"),
        ("hq.example/closures", "https://"),
        ("https:///closures", "https://"),
        ("https://user:hunter2@hq.example/", "user or password"),
        ("https://hq.example:port/", "upstream.url"),
        ("", "https://"),
    ],
)
async def test_urls_refused_for_https(key, url, complaint):
    """Anything else is refused, and a password in it is not repeated."""
    with pytest.raises(BadOptions, match=complaint) as caught:
        open_receiver("https", Options(url=url, key_files=key))
    assert "hunter2" not in str(caught.value)


async def test_plain_http_when_asked_for(key):
    """With the explicit setting plain http goes anywhere."""
    await open_receiver("https", Options(url="http://hq.example/", key_files=key, allow_plain=True)).aclose()


async def test_https_needs_a_key():
    """Unsigned events are not sent."""
    with pytest.raises(BadOptions, match="secret_file or key_file"):
        open_receiver("https", Options(url="https://hq.example/"))


@pytest.mark.parametrize(
    "url", ["nats://127.0.0.1:4222", "tls://hq.example", "tls://a.example:4222, tls://b.example:4223"]
)
async def test_urls_for_nats(url, key):
    """One server or several, with their ports or without."""
    receiver = open_receiver("nats", Options(url=url, key_files=key))
    assert isinstance(receiver, NatsReceiver)
    await receiver.aclose()


@pytest.mark.parametrize(
    "url", ["", "hq.example:4222", "https://hq.example", "wss://hq.example", "nats://", "tls://a,", "tls://a:b"]
)
async def test_urls_refused_for_nats(url):
    """Anything else is refused."""
    with pytest.raises(BadOptions, match=r"upstream\.url"):
        open_receiver("nats", Options(url=url))


async def test_nats_needs_a_key():
    """Unsigned events are not sent over NATS either; credentials are a key."""
    with pytest.raises(BadOptions, match="credentials_file or key_file"):
        open_receiver("nats", Options(url="nats://127.0.0.1"))


async def test_nats_is_plain_only_on_this_box(key):
    """tls:// always encrypts; nats:// may be plain on loopback, and elsewhere with the explicit setting."""
    for url, allowed, servers in [
        ("nats://127.0.0.1", False, ["nats://127.0.0.1"]),
        ("tls://127.0.0.1", True, ["tls://127.0.0.1"]),
        ("nats://hq.example:4333", False, ["tls://hq.example:4333"]),
        ("nats://hq.example", True, ["nats://hq.example"]),
        ("nats://127.0.0.1, nats://hq.example", False, ["nats://127.0.0.1", "tls://hq.example"]),
    ]:
        receiver = open_receiver("nats", Options(url=url, key_files=key, allow_plain=allowed))
        assert receiver.servers == servers
        await receiver.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_an_authority_that_cannot_be_read(tmp_path, key, kind):
    """tls_ca is checked at the start: there, and certificates in it; what is wrong with it is said."""
    url = f"{KINDS[kind].schemes[-1 if kind == 'nats' else 0]}://hq.example/"
    (tmp_path / "garbage.pem").write_text("no certificate")
    for name, why in (("missing.pem", "No such file"), ("garbage.pem", r"\[")):
        with pytest.raises(BadOptions, match=rf"upstream\.tls_ca .*/{name}: {why}"):
            open_receiver(kind, Options(url=url, key_files=key, tls_ca=tmp_path / name))
    await open_receiver(kind, Options(url=url, key_files=key, tls_ca=Authority(tmp_path).path)).aclose()


async def test_unknown_kind():
    """A kind that is not in the table is named together with those that are."""
    with pytest.raises(BadOptions, match="'kafka' is none of https, nats"):
        open_receiver("kafka", Options(url="kafka://hq.example"))
