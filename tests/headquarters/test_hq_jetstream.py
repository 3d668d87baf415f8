"""Headquarters on a real nats-server with the files as they are shipped, and the reader's key alone."""

import asyncio
import contextlib
import json

import nats.errors
import pytest
from support.hq.nats_site import publish, running
from support.hq.paper_box import PaperBox
from support.hq.running import RunningHq
from support.receivers.headquarters import until
from support.receivers.nats_server import NIM, OTHER

from common.wire import nats_pull as pull
from common.wire.keys import PrivateKey
from common.wire.nats_pull import NatsOptions, connected

pytestmark = pytest.mark.long


@pytest.fixture
async def site(tmp_path):
    async with running(tmp_path) as site:
        yield site


@pytest.fixture
async def site_on_each(tmp_path, database_url):
    """On SQLite and on PostgreSQL."""
    async with running(tmp_path, database_url) as site:
        yield site


async def test_closures_of_two_shops(site):
    """In order, before and after a start of headquarters, with the keys as shipped; a box's last word in the stream is heard."""
    clients = [await site.shop(0), await site.shop(1)]
    headers, body = site.boxes[0].sent_presence(site.boxes[0].presence())
    await clients[0].publish(f"mcf.{NIM}.presence", body, headers=headers)
    for box, client in zip(site.boxes, clients, strict=True):
        await site.send(client, box, *(box.close() for _ in range(5)))
    site.hq.start()
    for box, client in zip(site.boxes, clients, strict=True):
        await site.send(client, box, box.close())
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3, 4, 5, 6], OTHER: [1, 2, 3, 4, 5, 6]})
    await until(lambda: site.heard() == {NIM.partition("-")[0]})
    assert site.findings() == []


async def test_what_is_no_closure_stops_nobody(site):
    """Junk, a stranger's key, another shop's closure and a fork are evidence, are acknowledged, and what follows is taken."""
    box, other = site.boxes
    client = await site.shop(0)
    await publish(client, NIM, {}, b"\xff not json")
    thief = PaperBox(NIM, PrivateKey(bytes(range(32))), seed="thief")
    await publish(client, NIM, *thief.sent(thief.close()))
    await publish(client, NIM, *other.sent(other.close()))
    await site.send(client, box, box.close())
    box.forget(0)
    await site.send(client, box, box.close(9), box.close())
    site.hq.start()
    await until(lambda: site.stored_z() == {NIM: [1, 2]})
    await until(lambda: site.counted() == {"malformed": 1, "unsigned": 1, "foreign": 1, "fork": 1})


@pytest.mark.parametrize("point", ["before-commit", "after-commit", "before-ack", "after-ack"])
async def test_killed(site_on_each, point):
    """SIGKILL at the second passing of that point, and again, and again: in the end everything is there once, in order."""
    site = site_on_each
    client = await site.shop(0)
    box = site.boxes[0]
    for death in range(3):
        site.hq.first = ("support.hq.killed", "die_at", {"point": point, "times": 1 + death % 2})
        site.hq.start()
        await site.send(client, box, *(box.close() for _ in range(4)))
        async with asyncio.timeout(60):
            while not site.hq.has_ended():  # however many of them come together, there is another batch
                await site.send(client, box, box.close())
                await asyncio.sleep(0.2)
        site.hq.wait_until_dead()
    site.hq.first = None
    site.hq.start()
    await site.send(client, box, box.close())
    await until(lambda: site.stored_z() == {NIM: list(range(1, len(box.closures) + 1))}, 90)
    assert site.findings() == []


async def test_two_instances_share_the_work(site, tmp_path):
    """Two instances on one consumer, one of them killed in the middle: each closure once, and no gap is left."""
    second = RunningHq(tmp_path / "second", site.hq.url, site.section)
    client = await site.shop(0)
    box = site.boxes[0]
    site.hq.start()
    second.start()
    await site.send(client, box, *(box.close() for _ in range(150)))
    second.kill()
    await site.send(client, box, *(box.close() for _ in range(150)))
    await until(lambda: site.stored_z() == {NIM: list(range(1, 301))}, 90)
    await until(lambda: site.findings() == [])


async def test_box_added_after_its_closures(site):
    """Closures that came before anybody had added their box are read again from the stream when the box says it is there."""
    box = site.boxes[1]
    assert site.store.register.revoke(box.nim.partition("-")[0], box.key.id, 1)
    client = await site.shop(1)
    site.hq.start()
    await site.send(client, box, *(box.close() for _ in range(3)))
    await until(lambda: site.counted() == {"unknown": 3})
    site.add(box)
    assert await ask(client, box) == {"replay": []}
    assert site.stored_z() == {OTHER: [1, 2, 3]}


async def test_what_the_stream_lacks_is_asked_of_the_box(site):
    """A box that has closed what neither headquarters nor the stream has is asked to send from there on."""
    client = await site.shop(0)
    box = site.boxes[0]
    closures = [box.close() for _ in range(4)]
    await site.send(client, box, *closures[:2])
    site.hq.start()
    await until(lambda: site.stored_z() == {NIM: [1, 2]})
    with site.store.database.write() as connection:
        # For some seconds after a closure has come nothing is asked, since more may be on its way; those seconds are over.
        connection.exec_driver_sql("UPDATE book SET received_at = received_at - 60000")

    async def stream_lacks():
        return await ask(client, box) == {"replay": [{"mode": "live", "from_z": 3, "to_z": 4}]}

    await until(stream_lacks, 60)
    assert site.findings() == [("gap", NIM)]
    await site.send(client, box, *closures[2:])
    await until(lambda: site.findings() == [])


async def test_presence_of_another_shop_is_not_believed(site):
    """Signed with one shop's key in the name of another: no answer, and counted."""
    box, other = site.boxes
    client = await site.shop(0)
    site.hq.start()

    async def answers():
        with contextlib.suppress(nats.errors.NoRespondersError):
            return await ask(client, box)

    await until(answers)
    headers, body = other.sent_presence(box.presence())
    with pytest.raises(nats.errors.TimeoutError):
        await client.request(f"mcf.{NIM}.ask", body, headers=headers, timeout=1.5)
    await until(lambda: site.counted() == {"unsigned": 1})


async def test_a_closure_waits_for_no_other(site, monkeypatch):
    """One closure is there at once, though many are asked for and the request would stand for an hour; the next one too."""
    monkeypatch.setattr(pull, "EXPIRES_SECONDS", 3600.0)
    box, sender = site.boxes[0], await site.shop(0)
    options = NatsOptions(
        url=site.server.url, credentials_file=site.nats.reader, tls_ca=site.nats.authority.path, durable="headquarters"
    )
    reader = await connected(options)
    try:
        async with asyncio.timeout(60), pull.pulling(reader, "CLOSURES", "headquarters", 500) as pulled:
            for z in (1, 2):
                await site.send(sender, box, box.close())
                (message,) = await pulled.next_messages()
                assert json.loads(message.data)["data"]["z_number"] == z
                message.ack()
    finally:
        await reader.close()


async def ask(client, box):
    headers, body = box.sent_presence(box.presence())
    reply = await client.request(f"mcf.{box.nim}.ask", body, headers=headers, timeout=20)
    return json.loads(reply.data)
