"""Webhook and mail: once when a finding is there, once when it is solved, again while there is no answer."""

import asyncio
import base64
import json
import re
import time
from email import message_from_string
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from standardwebhooks import Webhook
from structlog.testing import capture_logs
from support.hq.paper_box import PaperBox
from support.hq.store import NOW, UTC, take

from common.turns import ended
from headquarters.core import wording
from headquarters.notifiers import Findings, MailNotifier, NotificationFailed, WebhookNotifier
from headquarters.store import tables
from headquarters.store.findings import add_fact
from headquarters.store.store import HqStore
from headquarters.watch import LEASE_MILLIS, Watch


class Listener:
    """A socket that talks one protocol, line by line, and keeps what it received."""

    def __init__(self, talk):
        self.heard = []
        self._talk = talk

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._one, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await self._server.wait_closed()

    async def _one(self, reader, writer):
        try:
            await self._talk(self, reader, writer)
        finally:
            writer.close()


def http(status, go_on=None):
    """Answers with that status, once `go_on` is set."""

    async def talk(listener, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        pairs = (line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        headers = {name.lower(): value for name, value in pairs}
        listener.heard.append((headers, await reader.readexactly(int(headers["content-length"]))))
        if go_on is not None:
            await go_on.wait()
        writer.write(f"HTTP/1.1 {status()} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()

    return talk


async def smtp(listener, reader, writer):
    writer.write(b"220 here\r\n")
    text = []
    while line := await reader.readline():
        if line.upper().startswith(b"DATA"):
            writer.write(b"354 go on\r\n")
            while (part := await reader.readline()) != b".\r\n":
                text.append(part)
            listener.heard.append(b"".join(text).decode())
        writer.write(b"221 bye\r\n" if line.upper().startswith(b"QUIT") else b"250 ok\r\n")
        await writer.drain()
        if line.upper().startswith(b"QUIT"):
            return


def secret_in(tmp_path):
    (tmp_path / "secret").write_text("whsec_" + base64.b64encode(bytes(32)).decode())
    return tmp_path / "secret"


def hook(tmp_path, port=1):
    return WebhookNotifier(f"http://127.0.0.1:{port}/hook", secret_in(tmp_path))


def watching(store, *webhook, mail=None, after=0, every=1):
    return Watch(store, UTC, Findings(look_every=every, tell_after=after, webhook=webhook, mail=mail))


CHAIN = {"to": ("compta@chaine.example",), "sender": "hq@chaine.example", "host": "127.0.0.1", "starttls": True}


@pytest.fixture
def gap(store):
    """A shop that lacks Z 2; the closure that solves it."""
    box = PaperBox()
    store.register.add(box.nim, box.key.public, now=NOW)
    closures = [box.close() for _ in range(3)]
    take(store, box, closures[0], closures[2])
    return lambda: take(store, box, closures[1], now=NOW + 1000)


async def test_webhook(store, gap, tmp_path):
    """Signed with the shared secret, after its time; again until it is accepted; and once more when it is solved."""
    status = iter([500, 200, 200])
    async with Listener(http(lambda: next(status))) as listener:
        watch = watching(store, hook(tmp_path, listener.port), after=60)
        await watch.notify(NOW + 59_000)
        assert listener.heard == []
        for now in (NOW + 60_000, NOW + 61_000, NOW + 60_000 + LEASE_MILLIS, NOW + 70_000 + LEASE_MILLIS):
            await watch.notify(now)
        gap()
        await watch.notify(NOW + 80_000 + LEASE_MILLIS)
        await watch.notify(NOW + 90_000 + 3 * LEASE_MILLIS)
    events = [Webhook((tmp_path / "secret").read_text()).verify(body, headers) for headers, body in listener.heard]
    assert [event["type"] for event in events] == ["finding.opened", "finding.opened", "finding.solved"]
    assert events[0]["data"]["detail"] == "Z 2 is missing"
    assert len({headers["webhook-id"] for headers, _ in listener.heard}) == 2
    assert json.loads(listener.heard[0][1]) == events[0]


async def test_the_numbers_of_findings_after_a_lost_database(store, gap, tmp_path):
    """They begin anew: a receiver that knows a message again by its id, as Standard Webhooks has it, gets the new finding under another one."""
    async with Listener(http(lambda: 200)) as listener:
        watch = watching(store, hook(tmp_path, listener.port), after=60)
        await watch.notify(NOW + 60_000)
        with store.database.write() as connection:
            for table in (tables.finding, tables.notification):
                connection.execute(table.delete())
            if not store.database.is_sqlite:
                connection.exec_driver_sql("ALTER SEQUENCE finding_id_seq RESTART")
            fact = wording.Fact("unexplained", "7", {"z": 7, "count": 2})
            add_fact(connection, ("EL02000015", "live"), "EL02000015-1", fact, NOW + 86_400_000)
        await watch.notify(NOW + 86_500_000)
    numbers = [json.loads(body)["data"]["id"] for _, body in listener.heard]
    assert numbers[0] == numbers[1]
    assert len({headers["webhook-id"] for headers, _ in listener.heard}) == 2


async def test_mail(store, gap):
    """One mail in the configured language, with the headers of RFC 5322; when the server is away it goes later."""
    async with Listener(smtp) as listener:
        await watching(store, mail=MailNotifier(**CHAIN, port=1)).notify(NOW)
        watch = watching(store, mail=MailNotifier(**CHAIN, port=listener.port))
        await watch.notify(NOW + LEASE_MILLIS)
        await watch.notify(NOW + 2 * LEASE_MILLIS)
    [text] = listener.heard
    assert "Z 2 manque" in text
    assert "Subject: mcfd : 1 constat\r\n" in text
    assert "To: compta@chaine.example" in text
    mail = message_from_string(text)
    assert abs(parsedate_to_datetime(mail["Date"]).timestamp() - time.time()) < 60
    assert mail["Message-ID"].endswith("@chaine.example>")
    gap()


async def refusing_smtp(listener, reader, writer):
    """Refuses the addresses of `typo.example`."""
    writer.write(b"220 here\r\n")
    while line := await reader.readline():
        listener.heard.append(line.decode())
        if line.startswith(b"data"):
            writer.write(b"354 go on\r\n")
            await reader.readuntil(b"\r\n.\r\n")
        writer.write(b"550 no such user\r\n" if b"@typo.example" in line else b"250 ok\r\n")
        if line.startswith(b"quit"):
            return


async def test_one_of_two_addresses_is_refused(store, gap):
    """The mail goes to the other one, once, and the log names the refused one at each mail."""
    async with Listener(refusing_smtp) as listener:
        to = ("owner@chain.example", "awa@typo.example")
        mail = MailNotifier(to=to, sender="hq@chain.example", host="127.0.0.1", port=listener.port)
        with capture_logs() as lines:
            for _ in range(2):
                await watching(store, mail=mail).notify(NOW + 1)
    assert sum(line.startswith("data") for line in listener.heard) == 1
    refused = [line for line in lines if line["event"] == "mail.address_refused"]
    assert [(line["address"], line["reason"]) for line in refused] == [("awa@typo.example", "550 no such user")]


async def test_no_password_goes_in_the_clear(store, gap, tmp_path):
    """A server that offers no STARTTLS gets none, and no mail; with `starttls = false` it is wanted so."""
    (tmp_path / "password").write_text("p")
    mail = {"to": ("compta@chaine.example",), "sender": "hq@chaine.example", "host": "127.0.0.1"}
    async with Listener(smtp) as listener:
        login = {"port": listener.port, "user": "hq", "password_file": tmp_path / "password"}
        with pytest.raises(NotificationFailed, match="STARTTLS"):
            await MailNotifier(**mail, **login).notify([], "fr")
    assert not listener.heard


def test_each_finding_in_both_languages():
    """Each kind has a name and a sentence, in French too, and its row in the documents; one of something is in the singular."""
    rows = re.findall(
        r"^\| (`[^|]*`) \|", (Path(__file__).parents[2] / "docs/headquarters.md").read_text(), re.MULTILINE
    )
    assert set(wording.KIND) <= set(re.findall(r"`([\w-]+)`", " ".join(rows)))
    assert {name.partition(".")[0] for name in wording._SENTENCES} == set(wording.KIND)
    for text in (*wording._SENTENCES.values(), *wording.KIND.values()):
        assert text.in_language("fr") != text
    gone = {"first": 3, "last": 4, "what": "gone"}
    assert "3 to 4 have never come" in wording.sentence("gap", gone, "en")
    assert "Z 3 has never come" in wording.sentence("gap", gone | {"last": 3}, "en")
    rows = [wording.sentence("unexplained", {"z": 7, "count": count}, "fr") for count in (1, 2)]
    assert [sentence.partition(" sur ")[0] for sentence in rows] == ["Z 7\xa0: une facture", "Z 7\xa0: 2 factures"]


@pytest.mark.parametrize(
    ("since", "silent", "french"),
    [
        (
            "2026-11-25 18:00",
            "2026-11-26 08:30",
            "aucun Z depuis le 25/11/2026 à 18:00, et aucun signe depuis le 26/11/2026 à 08:30",
        ),
        ("2026-11-25 18:00", wording.NEVER, "aucun Z depuis le 25/11/2026 à 18:00, et aucun autre signe jusqu'ici"),
        (wording.NEVER, "2026-11-26 08:30", "aucun Z jusqu'ici, et aucun signe depuis le 26/11/2026 à 08:30"),
    ],
)
def test_a_late_closure_names_days_as_french_does(since, silent, french):
    """And says so where no closure, or no sign, has ever come, instead of a dash."""
    assert wording.sentence("late", {"since": since, "silent": silent}, "fr") == french


@pytest.fixture
def many(store):
    """A gap of each of ten shops."""
    boxes = [PaperBox(f"EL020000{number}-1") for number in range(20, 30)]
    for box in boxes:
        store.register.add(box.nim, box.key.public, now=NOW)
        closures = [box.close() for _ in range(3)]
        take(store, box, closures[0], closures[2])
    return boxes


def nims(listener):
    return [json.loads(body)["data"]["nim"] for _, body in listener.heard]


async def test_nobody_listens_and_the_mail_goes(store, many, tmp_path):
    """A webhook that is dead does not delay the mail; a few tries later, when it is back, it gets all of them, and the mail is not sent again."""
    async with Listener(smtp) as server, Listener(http(lambda: 200)) as listener:
        by_mail = MailNotifier(**CHAIN, port=server.port)
        watch = watching(store, hook(tmp_path), mail=by_mail)
        for minute in range(3):
            await watch.notify(NOW + minute * 60_000)
        [text] = server.heard
        assert "Subject: mcfd : 10 constats" in text
        await watching(store, hook(tmp_path, listener.port), mail=by_mail).notify(NOW + 600_000)
        assert sorted(nims(listener)) == [box.nim for box in many]
        assert len(server.heard) == 1


async def test_one_that_is_refused(store, many, tmp_path):
    """The others go all the same, each once; that one is tried again less and less often."""
    refused = many[0].nim
    async with Listener(http(lambda: 400 if nims(listener)[-1] == refused else 200)) as listener:
        watch = watching(store, hook(tmp_path, listener.port))
        await watch.notify(NOW)
        assert sorted(nims(listener)) == [box.nim for box in many]
        for minute in range(1, 61):
            await watch.notify(NOW + minute * 60_000)
        assert nims(listener)[10:] == [refused] * 5  # after 1, 3, 7, 15 and 31 minutes


async def test_many_that_are_refused(store, many, tmp_path):
    """Nine are refused for what they say, and they are the worst: the tenth goes with the first look."""
    taken = many[-1].nim
    async with Listener(http(lambda: 200 if nims(listener)[-1] == taken else 422)) as listener:
        await watching(store, hook(tmp_path, listener.port)).notify(NOW)
        assert sorted(nims(listener)) == [box.nim for box in many]


@pytest.mark.parametrize("status", [500, 401])
async def test_a_receiver_that_takes_nothing(store, many, tmp_path, status):
    """Three tries in a look: that answer is of the receiver's own trouble, not of the finding."""
    async with Listener(http(lambda: status)) as listener:
        await watching(store, hook(tmp_path, listener.port)).notify(NOW)
        assert len(listener.heard) == 3


async def test_a_teller_that_fails_in_another_way(store, many, tmp_path):
    """A secret that is no text, a password that SMTP cannot carry: the others are notified, and the watch goes on."""
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    broken = WebhookNotifier("http://127.0.0.1:1/hook", tmp_path / "bytes")
    no_url = WebhookNotifier("http://[::1", secret_in(tmp_path))
    async with Listener(http(lambda: 200)) as listener:
        watch = watching(store, broken, no_url, hook(tmp_path, listener.port), every=0.01)
        running = asyncio.ensure_future(watch.run())
        while len(listener.heard) < len(many) and not running.done():  # noqa: ASYNC110  each is told on its own
            await asyncio.sleep(0.001)
        assert not running.done()
        await ended(running)
        await asyncio.get_running_loop().shutdown_default_executor()  # what a thread is at in the database
    assert sorted(nims(listener)) == [box.nim for box in many]


async def test_two_instances_and_a_slow_webhook(store, many, tmp_path):
    """Each finding is sent once. One that is worse than those that wait, and was found after them, is the next that goes."""
    go_on = asyncio.Event()
    other = HqStore(store.url)
    async with Listener(http(lambda: 200, go_on)) as listener:
        watches = [watching(each, hook(tmp_path, listener.port)) for each in (store, other)]
        telling = [asyncio.ensure_future(watch.notify(NOW)) for watch in watches]
        while len(listener.heard) < 2:  # noqa: ASYNC110  both wait for an answer
            await asyncio.sleep(0.001)
        one, *_ = many
        forged = one.closures[2]
        one.forget(2)
        other_third = one.close(sales=9, z_number=3)
        assert other_third.report_id != forged.report_id
        take(store, one, other_third)
        go_on.set()
        await asyncio.gather(*telling)
        kinds = [json.loads(body)["data"]["kind"] for _, body in listener.heard]
        assert (kinds[2:4].count("fork"), kinds.count("fork")) == (1, 1)
        content = [json.loads(body)["data"]["id"] for _, body in listener.heard]
        assert len(content) == len(set(content)) == len(store.findings.listed())
    other.close()
