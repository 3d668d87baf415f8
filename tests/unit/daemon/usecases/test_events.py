"""What happened, read from a real ledger: for streams, and as what is posted to a webhook."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs
from support.ledger import START, Till, opened, tamper

from daemon.core.receipt import receipt
from daemon.store import Store
from daemon.usecases.events import BATCH, starting_point, told_after
from daemon.usecases.notices import Notices, compose

HOOK = "https://till.example/events"
EVERYTHING = frozenset({"cert.issued", "closure.created", "mcf.disconnected", "mcf.attention", "taxserver.alert"})
WEEK = 7 * 86_400_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    async with opened(path, lanes={HOOK: EVERYTHING}) as store:
        yield store


@pytest.fixture
async def till(store: Store) -> Till:
    return await Till.of(store)


def notices(store: Store) -> Notices:
    return Notices(store.outbox_for(HOOK), store, store.books)


async def test_each_kind_has_its_data(store: Store, till: Till) -> None:
    """The receipt, the report of the Z, or what there is to say of the machine; no path of the box."""
    record = await till.sell()
    closure = await till.close()
    await store.add_event(till.book, "mcf.disconnected", at=START, detail="the port /dev/ttyACM0 is gone")
    await store.set_attention(till.book, "another machine", at=START)
    await store.add_event(till.book, "taxserver.alert", at=START, detail="9")
    told = await told_after(store, till.book, 0)
    assert [event.type for event in told] == [
        *("cert.issued", "closure.created", "mcf.disconnected", "mcf.attention", "taxserver.alert")
    ]
    assert [event.id for event in told] == sorted(event.id for event in told)
    assert told[0].data == msgspec.json.encode(receipt(record, till.book.nim))
    assert told[1].data == closure.body
    common = {"nim": till.book.nim, "mode": "live", "at": "2025-12-06T05:46:40.000Z"}
    assert [json.loads(event.data) for event in told[2:]] == [
        {**common, "reason": "the port the port is gone"},
        {**common, "found": "another machine"},
        {**common, "daysSinceContact": 9},
    ]


async def test_a_stream_goes_on_where_it_was(store: Store, till: Till) -> None:
    """In parts, without gaps, and of its own book only."""
    sandbox = await Till.of(store, mode="test")
    for _ in range(BATCH + 5):
        await till.sell()
        await sandbox.sell()
    first = await told_after(store, till.book, 0)
    rest = await told_after(store, till.book, first[-1].id)
    assert (len(first), len(rest)) == (BATCH, 5)
    numbers = [json.loads(event.data)["invoiceNumber"] for event in (*first, *rest)]
    assert numbers == [f"S-{number}" for number in range(1, BATCH + 6)]


async def test_where_a_stream_begins(store: Store, till: Till) -> None:
    """Without a last event now; with one after it; with one of another ledger (a backup was put back) now."""
    await till.sell()
    newest = await store.newest_event()
    assert await starting_point(store, None) == newest
    assert await starting_point(store, newest - 1) == newest - 1
    assert await starting_point(store, newest + 1000) == newest


async def test_a_damaged_record_does_not_silence_a_stream(store: Store, till: Till, path: Path) -> None:
    """It is told without data, the log says so, and what comes after it is told."""
    await till.sell()
    await till.sell()
    tamper(path, "UPDATE event SET ref_id = 999 WHERE id = 1")
    with capture_logs() as logs:
        told = await told_after(store, till.book, 0)
    assert [event.data == b"null" for event in told] == [True, False]
    assert [line["event"] for line in logs] == ["event.unreadable"]


async def test_a_posting_says_what_and_of_which_book(store: Store, till: Till) -> None:
    """`type` and `data` as clients of the hosted service read them; mode tells the sandbox from money."""
    record = await till.sell()
    await store.set_attention(till.book, "another machine", at=till.at)
    sale, attention = await notices(store).waiting(till.book.nim, "live", 10)
    assert json.loads(compose(sale)) == {
        "type": "cert.issued",
        "timestamp": "2025-12-06T05:47:40.050Z",
        "nim": till.book.nim,
        "mode": "live",
        "data": json.loads(msgspec.json.encode(receipt(record, till.book.nim))),
    }
    assert json.loads(compose(attention))["data"]["found"] == "another machine"
    assert sale.names["webhook_id"] == sale.report_id


async def test_an_event_keeps_its_id(store: Store, till: Till, tmp_path: Path) -> None:
    """At every try; two events never have the same, one of a ledger that was put back from a backup included."""
    await till.sell(600)
    await till.sell(700)
    first, again = [await notices(store).waiting(till.book.nim, "live", 10) for _ in range(2)]
    assert first == again
    async with opened(tmp_path / "restored.sqlite3", lanes={HOOK: EVERYTHING}) as other:
        await (await Till.of(other)).sell(800)  # the row has the number of the first one
        (elsewhere,) = await notices(other).waiting(till.book.nim, "live", 10)
    ids = {posting.report_id for posting in (*first, elsewhere)}
    assert len(ids) == 3
    assert all("." not in each for each in ids)


async def test_an_event_let_go_of_is_not_posted(store: Store, till: Till) -> None:
    """After a week without a receiver nobody wants to hear that a machine was gone; a certification is posted all the same."""
    await store.add_event(till.book, "mcf.disconnected", at=START)
    till.at = START + WEEK
    await till.sell()
    await store.prune(START + WEEK + 1)
    gone, sale = await notices(store).waiting(till.book.nim, "live", 10)
    with pytest.raises(ValueError, match="no longer"):
        compose(gone)
    assert json.loads(compose(sale))["type"] == "cert.issued"
