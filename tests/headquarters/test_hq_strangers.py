"""Who has no key may send as much as he likes: the shops' closures do not wait for him."""

import asyncio
import contextlib
import ssl
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import event
from support.hq.paper_box import PaperBox
from support.hq.running import RunningHq
from support.hq.store import UTC
from support.key_updates import shaken
from support.receivers.authority import Authority

from headquarters.app.serve import DIRECT
from headquarters.core.reception import Message, MessageRefused
from headquarters.intake.reception import Reception
from headquarters.intake.threads import Threads

pytestmark = pytest.mark.long

FORM = b"Content-Type: application/x-www-form-urlencoded"


@pytest.fixture
def threads():
    found = Threads()
    yield found
    found.close()


async def test_strangers_by_the_hundred(store, threads):
    """Three hundred at once are three hundred in the count, and a few transactions."""
    reception = Reception(store, threads, UTC)
    commits = []
    store.evidence.counted("0001-01-01")  # opens a connection
    event.listen(store.database.engine, "commit", commits.append)

    async def stranger(number):
        with pytest.raises(MessageRefused):
            await reception.closure(Message(via="https", headers={}, body=b"%d" % number))

    async with asyncio.timeout(60), reception.running():
        await asyncio.gather(*map(stranger, range(300)))
    assert [(row.reason, row.count) for row in store.evidence.counted("0001-01-01")] == [("malformed", 300)]
    assert len(store.evidence.samples(1000)) == 200
    assert len(commits) < 30


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    """With a certificate of its own, and one box."""
    directory = tmp_path_factory.mktemp("hq")
    authority = Authority(directory)
    pem = authority.issue()
    hq = RunningHq(directory, f"sqlite:///{directory}/hq.sqlite3", server=f'tls_cert = "{pem}"\ntls_key = "{pem}"\n')
    hq.box = PaperBox("EL00000077-1")
    hq.cli("boxes", "add", hq.box.nim, "--public-key", hq.box.key.public)
    hq.start()
    hq.port = urlsplit(hq.base).port
    hq.tls = ssl.create_default_context(cafile=authority.path)
    yield hq
    assert hq.stop() == 0


@contextlib.asynccontextmanager
async def connected(web, address="127.0.0.9", *, tls=True):
    context = {"ssl": web.tls, "server_hostname": "127.0.0.1"} if tls else {}
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port, local_addr=(address, 0), **context)
    async with asyncio.timeout(60):
        yield reader, writer
    writer.transport.abort()


async def rest(reader):
    """What still comes, up to the end of the connection, however it ends."""
    came = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while piece := await reader.read(1 << 16):
            came += piece
    return came


async def test_a_form_of_a_megabyte(web):
    """Its body is not read."""
    async with connected(web) as (reader, writer):
        writer.write(
            b"POST /ui/login HTTP/1.1\r\nHost: hq\r\nContent-Length: 1000000\r\n" + FORM + b"\r\n\r\n" + bytes(20_000)
        )
        assert (await reader.readline()).startswith(b"HTTP/1.1 413")


async def delivers(web, address="127.0.0.1"):
    headers, body = web.box.sent(web.box.close())
    transport = httpx.AsyncHTTPTransport(verify=web.tls, local_address=address)
    async with httpx.AsyncClient(transport=transport, timeout=60) as client:
        answer = await client.post(f"{web.base}/closures", content=body, headers=headers)
    return answer.status_code == 200


async def test_connections_of_one_address(web):
    """Hundreds of connections that never shake hands: no more of them are held than one address may have, and a box at another one delivers."""
    async with contextlib.AsyncExitStack() as stack:
        assert await delivers(web, "127.0.0.8")
        blocked = []
        for _ in range(DIRECT.unknown_per_address + 20):
            with contextlib.suppress(ConnectionError):
                blocked.append(await stack.enter_async_context(connected(web, "127.0.0.10", tls=False)))
        ended = [asyncio.ensure_future(rest(reader)) for reader, _ in blocked]
        assert await delivers(web)
        async with asyncio.timeout(60):
            while sum(not each.done() for each in ended) > DIRECT.unknown_per_address:
                await asyncio.wait(ended, timeout=1, return_when=asyncio.FIRST_COMPLETED)
        for each in ended:
            each.cancel()
        await asyncio.gather(*ended, return_exceptions=True)


async def test_new_keys_without_end(web):
    """A connection that updates its TLS keys again and again holds up no box."""
    async with connected(web, tls=False) as (reader, writer):
        sender = await shaken((reader, writer))
        writer.write(b"".join(sender.update(answered=True) for _ in range(200)))
        assert await delivers(web)


async def test_a_head_without_end(web):
    """One header that goes on is not collected."""
    async with connected(web) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: hq\r\nX: " + b"x" * 64 * 1024)
        assert (await rest(reader)).startswith(b"HTTP/1.1 400")
