"""How many shops have closed: shops, not closures, and of the region that is shown, as their totals are; and who may do something by `/v1`."""

import re
import time

from support.hq.in_process import log_in, pages
from support.hq.paper_box import PaperBox
from support.hq.store import NOW, received


async def test_shops_that_have_closed(store):
    now = time.time_ns() // 1_000_000
    for nim, region, times in (("EL00000001-1", "Nord", 3), ("EL00000002-1", "Sud", 1), ("EL00000003-1", "Sud", 0)):
        box = PaperBox(nim)
        store.register.add(nim, box.key.public, now=NOW, region=region)
        store.closures.store([received(box, box.close(at=now), store) for _ in range(times)], now=now)
    async with pages(store) as client:
        log_in(client, store, "reader")
        for region, closed in (("", ("2", "3")), ("Nord", ("1", "1")), ("Sud", ("1", "2"))):
            screen = (await client.get("/ui/", params={"region": region})).text
            assert re.search(r'closed-1">(\d+) \S+ (\d+)<', screen).groups() == closed
            totals = (await client.get("/ui/totals", params={"region": region})).text
            assert len(set(re.findall(r"/ui/shops/(\w+)", totals))) == int(closed[0])


async def test_a_person_called_key_is_no_program(store, box):
    """Their session opens nothing by `/v1`, whatever another site makes their browser send."""
    store.people.create("key", "no password", "admin", 1)
    async with pages(store) as client:
        client.cookies.set("hq_session", store.people.begin("key", time.time_ns() // 1_000_000))
        assert (await client.get("/v1/findings")).status_code == 401
        assert (await client.post("/v1/findings/1/seen")).status_code == 401
