"""The relay's added time and its rate, the NATS server's memory for idle boxes, and headquarters' rate of closures:
over HTTP, signed, checked, stored in PostgreSQL, acknowledged."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median

import httpx
from support.hq.paper_box import PaperBox
from support.hq.postgresql import DEBIAN, Cluster, binaries
from support.hq.running import RunningHq
from support.receivers.headquarters import until
from support.receivers.nats_server import NIM, SECOND
from support.relay_site import STREAMS, RelaySite, running
from support.shop import PLAIN

from bench.figures import Row
from bench.shop.shops import folder
from common.wire.call import RelayedReply, encode
from common.wire.instants import instant_text
from common.wire.nats_client import Client, Msg
from common.wire.nats_pull import NatsOptions, connected
from common.wire.presence import Presence, encode_presence
from headquarters.store.store import HqStore

READINGS = 200
CALLS = 8000
AT_ONCE = 8
"""Calls of one NIM at the same time."""
IDLE, ALL_BOXES = 500, 10_000
ANSWER = b'{"status":"certified"}' * 40

BOXES = 40
DAYS = 50
SENDERS = 4

Signed = tuple[dict[str, str], bytes]


def relay() -> Iterator[Row]:
    with folder() as path:
        for name in ("added", "passed"):
            (path / name).mkdir()
        yield asyncio.run(_added(path / "added"))
        yield from asyncio.run(_passed_on(path / "passed"))


async def _added(path: Path) -> Row:
    async with running(path) as site, httpx.AsyncClient(verify=PLAIN, timeout=60) as http:
        relay, lan = ({"Authorization": f"Bearer {key}"} for key in (site.key(), site.shop.key()))
        through = f"{site.relays[0].base}/v1/mcf/{NIM}/reports"
        beside = f"http://127.0.0.1:{site.shop.port}/v1/mcf/{NIM}/reports"
        await until(partial(_answers, http, through, relay))
        took: dict[str, list[float]] = {through: [], beside: []}
        for _ in range(READINGS):
            for url, headers in ((through, relay), (beside, lan)):
                began = time.perf_counter()
                (await http.get(url, headers=headers)).raise_for_status()
                took[url].append(time.perf_counter() - began)
        ours, theirs = (median(took[url]) * 1000 for url in (through, beside))
    note = f"{ours:.2f} ms through the relay, {theirs:.2f} ms beside it, {READINGS} readings each"
    return Row("relay", ours - theirs, note)


async def _passed_on(path: Path) -> list[Row]:
    """Uses boxes that only answer, with the credentials of a real one."""
    site = RelaySite(path)
    try:
        await site.server.up(*STREAMS)
        site.relays[0].start()
        programs = site.server.pid, site.relays[0].pid
        before = [_resident(pid) for pid in programs]
        idle = [await _box(site, "") for _ in range(IDLE)]
        server, relay = (
            (_resident(pid) - was) * ALL_BOXES / IDLE / 1e6 for pid, was in zip(programs, before, strict=True)
        )
        for box in idle:
            await box.close()
        boxes = [await _box(site, nim) for nim in (NIM, SECOND)]
        urls = [httpx.URL(f"{site.relays[0].base}/v1/mcf/{nim}/info") for nim in (NIM, SECOND)]
        for url in urls:
            await _ask(url, 1)
        began, processor = time.perf_counter(), _processor(site.relays[0].pid)
        await asyncio.gather(*(_ask(url, CALLS // (2 * AT_ONCE)) for url in urls for _ in range(AT_ONCE)))
        took, used = time.perf_counter() - began, _processor(site.relays[0].pid) - processor
        for box in boxes:
            await box.close()
    finally:
        site.down()
    called = f"{CALLS} calls to 2 boxes in {took:.1f} s, {used:.1f} s of the relay's processor"
    idling = f"{IDLE} connections with a subscription, times {ALL_BOXES // IDLE}; {relay:.0f} MB of the relay"
    return [Row("relay-rate", CALLS / used, called), Row("relay-idle", server, idling)]


async def _answers(http: httpx.AsyncClient, url: str, headers: dict[str, str]) -> bool:
    return (await http.get(url, headers=headers)).is_success


async def _ask(url: httpx.URL, count: int) -> None:
    """One connection, one request at a time. Cheaper than httpx, with which the relay would wait for its clients."""
    reader, writer = await asyncio.open_connection(url.host, url.port)
    for _ in range(count):
        writer.write(
            b"GET %s HTTP/1.1\r\nHost: relay.example\r\nAccept: */*\r\nUser-Agent: till\r\n\r\n" % url.raw_path
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        await reader.readexactly(len(ANSWER))
    writer.close()


async def _box(site: RelaySite, nim: str) -> Client:
    options = NatsOptions(url=site.server.url, credentials_file=site.nats.shop, tls_ca=site.nats.authority.path)
    client = await connected(options, "box")
    boot = "b0000001"

    def answer(msg: Msg) -> None:
        reply = RelayedReply(boot=boot, status=200 if msg.data else 0, body=ANSWER if msg.data else b"")
        client.publish(msg.reply, encode(reply))

    client.subscribe(f"mcf.{nim or NIM}.call", answer)
    if nim:
        word = Presence(
            type="bf.mcfd.presence.v1",
            nim=nim,
            at=instant_text(int(time.time() * 1000)),
            ledger="00000000-0000-0000-0000-000000000000",
            boot=boot,
            version="0",
            key="",
        )
        client.publish(f"mcf.{nim}.presence", encode_presence(word))
    await client.ping()
    return client


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def _processor(pid: int) -> float:
    """Processor time in seconds."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100


def intake() -> Iterator[Row]:
    if binaries() is None:
        yield Row("hq", None, f"needs Debian's package {DEBIAN}")
        return
    boxes = [PaperBox(f"FL{number:08}-1") for number in range(BOXES)]
    cluster = Cluster()
    try:
        cluster.start()
        with folder() as path:
            hq = RunningHq(path / "hq", cluster.database())
            hq.start()
            store = HqStore(hq.url)
            for box in boxes:
                store.register.add(box.nim, box.key.public, now=1)
            store.close()
            closures = [[box.sent(box.close(sales=1 + day % 9)) for day in range(DAYS)] for box in boxes]
            shares = [[one for of_box in closures[at::SENDERS] for one in of_box] for at in range(SENDERS)]
            began = time.perf_counter()
            with ThreadPoolExecutor(SENDERS) as senders:
                list(senders.map(_send, [hq.base] * SENDERS, shares))
            took = time.perf_counter() - began
            hq.stop()
    finally:
        cluster.remove()
    yield Row("hq", BOXES * DAYS / took, f"{BOXES * DAYS} closures of {BOXES} shops, {SENDERS} connections")


def _send(base: str, closures: Sequence[Signed]) -> None:
    with httpx.Client(base_url=base, trust_env=False, timeout=60) as client:
        for headers, body in closures:
            client.post("/closures", headers=headers, content=body).raise_for_status()
