"""The database goes back to an older copy under a running headquarters, while closures flow: what was sent is complete again."""

import asyncio
import json
import shutil

import msgspec
import nats.errors
import pytest
from sqlalchemy import select
from structlog.testing import capture_logs
from support.hq.nats_site import running
from support.hq.store import UTC
from support.receivers.headquarters import until
from support.receivers.nats_server import CONFIG, NIM, OTHER, add_stream

from common.wire.instants import now_millis
from common.wire.nats_pull import connected
from common.wire.presence import read_answer
from headquarters.intake.jetstream import JetStreamIntake
from headquarters.intake.reception import Reception
from headquarters.intake.stream import read_stream, stream_info
from headquarters.intake.threads import Threads
from headquarters.store import tables
from headquarters.store.database import StoreError

pytestmark = pytest.mark.long


@pytest.fixture
async def site(tmp_path, database_url):
    async with running(tmp_path, database_url) as site:
        yield site


def copied(site) -> dict:
    """All rows."""
    with site.store.database.read() as connection:
        return {table: connection.execute(select(table)).mappings().all() for table in tables.metadata.sorted_tables}


def put_back(site, rows: dict) -> None:
    """In one transaction, as a pooler or a failover has it: connections stay."""
    with site.store.database.write() as connection:
        for table in reversed(tables.metadata.sorted_tables):
            connection.execute(table.delete())
        for table in tables.metadata.sorted_tables:
            if rows[table]:
                connection.execute(table.insert(), [dict(row) for row in rows[table]])


async def test_while_closures_flow(site):
    """Another shop's closures follow at once, so that the last number of the stream jumps past what is lost."""
    box, other = site.boxes
    clients = [await site.shop(0), await site.shop(1)]
    site.hq.start()
    await site.send(clients[0], box, *(box.close() for _ in range(3)))
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3]})
    rows = copied(site)
    await site.send(clients[0], box, box.close())
    await site.send(clients[1], other, *(other.close() for _ in range(3)))
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3, 4], OTHER: [1, 2, 3]})
    put_back(site, rows)
    assert site.stored_z() == {NIM: [1, 2, 3]}
    await site.send(clients[1], other, other.close())
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3, 4], OTHER: [1, 2, 3, 4]}, 60)
    assert site.findings() == []
    assert "nats.lost" not in site.hq.log


async def test_while_nothing_comes(site):
    """Without any message: it is seen within seconds all the same."""
    box = site.boxes[0]
    client = await site.shop(0)
    site.hq.start()
    rows = copied(site)
    await site.send(client, box, box.close())
    await until(lambda: site.stored_z() == {NIM: [1]})
    put_back(site, rows)
    await until(lambda: site.stored_z() == {NIM: [1]}, 60)


async def test_keys_that_were_revoked_since(site):
    """What they had signed until then is read from the stream again; what came later, or since a theft, is not taken."""
    box, other = site.boxes
    clients = [await site.shop(0), await site.shop(1)]
    site.hq.start()
    rows = copied(site)
    await site.send(clients[0], box, *(box.close() for _ in range(3)))
    await site.send(clients[1], other, other.close(), other.close())
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3], OTHER: [1, 2]})
    theft = now_millis()
    await site.send(clients[1], other, other.close())
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3], OTHER: [1, 2, 3]})
    revoked = now_millis()
    site.store.register.retire(NIM[:10], revoked)
    site.store.register.revoke(OTHER[:10], other.key.id, revoked)
    site.store.register.withdraw(OTHER[:10], other.key.id, theft, revoked)
    await site.send(clients[0], box, box.close())
    await until(lambda: site.counted().get("unknown") == 1)
    await until(lambda: (site.hq.config.parent / "register.json").read_text().count(f'"revoked_at":{revoked}') == 2)
    put_back(site, rows)
    await until(lambda: site.counted().get("unknown") == 2)
    assert site.stored_z() == {NIM: [1, 2, 3], OTHER: [1, 2]}


