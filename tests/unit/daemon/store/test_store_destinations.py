"""Events on their way to webhooks, what each row refers to, and the Z that a record is in."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.ledgers.ledger import START, Till, invoice, opened, query

from daemon.store.outbox import Resettled, resettle
from daemon.store.retention import AWAY_AT, VERIFIED_AT
from daemon.store.store import Store
from daemon.store.tables.book import attempts
from daemon.store.tables.book.closures import periods_of
from daemon.store.tables.events import events_after, find_event, last_event_at
from daemon.store.tables.meta import Damage, read_meta, read_number, write_meta

HOOK = "https://till.example/events"
DESTINATIONS = {
    "upstream": frozenset({"closure.created"}),
    HOOK: frozenset({"cert.issued", "mcf.attention", "mcf.connected"}),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite3"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    async with opened(path, destinations=DESTINATIONS, live_only=(HOOK,)) as store:
        yield store


async def test_a_notice_refers_to_what_lasts(store: Store) -> None:
    """A certification to its attempt; what has no record, to the event itself, which holds the detail."""
    till = await Till.of(store)
    record = await till.sell()
    await store.ledger.set_attention(till.book, "another machine", at=till.at)
    await till.close()
    sale, attention = await store.outbox_for(HOOK).waiting_events(till.book, 10)
    assert (sale.type, sale.ref_id) == ("cert.issued", record.id)
    event = store.events.peek(find_event, till.book, attention.ref_id)
    assert (event.type, event.detail) == ("mcf.attention", "another machine")


async def test_live_only_means_no_sandbox(store: Store, path: Path) -> None:
    """Its events are there for screens, and for destinations that want them; not for this one."""
    sandbox = await Till.of(store, mode="test")
    await sandbox.sell()
    await sandbox.close()
    assert await store.outbox_for(HOOK).waiting_events(sandbox.book, 10) == []
    assert query(path, "SELECT destination FROM outbox") == [("upstream",)]
    assert len(store.events.peek(events_after, sandbox.book, 0, 100)) == 2


async def test_destinations_change_while_it_runs(store: Store) -> None:
    """From the next event on: a type that is wanted no more, one that is wanted now, and a sandbox that is."""
    books = [await Till.of(store), await Till.of(store, mode="test")]
    for till in books:
        await till.sell()
    store.send_to({HOOK: frozenset({"closure.created"})}, ())
    for till in books:
        await till.sell()
        await till.close()
    waiting = [await store.outbox_for(HOOK).waiting_events(till.book, 10) for till in books]
    assert [[each.type for each in lane] for lane in waiting] == [
        ["cert.issued", "closure.created"],
        ["closure.created"],
    ]


async def test_a_webhook_that_moves_keeps_what_waits(store: Store, path: Path) -> None:
    """Another address under the same name, and another name at the same address. Of two that change names neither gets the other's events:
    that is what a name is for. One taken out of the configuration leaves no rows behind; closures always stay."""
    till = await Till.of(store)
    await till.sell()
    assert await store.retention.write(resettle, {HOOK: "https://till.example/x"}) == Resettled(0, 0)
    for webhooks, moved, name in (
        ({"till": "https://till.example/x"}, 1, "till"),
        ({"till": "https://till.example/x/"}, 0, "till"),
        ({"till-1": "https://till.example/x/", "new": "https://new.example"}, 1, "till-1"),
        ({"new": "https://new.example", "till-1": "https://elsewhere.example"}, 0, "till-1"),
        ({"new": "https://elsewhere.example", "till-1": "https://new.example"}, 0, "till-1"),
    ):
        assert await store.retention.write(resettle, webhooks) == Resettled(moved, 0)
        assert query(path, "SELECT destination FROM outbox") == [(name,)]
    await till.close()
    assert await store.retention.write(resettle, {}) == Resettled(0, 1)
    assert query(path, "SELECT destination FROM outbox") == [("upstream",)]


async def test_when_something_was_last_told(store: Store) -> None:
    """By type and book; 0 for never."""
    till, other = await Till.of(store), await Till.of(store, mode="test")
    assert store.events.peek(last_event_at, till.book, "taxserver.alert") == 0
    await store.events.add(till.book, "taxserver.alert", at=START, detail="8")
    await store.events.add(till.book, "mcf.connected", at=START + 5)
    assert store.events.peek(last_event_at, till.book, "taxserver.alert") == START
    assert store.events.peek(last_event_at, other.book, "taxserver.alert") == 0


async def test_when_something_was_so_for_the_last_time(path: Path) -> None:
    """That the ledger was found sound, that a backup was away, and any fact by its name: kept in the ledger itself, over restarts; 0 or nothing
    before the first time."""
    for at in (0, START, START + 1):
        async with opened(path) as store:
            retention = store.retention
            if at:
                await retention.note_verified(Damage(), at=at)
                await retention.write(write_meta, AWAY_AT, str(at + 7))
                await retention.write(write_meta, "box", f"seen at {at}")
        async with opened(path) as store:
            retention = store.retention
            result = (
                retention.peek(read_number, VERIFIED_AT),
                retention.peek(read_number, AWAY_AT),
                retention.peek(read_meta, "box"),
            )
        assert result == ((at, at + 7, f"seen at {at}") if at else (0, 0, ""))


async def test_the_z_of_each_record(store: Store) -> None:
    """Before, between and after closures, empty ones among them, all at one moment."""
    till = await Till.of(store)
    records = []
    for sales in (3, 0, 0, 2, 1, 0):
        records.extend([await till.sell() for _ in range(sales)])
        till.at = START  # the box's clock does not move: everything has one time
        await till.close()
    records += [await till.sell(), await till.fail(invoice("R-1"))]
    expected = [1, 1, 1, 4, 4, 5, 0, 0]
    assert await store.journal.read(periods_of, till.book, records) == expected
    assert await store.journal.read(periods_of, till.book, records[::-1]) == expected[::-1]
    assert await store.journal.read(periods_of, till.book, records[3:5]) == [4, 4]
    assert [await store.journal.read(periods_of, till.book, [record]) for record in records] == [
        [each] for each in expected
    ]
    begun = store.ledger.peek(attempts.find_record, till.book, await till.begin(invoice("B-1")))
    assert await store.journal.read(periods_of, till.book, [begun]) == [0]
    assert await store.journal.read(periods_of, till.book, [begun, records[0], begun]) == [0, 1, 0]
    assert await store.journal.read(periods_of, till.book, []) == []
