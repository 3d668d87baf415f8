"""What is refused at the start, with the key named; and that nothing is imported before it is configured."""

from errno import ECONNREFUSED

import pytest
from support.ports import free_port
from support.receivers.authority import Authority

from common.language import translate
from common.wire.upstream_kinds import KINDS
from daemon.core.delivery import RetryLater
from daemon.upstream.https import HttpsReceiver
from daemon.upstream.nats import NatsReceiver
from daemon.upstream.options import BadOptions, Options, connection_fault, generate, open_receiver


@pytest.fixture
def key(tmp_path):
    generate(tmp_path / "upstream.key")
    return (tmp_path / "upstream.key",)


@pytest.mark.parametrize(
    ("kind", "url", "allow_plain", "servers"),
    [
        *(
            ("https", url, False, None)
            for url in (
                *("https://hq.example/closures", "http://127.0.0.1:9000/", "http://localhost/x", "http://127.1.2.3/"),
                "http://[::1]:9000/",
            )
        ),
        ("https", "http://hq.example/", True, None),
        ("nats", "nats://127.0.0.1:4222", False, ["nats://127.0.0.1:4222"]),
        ("nats", "tls://hq.example", False, ["tls://hq.example"]),
        ("nats", "tls://a.example:4222, tls://b.example:4223", False, ["tls://a.example:4222", "tls://b.example:4223"]),
        ("nats", "tls://127.0.0.1", True, ["tls://127.0.0.1"]),
        ("nats", "nats://hq.example:4333", False, ["tls://hq.example:4333"]),
        ("nats", "nats://hq.example", True, ["nats://hq.example"]),
        ("nats", "nats://127.0.0.1, nats://hq.example", False, ["nats://127.0.0.1", "tls://hq.example"]),
    ],
)
async def test_addresses_that_are_taken(key, kind, url, allow_plain, servers):
    """Plain http to this box or with the setting; tls:// always encrypts, nats:// beyond this box without the setting."""
    receiver = open_receiver(kind, Options(url=url, key_files=key, allow_plain=allow_plain))
    assert isinstance(receiver, {"https": HttpsReceiver, "nats": NatsReceiver}[kind])
    assert getattr(receiver, "servers", None) == servers
    await receiver.aclose()


@pytest.mark.parametrize(
    ("kind", "url", "complaint"),
    [
        *(
            ("https", f"http://{host}/", "allow_plain_http")
            for host in ("hq.example", "192.168.1.5", "localhost.hq.example", "127.0.0.1.hq.example")
        ),
        *(("https", url, "https://") for url in ("ftp://hq.example/", "hq.example/closures", "https:///closures", "")),
        ("https", "https://user:hunter2@hq.example/", "user or password"),
        ("https", "https://hq.example:port/", "upstream.url"),
        *(("nats", url, r"upstream\.url") for url in ("", "hq.example:4222", "https://hq.example", "wss://hq.example")),
        *(("nats", url, r"upstream\.url") for url in ("nats://", "tls://a,", "tls://a:b")),
        ("kafka", "kafka://hq.example", f"'kafka' is none of {', '.join(KINDS)}"),
    ],
)
async def test_addresses_that_are_refused(key, kind, url, complaint):
    """A password is not repeated; a kind that is not in the table is named together with those that are."""
    with pytest.raises(BadOptions, match=complaint) as caught:
        open_receiver(kind, Options(url=url, key_files=key))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(("kind", "needed"), [("https", "secret_file"), ("nats", "credentials_file")])
async def test_a_key_is_needed(kind, needed):
    """Unsigned events are not sent; over NATS credentials are a key."""
    with pytest.raises(BadOptions, match=f"{needed} or key_file"):
        open_receiver(kind, Options(url=f"{kind}://127.0.0.1"))


@pytest.mark.parametrize("kind", KINDS)
async def test_an_authority_that_cannot_be_read(tmp_path, key, kind):
    """tls_ca is checked at the start: there, and certificates in it; what is wrong with it is said."""
    url = f"{KINDS[kind].schemes[-1 if kind == 'nats' else 0]}://hq.example/"
    (tmp_path / "garbage.pem").write_text("no certificate")
    for name, why in (("missing.pem", "No such file"), ("garbage.pem", r"\[")):
        with pytest.raises(BadOptions, match=rf"upstream\.tls_ca .*/{name}: {why}"):
            open_receiver(kind, Options(url=url, key_files=key, tls_ca=tmp_path / name))
    await open_receiver(kind, Options(url=url, key_files=key, tls_ca=Authority(tmp_path).path)).aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_why_there_is_no_connection_is_told_in_french(key, kind):
    """A box without internet, or a headquarters that is not there: no word of a library is left in it."""
    here, there = ("http", "https") if kind == "https" else ("nats", "tls")
    for url, why in (
        (f"{here}://127.0.0.1:{free_port()}", "connexion refusée"),
        (f"{there}://hq.invalid", "nom d'hôte inconnu"),
    ):
        receiver = open_receiver(kind, Options(url=url, key_files=key))
        rows = [
            await receiver.trial(b"{}", event_id="msg_1", nim="EL02000015-1"),
            await receiver.deliver(b"{}", report_id="1", subject="z", nim="EL02000015-1"),
        ]
        await receiver.aclose()
        for outcome in rows:
            assert isinstance(outcome, RetryLater)
            words = translate(outcome.error, "fr")
            assert str(words) == f"pas de connexion, ou elle s'est rompue ({why})"


@pytest.mark.parametrize(
    "trouble",
    [
        OSError(f"Multiple exceptions: [Errno {ECONNREFUSED}] Connect call failed ('::1', 1, 0, 0), [Errno 101] no"),
        ExceptionGroup(
            "of each address", [ConnectionRefusedError(ECONNREFUSED, "Connect call failed"), OSError(101, "")]
        ),
    ],
    ids=["of asyncio", "of httpx"],
)
def test_a_host_with_two_addresses_fails_for_the_reason_of_the_first(trouble):
    """The library names both addresses, in its English."""
    failed = OSError("All connection attempts failed")
    failed.__cause__ = trouble
    assert translate(connection_fault(failed), "fr") == "connexion refusée"