async def anew(site) -> None:
    """The stream is removed and begins again with message 1, as for a new year."""
    client = await site.nats.connect(site.server.url)
    deleted = json.loads((await client.request("$JS.API.STREAM.DELETE.CLOSURES", b"", timeout=10)).data)
    assert deleted.get("success") or "deny" in json.dumps(deleted), deleted
    await add_stream(client, "closures-one.json", again_after=1)
    await client.close()


async def test_a_stream_begun_anew(site):
    """The old stream was read to message 40, the new one has six; the database goes back to when there was the old one."""
    box = site.boxes[0]
    client = await site.shop(0)
    site.hq.start()
    await site.send(client, box, *(box.close() for _ in range(40)))
    await until(lambda: site.stored_z() == {NIM: list(range(1, 41))}, 60)
    rows = copied(site)
    await anew(site)
    await site.send(client, box, *(box.close() for _ in range(6)))
    await until(lambda: site.stored_z() == {NIM: list(range(1, 47))}, 60)
    put_back(site, rows)
    await until(lambda: site.stored_z() == {NIM: list(range(1, 47))}, 60)


async def test_a_stream_removed_before_it_was_read(site):
    """It has acknowledged three closures while headquarters was down, and is gone with them: they are requested of the box, and stored."""
    box = site.boxes[0]
    client = await site.shop(0)
    closures = [box.close() for _ in range(3)]
    await site.send(client, box, *closures)
    await anew(site)
    site.hq.start()
    headers, body = box.sent_presence(box.presence())

    async def is_requested() -> bool:
        try:
            answer = await client.request(f"mcf.{NIM}.ask", body, timeout=30, headers=headers)
        except nats.errors.NoRespondersError:
            return False
        return [(one.from_z, one.to_z) for one in read_answer(answer.data).replay] == [(1, 3)]

    await until(is_requested, 60)
    await site.send(client, box, *closures)
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3]}, 60)
    assert site.findings() == []


async def test_a_closure_that_another_instance_stores_meanwhile(site, monkeypatch):
    """It comes and is stored between two queries of the check: the stream is not taken for a restored one, which would be read from its beginning."""
    box, threads = site.boxes[0], Threads()
    client = await site.shop(0)
    site.hq.start()
    await site.send(client, box, box.close())
    await until(lambda: site.stored_z() == {NIM: [1]})
    intake = JetStreamIntake(site.options, site.store, threads, Reception(site.store, threads, UTC))
    numbers = iter([2, 3])

    async def info(*arguments):
        found = await stream_info(*arguments)
        if (z := next(numbers, None)) is not None:
            await site.send(client, box, box.close())
            await until(lambda: site.stored_z() == {NIM: [*range(1, z + 1)]})
        return found

    monkeypatch.setattr("headquarters.intake.jetstream.stream_info", info)
    reader = await connected(site.options)
    with capture_logs() as lines:
        await intake._heal(reader)
    assert [line["event"] for line in lines] == []
    await reader.close()
    threads.close()


async def test_the_database_was_away(site, monkeypatch):
    """A presence that came meanwhile is in the stream alone: it is read on the same connection, once the database is there again."""
    box, threads = site.boxes[0], Threads()
    reception = Reception(site.store, threads, UTC)
    intake = JetStreamIntake(site.options, site.store, threads, reception)
    client, readers = await site.shop(0), [await connected(site.options) for _ in range(2)]
    was_read = asyncio.Event()

    async def read(*arguments):
        async for messages in read_stream(*arguments):
            yield messages
        was_read.set()

    monkeypatch.setattr("headquarters.intake.jetstream.read_stream", read)
    async with reception.running():
        reading = asyncio.create_task(intake._presences(readers[0]))
        await asyncio.wait_for(was_read.wait(), 10)
        headers, body = box.sent_presence(box.presence())
        await client.jetstream().publish(f"mcf.{NIM}.presence", body, headers=headers)
        with monkeypatch.context() as away:
            away.setattr(site.store.stream_ranges, "ranges", unusable)
            with pytest.raises(StoreError):
                await intake._closures(readers[1])
        await until(site.heard)
        reading.cancel()
    for one in readers:
        await one.close()
    threads.close()


