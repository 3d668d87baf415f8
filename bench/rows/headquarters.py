"""How many closures a second headquarters takes in: over HTTP, signed, checked, stored in PostgreSQL, acknowledged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
from support.hq.paper_box import PaperBox
from support.hq.postgresql import DEBIAN, Cluster, binaries
from support.hq.running import RunningHq

from bench.figures import Row
from bench.shop.shops import folder
from headquarters.store.store import HqStore

BOXES = 40
DAYS = 50
SENDERS = 4

Signed = tuple[dict[str, str], bytes]


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
