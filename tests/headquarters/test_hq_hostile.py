"""What somebody with one shop's NATS key may send, on real nats-servers: no message, header or flood of one shop touches another."""

import asyncio
import re
from pathlib import Path

import pytest
from support.hq.nats_site import OpenSite, Site, running
from support.receivers.headquarters import until
from support.receivers.nats_server import NIM, OTHER
from support.receivers.raw_nats import BLOCKS, REPLIES

from common.wire.errors import NatsError
from common.wire.signing import sign

pytestmark = pytest.mark.long

ACCOUNTS = {"as shipped": Site, "one account": OpenSite}
PAYLOADS = (b"", b"\xff\xfe", b"[" * 20_000, b'{"z":' + b"9" * 5000 + b"}", b"x" * 100_000)


@pytest.fixture(params=ACCOUNTS)
async def site(request, tmp_path):
    async with running(tmp_path, kind=ACCOUNTS[request.param]) as site:
        yield site


def headers_of(signed: dict[str, str]) -> bytes:
    return b"NATS/1.0\r\n" + b"".join(f"{name}: {text}\r\n".encode() for name, text in signed.items()) + b"\r\n"


async def send(client, box, *closures):
    for closure in closures:
        headers, body = box.sent(closure)
        client.send(f"mcf.{box.nim}.closure", headers_of(headers), body)
    await client.ping(60)


async def ask(client, box):
    """What headquarters answers; None when nothing comes in time."""
    headers, body = box.sent_presence(box.presence())
    answers = asyncio.Queue()
    inbox = client.new_inbox()
    subscription = client.subscribe(inbox, answers.put_nowait)
    try:
        client.send(f"mcf.{box.nim}.ask", headers_of(headers), body, inbox.encode())
        answer = await client.within(answers.get(), 10)
    except NatsError:
        return None
    else:
        return answer.data or None
    finally:
        client.unsubscribe(subscription)


async def poison(site, subject):
    """Every header block and every payload, on a connection of its own each time that the server has refused one."""
    body = site.boxes[0].sent(site.boxes[0].close())[1]
    for block in BLOCKS:
        for data in (body, b"x"):
            client = await site.raw()
            client.send(subject, block, data)
            await client.ping(60)
    client = await site.raw()
    for data in PAYLOADS:
        client.send(subject, b"NATS/1.0\r\n\r\n", data)
    await client.ping(60)


async def test_messages_that_nobody_can_read(site):
    """Waiting in the stream and coming later: each is got past, a finding names the shop, and true closures are taken."""
    box, other = site.boxes
    mine, others = await site.raw(0), await site.raw(1)
    await poison(site, f"mcf.{NIM}.closure")
    true = box.closures[0]
    await send(mine, box, true)
    await send(others, other, other.close())
    site.hq.start()
    await until(lambda: site.stored_z() == {NIM: [1], OTHER: [1]}, 60)
    await poison(site, f"mcf.{NIM}.closure")
    await send(others, other, other.close())
    await until(lambda: site.stored_z() == {NIM: [1], OTHER: [1, 2]}, 60)
    assert {finding for finding in site.findings() if finding[0] == "refused"} == {("refused", NIM)}
    assert len(site.findings()) <= 3
    assert site.hq.log.count("nats.lost") == 0


async def test_questions_that_nobody_can_read(site):
    """The same on `ask` and in the stream of presences, with replies that are no subjects: others are answered."""
    box, other = site.boxes
    await poison(site, f"mcf.{NIM}.presence")
    site.hq.start()
    client = await site.raw(1)
    await until(lambda: ask(client, other), 60)
    await poison(site, f"mcf.{NIM}.ask")
    for reply in REPLIES:
        for block in (BLOCKS[0], headers_of(box.sent_presence(box.presence())[0])):
            raw = await site.raw()
            raw.send(f"mcf.{NIM}.ask", block, box.sent_presence(box.presence())[1], reply)
            await raw.ping(60)
    await no_time(site, box)
    assert await ask(client, other)
    await send(client, other, other.close())
    await until(lambda: site.stored_z() == {OTHER: [1]}, 60)
    assert site.hq.log.count("nats.lost") == 0


async def no_time(site, box):
    """A presence that its own box has signed, with a time that is none; until it is refused: the places of that shop may be taken."""
    headers, body = box.sent_presence(box.presence(sold="yesterday"))
    raw = await site.raw()

    async def is_refused() -> bool:
        raw.send(f"mcf.{NIM}.ask", headers_of(headers), body)
        await raw.ping(60)
        return "sold: is not an instant" in site.hq.log

    await until(is_refused, 60, every=0.5)


async def test_a_flood_of_one_shop(site):
    """A hundred thousand questions: memory stays, another shop is answered, and the shop itself is not heard for ten minutes."""
    box, other = site.boxes
    site.hq.start()
    client = await site.raw(1)
    await until(lambda: ask(client, other), 60)
    before = resident(site.hq.pid)
    good = box.sent_presence(box.presence())
    floods = [await site.raw() for _ in range(4)]
    for round_ in range(100):
        for flood in floods:
            for _ in range(125):
                flood.send(f"mcf.{NIM}.ask", headers_of(good[0]), good[1], b"r")
                flood.send(f"mcf.{NIM}.ask", b"NATS/1.0\r\n\r\n", b"x" * 500)
        for flood in floods:
            await flood.ping(60)
        if round_ == 50:
            await until(lambda: ask(client, other), 60)
            await send(client, other, other.close())
            await until(lambda: site.stored_z() == {OTHER: [1]}, 60)
    assert resident(site.hq.pid, "VmHWM") - before < 60_000
    await until(lambda: ask(client, other), 60)
    assert '"event":"ask.flood"' in site.hq.log
    assert await ask(floods[0], box) is None


async def test_large_questions(site):
    """Of a megabyte each, from many names where the server lets them: no more is kept than it takes to refuse it."""
    other = site.boxes[1]
    site.hq.start()
    client = await site.raw(1)
    await until(lambda: ask(client, other), 60)
    before = resident(site.hq.pid)
    flood = await site.raw()
    for number in range(300):
        nim = NIM if isinstance(site, OpenSite) is False else f"EL{number:08}-1"
        flood.send(f"mcf.{nim}.ask", b"NATS/1.0\r\nwebhook-id: " + b"x" * 400_000 + b"\r\n\r\n", b"x" * 500_000)
        await flood.ping(60)
    await until(lambda: ask(client, other), 60)
    assert resident(site.hq.pid, "VmHWM") - before < 60_000


async def test_a_text_that_the_database_refuses(tmp_path, database_url):
    """A closure signed by its own box with what no database takes for a text: it is refused, and the others are taken."""
    async with running(tmp_path, database_url) as site:
        box, other = site.boxes
        client, others = await site.raw(0), await site.raw(1)
        for changes in ({"box": "a\0b"}, {"key_id": "\0"}, {"ledger_id": "\0"}):
            closure = box.close(**changes)
            body = box.sent(closure)[1]
            signed = sign([box.key], closure.report_id, 1_800_000_000, body)
            client.send(f"mcf.{NIM}.closure", headers_of(signed), body)
        await client.ping(60)
        await send(others, other, *(other.close() for _ in range(3)))
        site.hq.start()
        await until(lambda: site.stored_z().get(OTHER) == [1, 2, 3], 60)


def resident(pid: int, what: str = "VmRSS") -> int:
    """In kB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", status)[1])