def unusable(*_):
    raise StoreError("the database does not answer")


async def test_a_stream_that_is_itself_put_back(site):
    """What comes then with numbers of lost messages is taken; a closure that was in the lost part alone is asked for."""
    box, other = site.boxes
    client = await site.shop(0)
    site.hq.start()
    await site.send(client, box, *(box.close() for _ in range(3)))
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3]})
    await asyncio.sleep(1.5)  # the acknowledgements are on the server's disk
    site.server.kill()
    (store,) = site.nats.directory.glob("*/store")
    shutil.copytree(store, site.nats.directory / "backup")
    await site.server.up()
    client = await site.shop(0)
    await site.send(client, box, box.close(), box.close())
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3, 4, 5]}, 60)
    site.hq.kill()
    await site.send(client, box, box.close())
    site.server.kill()
    shutil.rmtree(store)
    shutil.copytree(site.nats.directory / "backup", store)
    await site.server.up()
    site.hq.start()
    clients = [await site.shop(0), await site.shop(1)]
    await site.send(clients[1], other, other.close())
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3, 4, 5], OTHER: [1]}, 60)
    await site.send(clients[0], box, box.close())
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3, 4, 5, 7], OTHER: [1]}, 60)
    with site.store.database.write() as connection:
        connection.execute(tables.book.update().values(received_at=1))
    headers, body = box.sent_presence(box.presence())
    answer = await clients[0].request(f"mcf.{NIM}.ask", body, headers=headers, timeout=30)
    assert json.loads(answer.data)["replay"] == [{"mode": "live", "from_z": 6, "to_z": 6}]
    await site.send(clients[0], box, box.closures[5])
    await until(lambda: site.findings() == [] and site.stored_z()[NIM] == [1, 2, 3, 4, 5, 6, 7], 60)


async def test_what_no_stream_has(site):
    """Their shop is silent: its last word, which the other stream has, shows what is missing."""
    box = site.boxes[0]
    client = await site.shop(0)
    site.hq.start()
    await site.send(client, box, *(box.close() for _ in range(2)))
    await until(lambda: site.stored_z() == {NIM: [1, 2]})
    rows = copied(site)
    await site.send(client, box, box.close())
    headers, body = box.sent_presence(box.presence())
    await client.publish(f"mcf.{NIM}.presence", body, headers=headers)
    await until(lambda: site.stored_z() == {NIM: [1, 2, 3]})
    await anew(site)
    other = await site.shop(1)
    await site.send(other, site.boxes[1], site.boxes[1].close())
    await until(lambda: OTHER in site.stored_z(), 60)
    put_back(site, rows)
    await until(lambda: ("gap", NIM) in site.findings(), 60)


async def test_a_subject_that_is_nearly_full(site):
    """What 0.1.0 would send again with all after it is not asked for without room; the next real one is taken."""
    box = site.boxes[0]
    most = json.loads((CONFIG / "closures-one.json").read_bytes())["max_msgs_per_subject"]
    raw = await site.raw()
    for _ in range(most - 300):
        raw.send(f"mcf.{NIM}.closure", b"", b"x")
    await raw.ping(60)
    closures = [box.close() for _ in range(3)]
    client = await site.shop(0)
    await site.send(client, box, closures[0], closures[2])
    site.hq.start()
    await until(lambda: site.stored_z() == {NIM: [1, 3]}, 60)
    with site.store.database.write() as connection:
        connection.execute(tables.book.update().values(received_at=1))
    headers, body = box.sent_presence(msgspec.structs.replace(box.presence(), version="0.1.0"))
    answer = await client.request(f"mcf.{NIM}.ask", body, headers=headers, timeout=30)
    assert json.loads(answer.data) == {"replay": []}
    assert ("gap", NIM) in site.findings()
    await site.send(client, box, box.close())
    await until(lambda: site.stored_z() == {NIM: [1, 3, 4]}, 60)
