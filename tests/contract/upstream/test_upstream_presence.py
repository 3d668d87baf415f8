"""A box's presence on its way to real receivers, and what comes back."""

import asyncio
import json
import time

import httpx
import msgspec
import pytest
from support.ledgers.ledger import Till
from support.processor import within
from support.receivers.headquarters import HttpHeadquarters, started, until
from support.receivers.nats_server import NIM, SECOND
from support.shop import PLAIN

from common.wire.keys import verifying_key
from common.wire.presence import MAX_BYTES, PresenceAnswer, WantedClosures, read_presence
from common.wire.signing import verify
from daemon.app.outward.presence import PresenceSource
from daemon.app.outward.replication import Replication
from daemon.app.runtime import build
from daemon.core.errors import ZNumberUnknown
from daemon.settings import load
from daemon.store.maintenance.backup import backup, restore
from daemon.store.maintenance.verify import verify as verify_ledger
from daemon.upstream.options import open_receiver
from daemon.usecases.delivery import presence as timing

WORD = b'{"type":"bf.mcfd.presence.v1"}'


@pytest.fixture
async def web(tmp_path):
    async with started(HttpHeadquarters(tmp_path, "v1a")) as server:
        yield server


async def presences(web):
    async with httpx.AsyncClient(trust_env=False, timeout=60, verify=PLAIN) as client:
        return (await client.get(web.url)).json()


async def want(web, *answers):
    async with httpx.AsyncClient(trust_env=False, timeout=60, verify=PLAIN) as client:
        await client.post(web.url.replace("/closures", "/_wanted"), json=answers)


async def announce(headquarters, count=1, *, options=None, nim=NIM):
    receiver = open_receiver(headquarters.kind, options or headquarters.options)
    try:
        return [await receiver.announce(WORD, nim=nim) for _ in range(count)]
    finally:
        await receiver.aclose()


class TestHttps:
    async def test_signed_and_answered(self, web):
        """Beside the closures' URL, signed anew each time with another id; the answer says what is missed."""
        await want(web, {"replay": [{"mode": "live", "from_z": 7}]})
        assert await announce(web, 2) == [PresenceAnswer((WantedClosures("live", 7),)), PresenceAnswer()]
        first, second = await presences(web)
        assert first["body"].encode() == WORD
        assert first["headers"]["webhook-id"] != second["headers"]["webhook-id"]

    async def test_nobody_hears(self, web):
        """Down, or with another key: None, in bounded time."""
        stranger = msgspec.structs.replace(web.options, key_files=(web.keys.file.with_name("other"),))
        stranger.key_files[0].write_text("whsec_" + "A" * 32)
        assert await announce(web, options=stranger) == [None]
        web.kill()
        with within(5):
            assert await announce(web) == [None]


class TestNats:
    async def test_the_last_word_and_the_answer(self, nats):
        """The stream has the last word, signed by the shop's key; a reader at headquarters gets the question and answers."""
        calls = []

        async def answer(message):
            calls.append(message)
            await message.respond(b'{"replay":[{"mode":"live","from_z":2}]}')

        reader = await nats.site.connect(nats.server.url, nats.site.reader)
        await reader.subscribe("mcf.*.ask", queue="headquarters", cb=answer)
        await reader.flush()
        try:
            assert await announce(nats, 2) == [PresenceAnswer((WantedClosures("live", 2),))] * 2
        finally:
            await reader.close()
        async with nats.reading() as client:
            last = await client.jetstream().get_last_msg("PRESENCE", f"mcf.{NIM}.presence")
            assert (await client.jetstream().stream_info("PRESENCE")).state.messages == 1
        public = verifying_key(nats.site.public[f"PUBLIC-NKEY-OF-{NIM}"])
        for message in (last, calls[-1]):
            assert verify([public], message.headers, message.data, now=time.time()) is public

    async def test_nobody_at_headquarters(self, nats):
        """Without a subscriber for questions: not heard, at once, and the stream keeps the word."""
        with within(5, nats.pid):
            assert await announce(nats, nim=SECOND) == [None]
        async with nats.reading() as client:
            assert (await client.jetstream().get_last_msg("PRESENCE", f"mcf.{SECOND}.presence")).data == WORD
        nats.kill()
        assert await announce(nats) == [None]


@pytest.fixture
def settings(tmp_path, web):
    file = tmp_path / "mcfd.toml"
    machines = "".join(f'[[machine]]\nnim = "{nim}"\nport = "/dev/none"\nenabled = false\n\n' for nim in (NIM, SECOND))
    upstream = f'[upstream]\nkind = "https"\nurl = "{web.url}"\nkey_file = "{web.keys.file}"\n\n'
    file.write_text(f'{upstream}[storage]\npath = "{tmp_path / "ledger.sqlite3"}"\nreserve_mb = 1\n\n{machines}')
    return load(file, {})


