"""Headquarters as a JetStream stream: what is particular to it, shown on real servers started from `config/nats`."""

import asyncio
import base64
import json

import pytest
from nats_sending import changed, compose_here, send, write_key
from standardwebhooks import Webhook
from support.ledgers.outbox import make_outgoing
from support.processor import within
from support.receivers.headquarters import until
from support.receivers.nats_server import (
    CONFIG,
    NIM,
    OTHER,
    add_stream,
)

from daemon.core.delivery import Delivered, RetryLater
from daemon.upstream.options import Options, open_receiver


async def test_subject_and_message_id(nats):
    """The subject is mcf.<NIM>.closure, the message id the report_id, and the stream holds a repetition once."""
    entry = make_outgoing()
    assert await send(nats.options, entry, entry) == [Delivered()] * 2
    async with nats.reading() as client:
        stream = client.jetstream()
        message = await stream.get_msg("CLOSURES", seq=1)
        assert (await stream.stream_info("CLOSURES")).state.messages == 1
    assert message.subject == f"mcf.{NIM}.closure"
    assert message.headers["Nats-Msg-Id"] == f"{entry.nim}/{entry.report_id}"
    assert message.data == compose_here(entry)


@pytest.mark.parametrize("taken", ["{report_id}", "{nim}/{report_id}"])
async def test_an_id_that_another_shop_has_used_first(nats, taken):
    """The stream calls it a duplicate of the other shop's message: it is published all the same, and once."""
    entry = make_outgoing()
    thief = await nats.site.connect(nats.server.url, nats.site.other_shop)
    headers = {"Nats-Msg-Id": taken.format(nim=entry.nim, report_id=entry.report_id)}
    await thief.jetstream().publish(f"mcf.{OTHER}.closure", b"junk", headers=headers)
    await thief.close()
    assert await send(nats.options, entry, entry, entry) == [Delivered()] * 3
    async with nats.reading() as client:
        stream = client.jetstream()
        assert (await stream.stream_info("CLOSURES")).state.messages == 2
        message = await stream.get_msg("CLOSURES", seq=2)
    assert (message.subject, message.data) == (f"mcf.{NIM}.closure", compose_here(entry))


async def test_signed_by_the_configured_keys(nats, tmp_path):
    """With a secret or key of its own, that one signs, and the reference library holds it good."""
    secret = "whsec_" + base64.b64encode(b"s" * 32).decode()
    (tmp_path / "upstream.secret").write_text(secret + "\n")
    options = changed(nats.options, key_files=(tmp_path / "upstream.secret",))
    assert await send(options) == [Delivered()]
    async with nats.reading() as client:
        message = await client.jetstream().get_msg("CLOSURES", seq=1)
    Webhook(secret).verify(message.data, message.headers, json_parse=False)


async def test_sent_anew_on_purpose(nats):
    """A try repeated is kept once; what was delivered and is sent anew on purpose comes again, also within a week."""
    receiver = open_receiver("nats", nats.options)
    entry = make_outgoing()
    own = {"report_id": entry.report_id, "subject": "closure", "nim": NIM}
    for last_sent in (0, 0, 1_765_000_000_000, 1_765_000_000_000):
        assert await receiver.deliver(compose_here(entry), **own, last_sent=last_sent) == Delivered()
    await receiver.aclose()
    async with nats.reading() as client:
        messages = [await client.jetstream().get_msg("CLOSURES", seq=seq) for seq in (1, 2)]
        assert (await client.jetstream().stream_info("CLOSURES")).state.messages == 2
    assert [message.headers["webhook-id"] for message in messages] == [entry.report_id] * 2


async def test_a_new_year(nats):
    """The stream is copied and begins anew, as docs/upstream.md says: what a box sends meanwhile waits there, and the copy stays whole."""
    entries = [make_outgoing(z_number=z) for z in range(1, 6)]
    assert await send(nats.options, *entries[:4]) == [Delivered()] * 4
    shipped = json.loads((CONFIG / "closures-one.json").read_bytes())
    async with nats.reading() as client:

        async def ask(call, **body):
            return json.loads((await client.request(f"$JS.API.{call}", json.dumps(body).encode(), timeout=10)).data)

        assert "error" not in await ask("STREAM.UPDATE.CLOSURES", **shipped | {"subjects": ["closed"]})
        (outcome,) = await send(nats.options, entries[4])
        assert outcome == RetryLater(f"no stream takes mcf.{NIM}.closure")
        archive = json.loads((CONFIG / "closures-archive.json").read_bytes())
        assert "error" not in await ask(f"STREAM.CREATE.{archive['name']}", **archive)

        async def copied():
            return (await ask(f"STREAM.INFO.{archive['name']}"))["state"]["messages"] == 4

        await until(copied)
        assert (await ask("STREAM.DELETE.CLOSURES"))["success"]
        await add_stream(client, "closures-one.json")
        assert await send(nats.options, entries[4]) == [Delivered()]
        rows = [await client.jetstream().get_msg(archive["name"], seq=seq) for seq in range(1, 5)]
        assert "error" in await ask(f"STREAM.PURGE.{archive['name']}")
    assert [json.loads(message.data)["subject"] for message in rows] == ["1", "2", "3", "4"]
    assert rows[0].subject == f"mcf.{NIM}.closure"
    assert [event["subject"] for event in await nats.events()] == ["5"]


async def test_one_queue_s_trouble_is_not_another_s(nats):
    """Two machines at once, one not permitted: the other is delivered over the same connection."""
    receiver = open_receiver("nats", nats.options)
    mine, foreign = make_outgoing(NIM), make_outgoing(OTHER)
    try:
        for _ in range(5):
            outcomes = await asyncio.gather(
                *(
                    receiver.deliver(compose_here(e), report_id=e.report_id, subject="closure", nim=e.nim)
                    for e in (mine, foreign)
                )
            )
            assert outcomes[0] == Delivered()
            assert isinstance(outcomes[1], RetryLater)
            assert f"mcf.{OTHER}.closure" in outcomes[1].error
        nats.kill()
        outcome = await receiver.deliver(compose_here(mine), report_id=mine.report_id, subject="closure", nim=NIM)
        assert isinstance(outcome, RetryLater)
        assert OTHER not in outcome.error
    finally:
        await receiver.aclose()


@pytest.fixture
def key(tmp_path):
    return write_key(tmp_path)


async def test_silent_server(key):
    """A server that accepts and says nothing costs one timeout, no more."""

    async def say_nothing(reader, writer):
        await reader.read()
        writer.close()

    waiting = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = waiting.sockets[0].getsockname()[1]
    with within(2):
        (outcome,) = await send(Options(url=f"nats://127.0.0.1:{port}", key_files=key, timeout=0.3))
    assert isinstance(outcome, RetryLater)
    waiting.close()


@pytest.mark.parametrize("work", ["deliver", "announce"])
async def test_a_try_that_is_cancelled_ends(nats, work):
    """At any step of a connection or a message; the next one goes through."""
    receiver = open_receiver("nats", nats.options)
    entry = make_outgoing()
    event = compose_here(entry)
    for steps in range(40):
        trying = asyncio.create_task(
            receiver.deliver(event, report_id=entry.report_id, subject="closure", nim=NIM)
            if work == "deliver"
            else receiver.announce(b"{}", nim=NIM)
        )
        for _ in range(steps):
            await asyncio.sleep(0)
        trying.cancel()
        await asyncio.wait({trying}, timeout=60)
        assert trying.done()
    await receiver.aclose()
    assert await send(nats.options) == [Delivered()]
