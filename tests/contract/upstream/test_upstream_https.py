"""Headquarters over HTTP: what each answer means, and what a hostile one can do, shown on a real process."""

import asyncio
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import msgspec
import pytest
from support.ledgers.outbox import make_outgoing
from support.receivers.authority import Authority
from support.receivers.headquarters import HttpHeadquarters, started, until

from daemon.core.delivery import Delivered, DeliveryRefused, RetryLater
from daemon.upstream.https import open_receiver as open_https
from daemon.upstream.https import open_webhook
from daemon.upstream.options import compose, open_receiver


@pytest.fixture
async def headquarters(tmp_path):
    async with started(HttpHeadquarters(tmp_path)) as server:
        yield server


@pytest.fixture
async def deliver(headquarters):
    receiver = open_receiver("https", headquarters.options)
    yield lambda entry=None: send(receiver, entry or make_outgoing())
    await receiver.aclose()


def in_a_hurry(headquarters, timeout):
    return msgspec.structs.replace(headquarters.options, timeout=timeout)


async def send(receiver, entry):
    content = compose(entry, "caisse-1")
    return await receiver.deliver(content, report_id=entry.report_id, subject="closure", nim=entry.nim)


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_parked(headquarters, deliver, status):
    """What is wrong in the event itself will not get better; the answer's words are kept, without control characters."""
    await headquarters.script({"status": status, "body": "no\r\nsuch\x1b[31m shop" + "!" * 500})
    outcome = await deliver()
    assert isinstance(outcome, DeliveryRefused)
    assert outcome.error.startswith(f"answered {status} no such[31m shop!!!")
    assert len(outcome.error) < 250


class TestReceipt:
    """With `receipt` an answer counts that proves it has read the event: no login page passes for a delivery."""

    @pytest.fixture
    async def deliver(self, headquarters):
        options = headquarters.options
        receiver = open_receiver("https", msgspec.structs.replace(options, receipt=True))
        yield lambda entry=None: send(receiver, entry or make_outgoing())
        await receiver.aclose()

    @pytest.mark.parametrize(
        "answer",
        [
            {"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>Bienvenue au WiFi</html>"},
            {"status": 200, "body": ""},
            {"status": 204},
            {"status": 200, "body": "{}"},
            {"status": 200, "body": '{"id": "another", "sha256": "00"}'},
            {"status": 409, "body": "known"},
            {"endless": True},
        ],
    )
    async def test_not_given(self, headquarters, deliver, answer):
        """A page of a hotel, an empty answer, another event's receipt, one without end: tried again."""
        await headquarters.script(answer)
        outcome = await deliver()
        assert isinstance(outcome, RetryLater)
        assert "without a receipt" in outcome.error


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(headquarters, deliver, status):
    """A redirect goes nowhere and is tried again: it is the configuration that has to change."""
    await headquarters.script({"status": status, "headers": {"location": headquarters.url}})
    assert await deliver() == RetryLater(f"answered {status}", None)
    assert len(headquarters.attempts()) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("-3", None),
        ("soon", None),
        ("", None),
        ("1.5", None),
        ("²", None),
        ("9" * 400, float("inf")),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2031 00:00:00 +99999999999999", None),
    ],
)
async def test_retry_after_seconds(headquarters, deliver, value, seconds):
    """Retry-After in seconds is handed on; nonsense is no Retry-After."""
    await headquarters.script({"status": 503, "headers": {"retry-after": value}})
    assert await deliver() == RetryLater("answered 503", seconds)


async def test_retry_after_date(headquarters, deliver):
    """Retry-After as a date is counted from the answer's own Date, whatever the box's clock says."""
    over_there = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    headers = {"date": format_datetime(over_there, usegmt=True)}
    for later, seconds in ((90, 90.0), (0, 0.0), (-90, 0.0)):
        headers["retry-after"] = format_datetime(over_there + timedelta(seconds=later), usegmt=True)
        await headquarters.script({"status": 503, "headers": headers})
        assert await deliver() == RetryLater("answered 503", seconds)


async def test_slow_answer(headquarters, deliver):
    """An answer slower than the timeout is no answer, though the closure may have been taken; the next try settles it."""
    await headquarters.script({"delay": 3600})
    hurried = open_receiver("https", in_a_hurry(headquarters, 2.0))
    assert await send(hurried, make_outgoing()) == RetryLater("no answer within 2 s")
    await hurried.aclose()
    await until(headquarters.attempts)
    assert await deliver() == Delivered()
    assert len(await headquarters.events()) == 1


async def test_cut_after_the_request(headquarters, deliver):
    """The connection is cut after the request: unknown, so again; headquarters has it once."""
    await headquarters.script({"cut": True})
    outcome = await deliver()
    assert isinstance(outcome, RetryLater)
    assert await deliver() == Delivered()
    assert len(await headquarters.events()) == 1


async def test_endless_answer(headquarters, deliver):
    """An answer without end is read up to a limit; its status counts."""
    await headquarters.script({"endless": True})
    assert await deliver() == Delivered()