def quiet(settings):
    return msgspec.structs.replace(settings, upstream=msgspec.structs.replace(settings.upstream, presence=False))


async def test_what_a_box_says(settings):
    """One word for each machine, under 500 bytes, read by headquarters' own code; no amount and no customer in it."""
    async with build(settings) as runtime:
        till = await Till.of(runtime.store, NIM)
        await till.sell(15_000)
        await till.close()
        record = await till.sell(7_000)
        words = await PresenceSource(runtime).words("0123456789abcdef")
    assert [word.nim for word in words] == [NIM, SECOND]
    assert all(len(word.content) <= MAX_BYTES for word in words)
    presence, other = (read_presence(word.content) for word in words)
    assert (presence.z, presence.seq, presence.waiting, presence.counters) == (1, record.seq, 1, (2, 2, 0))
    assert (presence.head, len(presence.z_head), presence.certified) == (
        record.hash.hex()[:16],
        16,
        "2025-12-06T05:49:40.100Z",
    )
    assert (other.z, other.seq, other.counters, other.certified) == (0, 0, None, "")
    assert presence.ledger == other.ledger
    assert not presence.connected
    assert presence.disk > 0
    assert len(presence.config) == 8
    assert b"15000" not in words[0].content


async def test_headquarters_lost_its_closures(settings, web, monkeypatch):
    """It asks in its answer to the presence: from that Z on everything comes again, without a command at the box."""
    monkeypatch.setattr(timing, "FIRST_WITHIN", 0.0)
    async with build(settings) as runtime:
        till = await Till.of(runtime.store, NIM)
        for _ in range(4):
            await till.close()
        replication = Replication(runtime)
        await replication.prepare(quiet(settings))()

        async def is_delivered() -> bool:
            """As the ledger has it: what headquarters has may still be under way for the box."""
            return not await runtime.store.outbox.waiting(NIM, "live", 1)

        await until(is_delivered)
        await want(web, {"replay": [{"mode": "live", "from_z": 3}]})
        await replication.prepare(settings)()
        try:
            await until(lambda: len(web.attempts()) == 6)
        finally:
            await replication.stop()
    sent = [json.loads(attempt["body"])["data"]["z_number"] for attempt in web.attempts()]
    assert sorted(sent) == [1, 2, 3, 3, 4, 4]
    assert {word["body"].count(NIM) or word["body"].count(SECOND) for word in await presences(web)} == {1}


@pytest.mark.parametrize("is_restored", [False, True])
async def test_headquarters_says_the_last_z(settings, web, monkeypatch, tmp_path, is_restored):
    """On a new disk the first word brings the number back; once the box knows its own it believes no other."""
    monkeypatch.setattr(timing, "FIRST_WITHIN", 0.0)
    if is_restored:
        async with build(settings) as runtime:
            await (await Till.of(runtime.store, NIM)).close()
        backup(settings.storage.path, tmp_path / "saved", at=1)
        for file in tmp_path.glob("ledger.sqlite3*"):
            file.unlink()
        restore(tmp_path / "saved", settings.storage.path, at=2)
    async with build(settings) as runtime:
        till = await Till.of(runtime.store, NIM)
        if is_restored:
            with pytest.raises(ZNumberUnknown):
                await till.close()
        await want(web, {"replay": [], "last_z": 9}, {"replay": []}, {"replay": [], "last_z": 30})
        replication = Replication(runtime)
        for heard in (2, 4):
            await replication.prepare(settings)()

            async def is_heard(count=heard) -> bool:
                return len(await presences(web)) >= count

            await until(is_heard)
            await replication.stop()
            if heard == 2:
                assert (await till.close()).z_number == 10
        assert (await till.close()).z_number == 11
        presences_sent = [read_presence(word["body"].encode()) for word in await presences(web)]
        assert [(word.asks, word.z) for word in presences_sent if word.nim == NIM] == [
            (is_restored, int(is_restored)),
            (False, 10),
        ]
    assert verify_ledger(settings.storage.path).problems == ()


async def test_it_can_be_turned_off(settings, web, monkeypatch):
    """With `presence = false` a box says nothing."""
    monkeypatch.setattr(timing, "FIRST_WITHIN", 0.0)
    async with build(quiet(settings)) as runtime:
        await (await Till.of(runtime.store, NIM)).close()
        replication = Replication(runtime)
        await replication.prepare(quiet(settings))()
        await until(web.attempts)
        await asyncio.sleep(0.1)
        await replication.stop()
    assert await presences(web) == []
