"""Programs that read closures: all of one instant, all that come late, and questions that are none. On both databases."""

import re
import threading

import pytest
from support.hq.in_process import pages
from support.hq.paper_box import DAY, EVENING, PaperBox
from support.hq.store import NOW, received, take

from headquarters.core.wording import Fact
from headquarters.store.findings import add_fact
from headquarters.store.revision import next_arrival


async def get_closures(client, **params):
    answer = await client.get("/v1/closures", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def walked(client, **params):
    """Page by page."""
    found = []
    while True:
        answer = await get_closures(client, **params)
        found += [(one["nim"], one["z_number"]) for one in answer["closures"]]
        if "next" not in answer:
            return found
        params["from"] = answer["next"]


async def news(client, after=""):
    """What a program gets that asks again and again, and with what it goes on."""
    found = []
    while (answer := await get_closures(client, after=after))["closures"]:
        found += [one["z_number"] for one in answer["closures"]]
        after = answer["after"]
    assert answer["after"] == after
    return found, after


@pytest.fixture
def shops(store):
    """Two of them, with 1 030 closures of one instant each, and one before and behind it."""
    shops = [PaperBox(f"EL0200001{number}-1") for number in (5, 6)]
    for box in shops:
        store.register.add(box.nim, box.key.public, now=1)
        instants = [EVENING - DAY, *[EVENING] * 1030, EVENING + DAY]
        take(store, box, *(box.close(at=at) for at in instants))
    return shops


@pytest.mark.long
async def test_more_of_one_instant_than_a_page_has(store, shops):
    """Each is there, once: to the end, of one shop, and up to a day."""
    async with pages(store, role="accountant") as client:
        every = await walked(client)
        assert (len(every), len(set(every))) == (2064, 2064)
        assert every[:2] == [(box.nim, 1) for box in shops]
        assert [z for _, z in await walked(client, nim=shops[0].nim)] == list(range(1, 1033))
        assert len(await walked(client, to="2025-12-06")) == 2062
        found, after = await news(client)
        assert len(found) == 2064
        assert await news(client, after) == ([], after)


async def test_what_comes_late(store, box):
    """A closure that was made before those that a program has read comes with its next question, and so does one after the database was put back."""
    closures = [box.close() for _ in range(4)]
    take(store, box, closures[0], closures[2], now=NOW + 1)
    async with pages(store, role="accountant") as client:
        found, after = await news(client)
        assert found == [1, 3]
        take(store, box, closures[1], now=NOW)
        found, after = await news(client, after)
        assert found == [2]
        with store.database.write() as connection:
            connection.exec_driver_sql("UPDATE meta SET value = '7' WHERE name = 'arrival'")
        take(store, box, closures[3], now=NOW + 60_000)
        assert (await news(client, after))[0] == [4]


async def test_who_ends_later_counts_later(store, box):
    """While one transaction with closures is open, none that began after it is seen before it."""
    if store.database.is_sqlite:
        pytest.skip("there a transaction that writes is alone")
    closure = received(box, box.close(), store)
    async with pages(store, role="accountant") as client:
        thread = threading.Thread(target=store.closures.store, args=([closure],), kwargs={"now": NOW})
        with store.database.write() as connection:
            first = next_arrival(connection, NOW)
            thread.start()
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while connection.exec_driver_sql(waiting).scalar() == 0:
                assert thread.is_alive()
            assert (await news(client))[0] == []
        thread.join(60)
        assert (await news(client))[0] == [1]
        assert [line.arrival for line in store.figures.lines()] == [first + 1]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/closures?after=x", 422),
        ("/v1/closures?from=c5b5d", 422),
        ("/v1/closures?from=yesterday", 422),
        ("/v1/closures?nim=%00", 422),
        ("/v1/closures?form=2026-01-01", 422),  # all closures, otherwise
        ("/v1/closures?NIM=EL02000015-1", 422),
        ("/v1/closures?nim=EL02000015-1&nim=EL02000016-1", 422),
        ("/v1/closures?_=1764400000", 200),
        ("/v1/findings?opne=true", 422),
        ("/v1/findings?nim=%00", 422),
        ("/v1/findings?before=x", 422),
        (f"/ui/?page={'9' * 20}", 200),
        (f"/ui/boxes?page={'9' * 5000}", 200),
        ("/ui/?region=%00", 200),
    ],
)
async def test_questions_that_are_none(store, box, path, status):
    """Each has an answer; none is a fault of headquarters."""
    async with pages(store, role="accountant") as client:
        assert (await client.get(path)).status_code == status


async def test_more_findings_than_an_answer_has(store):
    """The newest first, and `next`, or on the screen a link, as long as there are more."""
    with store.database.write() as connection:
        for z in range(1, 1006):
            add_fact(
                connection,
                ("EL02000015", "live"),
                "EL02000015-1",
                Fact("gap", f"{z}-{z}", {"first": z, "last": z}),
                NOW,
            )
    async with pages(store, role="accountant") as client:
        first = (await client.get("/v1/findings")).json()
        rest = (await client.get("/v1/findings", params={"before": first["next"]})).json()
        screen = await client.get("/ui/findings")
        older = await client.get(re.findall(r"/ui/findings\?before=\d+", screen.text)[0])
    assert [one["facts"]["first"] for one in first["findings"] + rest["findings"]] == list(range(1005, 0, -1))
    assert len(first["findings"]) == 1000
    assert "next" not in rest
    assert [len(re.findall("/solve", each.text)) for each in (screen, older)] == [500, 500]


@pytest.mark.parametrize("path", ["/ui/", "/ui/people/disable", "/ui/exports/closures.csv", "/v1/closures"])
async def test_what_may_be_asked_there(store, path):
    """OPTIONS is answered without a login, and shows nothing."""
    async with pages(store) as client:
        answer = await client.request("OPTIONS", path)
        assert (answer.status_code, answer.content) == (204, b"")
