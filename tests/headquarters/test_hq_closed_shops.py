"""Shops as the page counts, names and lists them; and who may do something by `/v1`."""

import re
import time

from support.hq.in_process import pages
from support.hq.paper_box import PaperBox
from support.hq.store import NOW, received, take

from headquarters.page.totals import MAX_SHOPS


async def test_shops_that_have_closed(store):
    now = time.time_ns() // 1_000_000
    for nim, region, times in (("EL00000001-1", "Nord", 3), ("EL00000002-1", "Sud", 1), ("EL00000003-1", "Sud", 0)):
        box = PaperBox(nim)
        store.register.add(nim, box.key.public, now=NOW, region=region)
        store.closures.store([received(box, box.close(at=now), store) for _ in range(times)], now=now)
    async with pages(store, role="reader") as client:
        for region, closed in (("", ("2", "3")), ("Nord", ("1", "1")), ("Sud", ("1", "2"))):
            screen = (await client.get("/ui/", params={"region": region})).text
            assert re.search(r'closed-1">(\d+) \S+ (\d+)<', screen).groups() == closed
            totals = (await client.get("/ui/totals", params={"region": region})).text
            assert len(set(re.findall(r"/ui/shops/(\w+)", totals))) == int(closed[0])


async def test_shops_of_one_name_are_told_apart(store):
    """Calendar and totals have the NIM beside the name; totals say of how many shops they list the largest."""

    def add(first, last):
        for box in [PaperBox(f"EL02{number:06}-1") for number in range(first, last)]:
            store.register.add(box.nim, box.key.public, now=1, label="Pô", region="Sud")
            take(store, box, box.close())

    async with pages(store, role="reader") as client:
        add(1, 3)
        for screen in ("", "totals"):
            page = (await client.get(f"/ui/{screen}?month=2025-12")).text
            assert re.findall(r">Pô</a> *<small>(\S+)</small>", page)[:2] == ["EL02000001-1", "EL02000002-1"]
        assert "more-shops" not in page
        add(3, MAX_SHOPS + 2)
        totals = (await client.get("/ui/totals?month=2025-12")).text
        assert f"{MAX_SHOPS} magasins sur {MAX_SHOPS + 1}," in totals


async def test_a_person_called_key_is_no_program(store, box):
    """Their session opens nothing by `/v1`, whatever another site makes their browser send."""
    store.people.create("key", "no password", "admin", 1)
    async with pages(store) as client:
        client.cookies.set("hq_session", store.people.begin("key", time.time_ns() // 1_000_000))
        assert (await client.get("/v1/findings")).status_code == 401
        assert (await client.post("/v1/findings/1/seen")).status_code == 401