async def test_nothing_but_informational_answers(headquarters):
    """A receiver that says `100 Continue` without end is left when the time of a try is over; the next try is as any other."""
    await headquarters.script({"continues": True})
    receiver = open_receiver("https", in_a_hurry(headquarters, 0.5))
    assert await send(receiver, make_outgoing()) == RetryLater("no answer within 0.5 s")
    await receiver.aclose()
    receiver = open_receiver("https", headquarters.options)
    assert await send(receiver, make_outgoing()) == Delivered()
    await receiver.aclose()


async def test_each_try_is_signed_afresh(headquarters, deliver):
    """Two tries of one closure have one id and body, and each its own time and signature."""
    await headquarters.script({"status": 503})
    await deliver()
    await until(lambda: int(time.time()) > int(headquarters.attempts()[0]["headers"]["webhook-timestamp"]))
    await deliver()
    first, second = headquarters.attempts()
    assert (first["id"], first["body"]) == (second["id"], second["body"])
    for header in ("webhook-timestamp", "webhook-signature"):
        assert first["headers"][header] != second["headers"][header]
    assert second["headers"]["content-type"].startswith("application/cloudevents+json")


class TestCertificates:
    """TLS with an authority of our own; every trouble with it is tried again, and nothing is ever said in the clear."""

    @pytest.fixture
    def authority(self, tmp_path):
        return Authority(tmp_path)

    async def try_once(self, tmp_path, cert, ca):
        async with started(HttpHeadquarters(tmp_path, cert=cert, tls_ca=ca)) as headquarters:
            receiver = open_receiver("https", headquarters.options)
            outcome = await send(receiver, make_outgoing())
            await receiver.aclose()
            return outcome, headquarters.attempts()

    async def test_good(self, tmp_path, authority):
        """A certificate of the configured authority for the right name is accepted."""
        outcome, attempts = await self.try_once(tmp_path, authority.issue(), authority.path)
        assert outcome == Delivered()
        assert len(attempts) == 1

    async def test_unknown_authority(self, tmp_path, authority):
        """A certificate of somebody else's authority is not accepted."""
        stranger = Authority(tmp_path, "stranger")
        outcome, attempts = await self.try_once(tmp_path, stranger.issue(), authority.path)
        assert isinstance(outcome, RetryLater)
        assert "certificate" in outcome.error.lower()
        assert attempts == []

    async def test_one_that_has_ended(self, tmp_path, authority):
        """Nothing is sent, and the shop reads why in its own language."""
        outcome, attempts = await self.try_once(tmp_path, authority.issue(expired=True), authority.path)
        assert isinstance(outcome, RetryLater)
        assert outcome.error.in_language("fr") == "le certificat du destinataire est périmé : il doit y être renouvelé"
        assert attempts == []

    @pytest.mark.parametrize("opened", [open_https, open_webhook])
    async def test_the_systems_authorities(self, tmp_path, authority, opened, monkeypatch):
        """Where none is configured, those that the system trusts are: what they vouch for is sent to."""
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
        async with started(HttpHeadquarters(tmp_path, cert=authority.issue())) as headquarters:
            receiver = opened(headquarters.options)
            await send(receiver, make_outgoing())
            await receiver.aclose()
            assert len(headquarters.attempts()) == 1

    async def test_not_tls_at_all(self, tmp_path):
        """Where https is configured and plain HTTP answers, nothing is sent."""
        async with started(HttpHeadquarters(tmp_path)) as headquarters:
            options = headquarters.options
            url = options.url.replace("http:", "https:")
            receiver = open_receiver("https", type(options)(url=url, key_files=options.key_files))
            assert isinstance(await send(receiver, make_outgoing()), RetryLater)
            await receiver.aclose()
            assert headquarters.attempts() == []


async def test_a_failure_leaves_no_connection_of_another_request_open(headquarters, tmp_path):
    """One request is cut off while another one still shakes hands: the other one is answered, and its connection is closed in the end."""
    authority = Authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.issue())
    loop, closed = asyncio.get_running_loop(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        while await reader.read(1024):
            pass
        writer.close()
        closed.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        options = msgspec.structs.replace(
            headquarters.options,
            url=f"https://127.0.0.1:{server.getsockname()[1]}/",
            tls_ca=authority.path,
            timeout=30.0,
        )
        receiver = open_https(options)
        first = asyncio.create_task(send(receiver, make_outgoing()))
        one, _ = await loop.sock_accept(server)
        second = asyncio.create_task(send(receiver, make_outgoing()))
        other, _ = await loop.sock_accept(server)
        one.close()
        assert isinstance(await first, RetryLater)
        await loop.connect_accepted_socket(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(), answer), sock=other, ssl=tls
        )
        assert await second == Delivered()
        await receiver.aclose()
        async with asyncio.timeout(30):
            await closed.wait()


async def test_proxies_of_the_environment_are_not_obeyed(headquarters, monkeypatch):
    """Closures go where the configuration says, whatever the variables of a shell or a unit say of proxies and certificates."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    receiver = open_receiver("https", headquarters.options)
    try:
        assert await send(receiver, make_outgoing()) == Delivered()
    finally:
        await receiver.aclose()
